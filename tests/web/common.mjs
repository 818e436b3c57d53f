/*  What the programs of tests/web share: named checks, processes whose lines are read, tokens, game servers, gateways, and a web
    server for the pages. Everything is on loopback, on ports that the system gives, and ends with the program. */

import { spawn, execFileSync } from 'node:child_process';
import { webcrypto } from 'node:crypto';
import * as fs from 'node:fs';
import * as http from 'node:http';
import * as os from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';

globalThis.crypto ??= webcrypto; // Node.js 18
export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const WEB = path.join(ROOT, 'build/web');
export const FOLDER = fs.mkdtempSync(path.join(os.tmpdir(), 'netcode-web-'));
export const CLIENT_ID = 7001;

// Of a wait for something that must happen: a machine that is shared may stand still for seconds. As tests/tools/waiting.py has it.
export const LIMIT_MS = 1000 * Number(process.env.TEST_LIMIT_SECONDS ?? 60);
const words = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const unknown = new Set(words); // no check's title has held these yet
const ends = [];
let passed = 0;
let failed = 0;
let skipped = 0;

export class Skip extends Error {}

export function holds(condition, what) {
    if (!condition) throw new Error(what);
}

export function same(found, wanted, what = 'it') {
    holds(Object.is(found, wanted), `${what} is ${JSON.stringify(found)} and not ${JSON.stringify(wanted)}`);
}

/* Fails unless the call throws, or rejects, with a message that matches. */
export async function refuses(call, pattern) {
    let error = null;
    try {
        await call();
    } catch (caught) {
        error = caught;
    }
    holds(error, `nothing was thrown; ${pattern} was to be`);
    holds(pattern.test(error.message), `"${error.message}" does not match ${pattern}`);
    return error;
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function until(condition, what) {
    const end = Date.now() + LIMIT_MS;
    for (;;) {
        const isLate = Date.now() >= end; // before the look: whoever was held up sees what was true before that
        const value = await condition();
        if (value) return value;
        holds(!isLate, `in ${LIMIT_MS / 1000} s it did not come: ${what}`);
        await sleep(10);
    }
}

/* Runs one check, if its title holds one of the words that were asked for. It may return a detail. */
export async function check(title, call) {
    const held = words.filter((word) => title.includes(word));
    held.forEach((word) => unknown.delete(word));
    if (words.length && !held.length) return;
    const begun = Date.now();
    let timer = null;
    try {
        const hangs = new Promise((_, reject) => {
            timer = setTimeout(() => reject(new Error('it hangs')), 15 * LIMIT_MS);
        });
        const detail = await Promise.race([call(), hangs]);
        passed++;
        console.log(`ok     ${title}${detail ? `: ${detail}` : ''} (${((Date.now() - begun) / 1000).toFixed(1)} s)`);
    } catch (error) {
        if (error instanceof Skip) {
            skipped++;
            console.log(`skipped ${title}: ${error.message}`);
        } else {
            failed++;
            console.log(`FAILED ${title}: ${error.stack ?? error}`);
        }
    } finally {
        clearTimeout(timer);
    }
}

export function atEnd(call) {
    ends.push(call);
}

export async function finish(name) {
    for (const end of ends.reverse()) {
        try {
            await end();
        } catch {
            // it has ended by itself
        }
    }
    fs.rmSync(FOLDER, { recursive: true, force: true });
    console.log(`${name}: ${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ''}`);
    if (unknown.size && name !== 'stopped') {
        console.log(`no check's title holds: ${[...unknown].join(', ')}`);
        process.exit(2);
    }
    process.exit(failed || !passed || (skipped && (process.env.SKIPS || 'yes') !== 'yes') ? 1 : 0);
}

/* A program whose lines are read while it runs. */
export class Process {
    constructor(command, ...parameters) {
        this.text = '';
        this.process = spawn(command, parameters, { stdio: ['ignore', 'pipe', 'pipe'], cwd: FOLDER });
        this.pid = this.process.pid;
        for (const stream of [this.process.stdout, this.process.stderr])
            stream.setEncoding('utf8').on('data', (data) => {
                this.text += data;
            });
        this.ended = new Promise((resolve) => {
            this.process.on('exit', (code, signal) => resolve(code ?? signal));
        });
        this.status = undefined;
        this.ended.then((status) => {
            this.status = status;
        });
        atEnd(() => this.end('SIGKILL'));
    }

    async line(pattern) {
        return until(() => {
            const match = pattern.exec(this.text);
            holds(match || this.status === undefined, `it ended with ${this.status}, without ${pattern}: ${this.text}`);
            return match;
        }, `${pattern} in ${this.text}`);
    }

    async end(signal = 'SIGTERM') {
        if (this.status === undefined) this.process.kill(signal);
        return this.ended;
    }
}

export const KEY_FILE = path.join(FOLDER, 'game.key');
export const KEY = crypto.getRandomValues(new Uint8Array(32));
fs.writeFileSync(KEY_FILE, KEY, { mode: 0o600 });

/* A connect token: { bytes, base64 }. */
export function mint(addresses, options = {}) {
    const settings = { 'key-file': KEY_FILE, 'client-id': CLIENT_ID, expire: 45, timeout: 10, format: 'base64', ...options };
    const parameters = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
    const base64 = execFileSync(path.join(ROOT, 'build/token'), ['mint', ...parameters, ...[addresses].flat()], {
        encoding: 'utf8',
    }).trim();
    return { base64, bytes: new Uint8Array(Buffer.from(base64, 'base64')) };
}

/* examples/server.c; its address is in `address`. */
export async function startServer(...options) {
    const server = new Process(path.join(ROOT, 'build/server'), '--address', '127.0.0.1:0', '--key-file', KEY_FILE, ...options);
    server.address = (await server.line(/listening on (127\.0\.0\.1:\d+)/))[1];
    return server;
}

export const GATEWAY = process.env.NETCODE_TEST_GATEWAY ?? path.join(WEB, 'gateway/gateway.mjs');

export async function startGateway(allowed, options = {}) {
    const settings = { listen: '127.0.0.1:0', 'udp-port': 0, 'udp-address': '127.0.0.1', ...options };
    const parameters = Object.entries(settings).flatMap(([name, value]) =>
        value === true ? [`--${name}`] : [value].flat().flatMap((each) => [`--${name}`, String(each)]),
    );
    const gateway = new Process('node', GATEWAY, ...[allowed].flat().flatMap((address) => ['--allow', address]), ...parameters);
    const [, address, udpPort] = await gateway.line(/listening on (127\.0\.0\.1:\d+), data channels on UDP port (\d+)/);
    return Object.assign(gateway, { url: `http://${address}`, address, port: Number(address.split(':')[1]), udpPort: Number(udpPort) });
}

/* The numbers of /metrics, by name and labels. */
export async function metrics(gateway) {
    const text = await (await fetch(`${gateway.url}/metrics`)).text();
    return Object.fromEntries(
        text
            .split('\n')
            .filter((line) => line && !line.startsWith('#'))
            .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
    );
}

const TYPES = { '.html': 'text/html', '.mjs': 'text/javascript', '.wasm': 'application/wasm' };

/* Serves build/web and tests/web/page.html, as a page's host does. Returns its origin. */
export async function serveFiles() {
    const server = http.createServer((request, response) => {
        const name = request.url.split('?')[0].slice(1);
        const folder = name === 'page.html' ? path.join(ROOT, 'tests/web') : WEB;
        const type = TYPES[path.extname(name)];
        if (!type || !/^[a-z_.]+$/.test(name)) return response.writeHead(404).end();
        return fs.readFile(path.join(folder, name), (error, data) => {
            if (error) response.writeHead(404).end();
            else response.writeHead(200, { 'Content-Type': type, 'Cache-Control': 'no-store' }).end(data);
        });
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    atEnd(() => server.closeAllConnections());
    return `http://127.0.0.1:${server.address().port}`;
}

for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => finish('stopped'));
