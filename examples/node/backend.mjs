/*  The token backend in Node.js: the endpoint of examples/backend/backend.c, by Node's http module. Tokens are made by the
    netcode-token command, so the private key never enters this process, whose memory could not be wiped.

        make build/token
        cd examples/node && npm ci
        node backend.mjs --listen 127.0.0.1:8080 --key-file game.key --players players \
            --server-credential-file servers.credential --token-command ../../build/token

    It knows the players, hears from the servers or reads them in a file, and gives each player who asks a connect token
    for the servers with the most free slots:

        POST /v1/connect-token   Authorization: Bearer CREDENTIAL; no body, or {"region", "server", "avoid"}, each optional
        POST /v1/servers         a server's report, once a second, with the servers' own credential
        GET /healthz             200 where there is a server to send players to, else 503
        GET /metrics             Prometheus text, with the names of backend.c's

    It speaks plain HTTP on loopback: TLS is the business of the proxy in front of it. The files are those of backend.c, and
    so are statuses and JSON. Needs Node.js 18.3 or newer, and @noble/hashes for the hash of credentials (BLAKE2b of 32
    bytes, which Node's crypto has not). */

import { spawn } from 'node:child_process';
import { randomBytes, timingSafeEqual } from 'node:crypto';
import * as fs from 'node:fs';
import * as http from 'node:http';
import * as net from 'node:net';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { blake2b } from '@noble/hashes/blake2b';

const MAX_CREDENTIAL_BYTES = 512;
const MAX_SERVER_CREDENTIALS = 4; // so that a new one can come before the old one goes
const MAX_PLAYERS = 1000000;
const MAX_SERVERS = 256; // that report, and as many in the file
const LISTED_SLOTS = 32; // of a server in the file that does not say how many it has
const MAX_SLOTS = 65535;
const MAX_ADDRESSES = 32; // of a server, and of a token
const MAX_CONNECTIONS = 256;
const MAX_LINE_BYTES = 511;
const MIN_CREDENTIAL_BYTES = 16; // that --hash takes: the hash of a shorter one, a password, gives it away
const MAX_HEAD_BYTES = 16384; // a request's line and headers
const MAX_BODY_BYTES = 8192;
// Who sends more than a body may have is heard out up to here, so that the answer is read and not lost in a reset.
const MAX_DRAINED_BYTES = 1048576;
const SERVER_SILENT_SECONDS = 5; // a server that was not heard for so long is not picked
const MAX_JSON_DEPTH = 1000;
const RETRY_SECONDS = 2; // Retry-After where no server has a free slot
const LAST_ANSWERS_SECONDS = 2; // for requests in progress when a signal ends us
const DURATION_BOUNDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1]; // of the histogram, seconds
const MINTS_AT_ONCE = 8; // processes; the others wait
const MINTS_WAITING = 1024; // more than that are refused
const MINT_SECONDS = 5;
const MINT_BYTES = 65536; // the most that netcode-token may say

// Why a request was refused: the name in the JSON, the HTTP status, the sentence.
const REFUSALS = {
    not_found: [404, 'There is nothing at this address'],
    method_not_allowed: [405, 'This address takes another method: see Allow'],
    no_credential: [401, 'Say who you are: Authorization: Bearer and your credential'],
    unknown_credential: [401, 'This credential is not known here'],
    too_large: [413, 'The body is too large'],
    head_too_large: [431, "The request's line and headers are too large"],
    bad_request: [400, 'This is no HTTP request that can be understood'],
    not_json: [400, 'The body is no JSON object'],
    wrong_field: [400, 'A field is missing, unknown, there twice, or has a value that it can not have'],
    wrong_protocol_id: [400, 'This backend serves another protocol id'],
    rate_limited: [429, 'You ask too often: see Retry-After'],
    no_server: [503, 'No server that fits has a free slot: see Retry-After'],
    too_many_servers: [503, 'This backend knows as many servers as it can'],
    internal: [500, 'The backend could not do it'],
};

const WORD = /^[A-Za-z0-9._-]{1,63}$/;
const WORD_OR_ADDRESS = /^[A-Za-z0-9._:%[\]-]{1,63}$/;

/* What ends a request early. */
class Refusal extends Error {
    constructor(name, detail = '', options = {}) {
        super(name);
        Object.assign(this, { name, detail, allow: '', retryAfter: 0, close: false }, options);
    }
}

/* A file can not be used; the message says which and why. */
class FilesError extends Error {}

const seconds = () => Number(process.hrtime.bigint()) / 1e9;

/* ---- files ---- */

/* The bytes of a file, unless others than its owner may do with it what `forbidden` says. */
function readFile(name, forbidden, advice) {
    let descriptor;
    try {
        descriptor = fs.openSync(name, 'r');
    } catch (error) {
        throw new FilesError(`${name} can not be opened: ${error.code}`);
    }
    try {
        const status = fs.fstatSync(descriptor);
        if (!status.isFile() || status.mode & forbidden) throw new FilesError(`${name} ${advice}`);
        return fs.readFileSync(descriptor);
    } finally {
        fs.closeSync(descriptor);
    }
}

/* Not trim of strings, which takes off a non-breaking space too. */
const trim = (text) => text.replace(/^[ \t\r\v\f]+|[ \t\r\v\f]+$/g, '');

// eslint-disable-next-line no-control-regex
const PLAYER_LINE = /^([0-9a-fA-F]{64})[ \t]+([0-9]{1,20})[ \t]+((?! )[^\x00-\x1f\x7f]{1,63}(?<! ))$/;

/* [number, line as latin-1] without empty lines and notes. */
function readLines(name, bytes) {
    const lines = [];
    bytes
        .toString('latin1')
        .split('\n')
        .forEach((raw, index) => {
            if (raw.length > MAX_LINE_BYTES) throw new FilesError(`${name} is wrong in line ${index + 1}: it is too long`);
            const line = trim(raw);
            if (line && !line.startsWith('#')) lines.push([index + 1, line]);
        });
    return lines;
}

/* What we keep of a credential, as hex; '' for what can be none. */
function hashCredential(latin1) {
    if (latin1.length < 1 || latin1.length > MAX_CREDENTIAL_BYTES) return '';
    return Buffer.from(blake2b(Buffer.from(latin1, 'latin1'), { dkLen: 32 })).toString('hex');
}

function sameHash(a, b) {
    return timingSafeEqual(Buffer.from(a, 'hex'), Buffer.from(b, 'hex'));
}

function readServerCredentials(name) {
    const advice = 'is refused, because it is no file, or others than its owner can use it: chmod 600';
    const bytes = readFile(name, 0o077, advice);
    const lines = readLines(name, bytes);
    bytes.fill(0);
    if (lines.length < 1 || lines.length > MAX_SERVER_CREDENTIALS)
        throw new FilesError(`${name} holds no servers' credential, or more than ${MAX_SERVER_CREDENTIALS}`);
    return lines.map(([, line]) => hashCredential(line));
}

/* {credential's hash: player} from lines "credential-hash client_id name". */
function readPlayers(name, rate) {
    const players = new Map();
    const ids = new Set();
    const bytes = readFile(name, 0o002, 'is refused, because it is no file, or everyone can write to it');
    for (const [number, line] of readLines(name, bytes)) {
        const match = PLAYER_LINE.exec(line);
        const clientId = match ? BigInt(match[2]) : 0n;
        if (!match || clientId >= 1n << 64n || players.size >= MAX_PLAYERS)
            throw new FilesError(`${name} is wrong in line ${number}: credential-hash client_id name`);
        const hash = match[1].toLowerCase();
        if (players.has(hash) || ids.has(clientId))
            throw new FilesError(`${name} holds player ${clientId} twice, or another one with the same credential`);
        ids.add(clientId);
        // home: the server that headed his last token
        players.set(hash, { hash, clientId, name: match[3], allowance: rate, refilledAt: seconds(), home: '' });
    }
    return players;
}

/* ---- addresses ---- */

/* "1.2.3.4:5" or "[::1]:5" in the one form that equal places have; '' for anything else. */
function readAddress(text) {
    const match = typeof text === 'string' ? /^(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+)):([1-9][0-9]{0,4})$/.exec(text) : null;
    const port = match ? Number(match[3]) : 0;
    if (!match || port > 65535) return '';
    if (match[2] !== undefined) return net.isIPv4(match[2]) ? `${match[2]}:${port}` : '';
    if (!net.isIPv6(match[1])) return '';
    const plain = new net.SocketAddress({ address: match[1], family: 'ipv6' }).address;
    const mapped = /^::ffff:([0-9.]+)$/.exec(plain);
    return mapped ? `${mapped[1]}:${port}` : `[${plain}]:${port}`;
}

const isWildcard = (address) => address.startsWith('0.0.0.0:') || address.startsWith('[::]:');

/* {name: server} from lines "address [name [slots]]". Without a name it goes by its address. */
function readListed(file) {
    const listed = new Map();
    const bytes = readFile(file, 0o002, 'is refused, because it is no file, or everyone can write to it');
    for (const [number, line] of readLines(file, bytes)) {
        const wrong = (why) => new FilesError(`${file} is wrong in line ${number}: ${why}`);
        const [first, word, slots = String(LISTED_SLOTS), ...more] = line.split(/[ \t]+/);
        const address = readAddress(first);
        const name = word ?? address;
        if (!address || isWildcard(address)) throw wrong('first comes ADDRESS:PORT or [IPV6]:PORT, as players dial it');
        if (word !== undefined && !WORD.test(word))
            throw wrong('the name is up to 63 letters, digits, dots, dashes and underscores');
        if (more.length || !/^[0-9]{1,9}$/.test(slots) || !isCount(Number(slots), 1, MAX_SLOTS))
            throw wrong('the slots are a number from 1 to 65535, and the last word');
        if (listed.has(name) || [...listed.values()].some((other) => other.address === address))
            throw wrong('this name or this address stands there already');
        if (listed.size === MAX_SERVERS) throw wrong(`no more than ${MAX_SERVERS} servers fit`);
        const state = { clients: 0, draining: false, heardAt: Infinity, promised: 0, listed: true };
        listed.set(name, { name, address, dialled: [address], slots: Number(slots), ...state });
    }
    return listed;
}

function listenAddress(options) {
    const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+)):([0-9]{1,5})$/.exec(options.listen);
    const host = match ? (match[1] ?? match[2]) : '';
    if (!net.isIP(host) || Number(match[3]) > 65535)
        throw new FilesError(`${options.listen} is no address in numbers, like 127.0.0.1:8080; host names are not resolved`);
    if (!host.startsWith('127.') && host !== '::1' && !options['allow-remote'])
        throw new FilesError(
            `${options.listen} is refused, because credentials and tokens would travel in the clear: listen on loopback, ` +
                'behind a proxy with TLS',
        );
    return { host, port: Number(match[3]) };
}

/* ---- JSON that comes in ---- */

/* The members [name, value] of a JSON object, those that are there twice too: JSON.parse alone keeps the last. */
function parseObject(body) {
    let text, value;
    try {
        text = new TextDecoder('utf-8', { fatal: true }).decode(body);
        value = JSON.parse(text);
    } catch {
        throw new Refusal('not_json');
    }
    if (value === null || typeof value !== 'object' || Array.isArray(value)) throw new Refusal('not_json');
    return membersOf(text);
}

/* Of a JSON object that is well-formed. backend.c takes neither zeros, which end its strings, nor what is too deep. */
function membersOf(text) {
    const cuts = []; // where the object begins and ends, its colons and commas
    let [depth, deepest] = [0, 0];
    for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}:,]/g)) {
        if (token === '}' || token === ']') depth--;
        if ((depth === 0 && '{}'.includes(token)) || (depth === 1 && ':,'.includes(token))) cuts.push(index);
        if (token === '{' || token === '[') depth++;
        deepest = Math.max(deepest, depth);
    }
    if (deepest > MAX_JSON_DEPTH || text.includes('\\u0000')) throw new Refusal('not_json');
    const members = [];
    const part = (i) => JSON.parse(text.slice(cuts[i] + 1, cuts[i + 1]));
    for (let i = 0; i + 2 < cuts.length; i += 2) members.push([part(i), part(i + 1)]);
    return members;
}

/* What a player asks for: region, server, avoid. */
function readWish(body) {
    const wish = {};
    for (const [name, value] of body.length ? parseObject(body) : []) {
        if (!['region', 'server', 'avoid'].includes(name))
            throw new Refusal('wrong_field', 'only region, server and avoid are known');
        const pattern = name === 'region' ? WORD : WORD_OR_ADDRESS;
        if (name in wish || typeof value !== 'string' || !pattern.test(value))
            throw new Refusal('wrong_field', `${name} is a name${name === 'region' ? '' : ' or an address'}, once`);
        wish[name] = value;
    }
    return wish;
}

/* The public addresses, or where there are none the server's own; null when they are wrong. */
function readDialled(list, address) {
    if (list !== undefined && (!Array.isArray(list) || list.length > MAX_ADDRESSES)) return null;
    const dialled = list && list.length ? list.map(readAddress) : [address];
    return dialled.every((each) => each && !isWildcard(each)) ? dialled : null;
}

function readProtocolId(text) {
    if (typeof text !== 'string' || !/^(0[xX][0-9a-fA-F]{1,16}|[1-9][0-9]{0,19}|0)$/.test(text)) return null;
    const number = BigInt(text);
    return number < 1n << 64n ? number : null;
}

const isCount = (value, low, high) => Number.isInteger(value) && value >= low && value <= high;

/* A server's report. What is not known is left alone: servers may be newer than we. */
function readReport(body, protocolId) {
    const report = Object.fromEntries(parseObject(body).reverse()); // of what is there twice, the first counts
    const wrong = (detail) => new Refusal('wrong_field', detail);
    const address = readAddress(report.address);
    const dialled = readDialled(report.public_addresses, address);
    const theirs = readProtocolId(report.protocol_id);
    if (typeof report.name !== 'string' || !WORD.test(report.name))
        throw wrong('name is up to 63 letters, digits, dots, dashes and underscores');
    if (!address) throw wrong('address is ADDRESS:PORT');
    if (!dialled)
        throw wrong('public_addresses, and address where there are none, are up to 32 that players can dial');
    if (!isCount(report.slots, 1, MAX_SLOTS)) throw wrong('slots is a number from 1 to 65535');
    if (!isCount(report.clients, 0, report.slots)) throw wrong('clients is a number from 0 to slots');
    if (![undefined, true, false].includes(report.draining)) throw wrong('draining is true or false');
    if (theirs === null) throw wrong('protocol_id is a string with a number, 0x... or decimal');
    if (theirs !== protocolId) throw new Refusal('wrong_protocol_id');
    const { name, slots, clients } = report;
    return { name, address, dialled, slots, clients, draining: report.draining === true, heardAt: seconds(), promised: 0 };
}

/* ---- tokens ---- */

/*  What a command says on standard output; an Error with what it says on standard error where it fails. No shell sees it,
    and it inherits nothing but `descriptor` as its number 3. */
function output(command, args, descriptor) {
    return new Promise((resolve, reject) => {
        const limits = { env: {}, timeout: MINT_SECONDS * 1000, killSignal: 'SIGKILL' };
        const child = spawn(command, args, { ...limits, stdio: ['ignore', 'pipe', 'pipe', descriptor] });
        const said = { stdout: '', stderr: '' };
        for (const name of ['stdout', 'stderr']) {
            child[name].setEncoding('utf8').on('data', (text) => {
                said[name] += text;
                if (said[name].length > MINT_BYTES) child.kill('SIGKILL');
            });
        }
        child.once('error', (error) => reject(new Error(`${command}: ${error.code}`)));
        child.once('close', (status, signal) => {
            if (status === 0) resolve(said.stdout);
            else reject(new Error(said.stderr.trim() || `${command} ended with ${signal ?? status}`));
        });
    });
}

/* Runs netcode-token, a few at a time. Nothing secret is on its command line. */
class Minter {
    constructor(options) {
        this.options = options;
        this.running = 0;
        this.waiting = [];
        this.key = -1; // the key file, open: another one in its place counts from the next SIGHUP on
    }

    /* Takes the key file as it is now, if netcode-token can make a token with it. */
    async open() {
        const name = this.options['key-file'];
        let key;
        try {
            key = fs.openSync(name, 'r');
            await this.run(['--client-id', '0', '127.0.0.1:1'], key);
        } catch (error) {
            if (key !== undefined) fs.closeSync(key);
            throw new FilesError(`${name} can not be used: ${error.message}`);
        }
        return key;
    }

    use(key) {
        if (this.key >= 0) fs.closeSync(this.key);
        this.key = key;
    }

    run(args, key) {
        // Linux opens the file anew for each process, wherever it went; other systems would share one position in it.
        const name = process.platform === 'linux' ? '/proc/self/fd/3' : this.options['key-file'];
        return output(this.options['token-command'], ['mint', '--format', 'json', '--key-file', name, ...args], key);
    }

    async mint(player, pairs) {
        if (this.running >= MINTS_AT_ONCE) {
            if (this.waiting.length >= MINTS_WAITING) throw new Error('too many tokens are waited for');
            await new Promise((resolve) => this.waiting.push(resolve));
        }
        this.running++;
        try {
            const { options } = this;
            const args = ['--client-id', String(player.clientId), '--protocol-id', options['protocol-id']];
            args.push('--expire', String(options.expire), '--timeout', String(options.timeout));
            args.push('--user-data-hex', Buffer.from(player.name, 'latin1').toString('hex')); // the server knows it from us
            return JSON.parse(await this.run([...args, ...pairs], this.key));
        } finally {
            this.running--;
            this.waiting.shift()?.();
        }
    }
}

/* ---- what is asked ---- */

const isSilent = (server) => seconds() - server.heardAt > SERVER_SILENT_SECONDS;
const freeSlots = (server) => Math.max(0, server.slots - server.clients - server.promised);
/* "eu-1" and "eu-west-1" stand in the region "eu", and so does a server that is called "eu". */
const isInRegion = (server, region) => server.name === region || server.name.startsWith(`${region}-`);
/* Servers go by their name, or by an address at which players dial them. */
const isCalled = (server, name) => server.name === name || server.dialled.includes(readAddress(name));

/* 0 when the player may ask now; else in how many seconds. */
function takeAllowance(player, rate) {
    const now = seconds();
    const perSecond = rate / 60;
    player.allowance = Math.min(rate, player.allowance + (now - player.refilledAt) * perSecond);
    player.refilledAt = now;
    if (player.allowance < 1) return Math.ceil((1 - player.allowance) / perSecond);
    player.allowance--;
    return 0;
}

/* Players, servers and the rules between them. */
class App {
    constructor(options) {
        this.options = options;
        this.protocolId = BigInt(options['protocol-id']);
        this.minter = new Minter(options);
        this.servers = new Map();
        this.tokens = 0;
        this.reports = 0;
        this.cut = 0;
        this.refusals = Object.fromEntries(Object.keys(REFUSALS).map((name) => [name, 0]));
        this.reloads = { good: 0, failed: 0 };
        this.durations = new Array(DURATION_BOUNDS.length + 1).fill(0);
        this.durationSum = 0;
        this.startTime = seconds();
    }

    /* One line of the log. Never a credential, a token or a key. */
    say(text) {
        console.log(`${(seconds() - this.startTime).toFixed(3).padStart(9)}  ${text}`);
    }

    /* All files or nothing. Of the key we only see whether netcode-token can use it. */
    async readFiles() {
        const { options } = this;
        const credentials = options['server-credential-file'];
        const serverHashes = credentials ? readServerCredentials(credentials) : [];
        const listed = options.servers ? readListed(options.servers) : new Map();
        const players = readPlayers(options.players, options.rate);
        this.minter.use(await this.minter.open());
        const known = new Map([...(this.players?.values() ?? [])].map((player) => [player.clientId, player]));
        for (const player of players.values()) {
            const old = known.get(player.clientId);
            // What he has used up, and where he plays, outlives the files.
            if (old) Object.assign(player, { allowance: old.allowance, refilledAt: old.refilledAt, home: old.home });
        }
        Object.assign(this, { serverHashes, players, listed });
        for (const server of this.servers.values()) this.unlist(server);
    }

    async reload() {
        try {
            await this.readFiles();
            this.reloads.good++;
            this.sayFiles('read again');
        } catch (error) {
            this.reloads.failed++;
            this.say(`error: ${error.message}`);
            this.say('error: the files could not be read again; what was read before stays');
        }
    }

    sayFiles(what) {
        const servers = `${this.listed.size} servers, ${this.serverHashes.length} servers' credentials`;
        this.say(`${what}: ${this.players.size} players, ${servers}, the key`);
    }

    allServers() {
        return [...this.servers.values(), ...this.listed.values()];
    }

    /* A server that reports is what it says, and no longer what the file says. */
    unlist(report) {
        for (const { name, address } of this.listed.values())
            if (name === report.name || report.dialled.includes(address)) this.listed.delete(name);
    }

    /* A full one fits where his last token led to it: the slot that he lost in a crash may be his own. */
    fits(server, player, wish) {
        return (
            !server.draining &&
            !isSilent(server) &&
            (wish.region === undefined || isInRegion(server, wish.region)) &&
            (wish.server === undefined || isCalled(server, wish.server)) &&
            (freeSlots(server) > 0 || player.home === server.name)
        );
    }

    /* Most free slots first; what the player would rather avoid goes last. */
    choose(player, wish) {
        const avoided = (server) => (wish.avoid !== undefined && isCalled(server, wish.avoid) ? 1 : 0);
        const order = (a, b) =>
            avoided(a) - avoided(b) || freeSlots(b) - freeSlots(a) || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
        const fitting = this.allServers().filter((server) => this.fits(server, player, wish));
        return fitting.sort(order).slice(0, this.options['servers-per-token']);
    }

    /* body null: there was too much of it. */
    async connectToken(credential, body) {
        const hash = hashCredential(credential);
        const player = hash ? this.players.get(hash) : undefined;
        if (!hash) throw new Refusal('no_credential');
        if (!player || !sameHash(player.hash, hash)) throw new Refusal('unknown_credential');
        const wait = takeAllowance(player, this.options.rate);
        if (wait) throw new Refusal('rate_limited', '', { retryAfter: wait });
        if (body === null) throw new Refusal('too_large');
        const servers = this.choose(player, readWish(body));
        if (!servers.length) throw new Refusal('no_server', '', { retryAfter: RETRY_SECONDS });
        const token = await this.mint(player, servers);
        player.home = servers[0].name;
        this.tokens++;
        // 64-bit ids are strings, because JavaScript's numbers end at 2^53.
        return {
            client_id: String(player.clientId),
            protocol_id: `0x${this.protocolId.toString(16).padStart(16, '0')}`,
            connect_token: token.connect_token,
            expires_at: token.expire_timestamp,
            server_time: Math.floor(Date.now() / 1000),
        };
    }

    async mint(player, servers) {
        const pairs = servers.flatMap((server) => server.dialled.map((dialled) => `${dialled}=${server.address}`));
        // Promised at once: while this one is made, others ask. A server in the file does not report when players
        // leave it: when all of its slots were given away, it is taken to be empty again.
        servers[0].promised++;
        if (servers[0].listed && !freeSlots(servers[0])) servers[0].promised = 0;
        try {
            return await this.minter.mint(player, pairs.slice(0, MAX_ADDRESSES));
        } catch (error) {
            servers[0].promised = Math.max(0, servers[0].promised - 1);
            this.say(`error: no token for ${player.clientId}: ${error.message}`);
            throw new Refusal('internal');
        }
    }

    async report(credential, body) {
        const hash = hashCredential(credential);
        if (!hash) throw new Refusal('no_credential');
        // All of them are looked at, so that the time does not tell which one it was.
        if (!this.serverHashes.filter((known) => sameHash(known, hash)).length) throw new Refusal('unknown_credential');
        if (body === null) throw new Refusal('too_large');
        const server = readReport(body, this.protocolId);
        const known = this.servers.get(server.name);
        if (!known && this.servers.size >= MAX_SERVERS) this.forgetOne();
        if (!known || isSilent(known))
            this.say(`server ${server.name} is heard: ${server.slots} slots, ${server.clients} clients`);
        this.servers.set(server.name, server);
        this.unlist(server);
        this.reports++;
        return { status: 'ok' };
    }

    /* The one that has been silent longest: servers that end and start by other names must not shut new ones out. */
    forgetOne() {
        const oldest = [...this.servers.values()].reduce((a, b) => (a.heardAt <= b.heardAt ? a : b));
        if (!isSilent(oldest))
            throw new Refusal('too_many_servers', '', { retryAfter: RETRY_SECONDS });
        this.servers.delete(oldest.name);
    }

    /* How many servers there are of each state, and the free slots of those that can be picked. */
    census() {
        const counts = { open: 0, full: 0, draining: 0, silent: 0 };
        let free = 0;
        for (const server of this.allServers()) {
            const slots = freeSlots(server);
            const state = isSilent(server) ? 'silent' : server.draining ? 'draining' : slots ? 'open' : 'full';
            counts[state]++;
            if (state === 'open') free += slots;
        }
        return { counts, free };
    }

    /* Healthy: there is a server to send players to, or at least one that is full. */
    health() {
        const { counts, free } = this.census();
        const serving = counts.open + counts.full;
        return { status: serving ? 'ok' : 'no_server', servers: serving, free_slots: free };
    }

    countDuration(duration) {
        const place = DURATION_BOUNDS.findIndex((bound) => duration <= bound);
        this.durations[place < 0 ? DURATION_BOUNDS.length : place]++;
        this.durationSum += duration;
    }

    durationRows() {
        let sum = 0;
        const bounds = [...DURATION_BOUNDS, '+Inf'];
        const buckets = this.durations.map((count, i) => [`_bucket{le="${bounds[i]}"}`, (sum += count)]);
        return [...buckets, ['_sum', this.durationSum], ['_count', sum]];
    }

    /* Prometheus text. */
    metrics() {
        const { counts, free } = this.census();
        const labelled = (label, values) => Object.entries(values).map(([name, n]) => [`{${label}="${name}"}`, n]);
        const rows = [
            ['tokens_issued_total', 'counter', 'Connect tokens that players got.', [['', this.tokens]]],
            ['refusals_total', 'counter', 'Requests that were refused.', labelled('reason', this.refusals)],
            ['reports_total', 'counter', "Servers' reports that were taken.", [['', this.reports]]],
            ['servers', 'gauge', 'Servers, by what they can be used for.', labelled('state', counts)],
            ['free_slots', 'gauge', 'Free slots of the open servers.', [['', free]]],
            ['players', 'gauge', 'Players in the file.', [['', this.players.size]]],
            ['reloads_total', 'counter', 'Times that the files were read again.', labelled('result', this.reloads)],
            ['connections_cut_total', 'counter', 'Connections that were idle or slow too long.', [['', this.cut]]],
            ['request_duration_seconds', 'histogram', "From a request's head to its answer's end.", this.durationRows()],
        ];
        const lines = rows.flatMap(([name, kind, about, values]) => [
            `# HELP netcode_backend_${name} ${about}`,
            `# TYPE netcode_backend_${name} ${kind}`,
            ...values.map(([suffix, value]) => `netcode_backend_${name}${suffix} ${value}`),
        ]);
        return `${lines.join('\n')}\n`;
    }
}

/* ---- HTTP ---- */

/* The bearer's credential, '' when there is none. X-Forwarded-For is ignored. */
function credentialOf(request) {
    const value = request.headers.authorization ?? '';
    return value.slice(0, 7).toLowerCase() === 'bearer ' ? value.slice(7).replace(/^ +| +$/g, '') : '';
}

/* The body, heard to its end so that the connection can go on; null when there is too much of it. */
async function readBody(request) {
    if (Number(request.headers['content-length'] ?? 0) > MAX_DRAINED_BYTES)
        throw new Refusal('too_large', '', { close: true });
    const pieces = [];
    let bytes = 0;
    for await (const piece of request) {
        bytes += piece.length;
        if (bytes > MAX_DRAINED_BYTES) throw new Refusal('too_large', '', { close: true });
        if (bytes <= MAX_BODY_BYTES) pieces.push(piece);
    }
    return bytes <= MAX_BODY_BYTES ? Buffer.concat(pieces) : null;
}

/* JSON, or the text of the metrics. */
function send(request, response, status, content, options = {}) {
    if (response.destroyed) return;
    const isText = typeof content === 'string';
    const body = Buffer.from(isText ? content : JSON.stringify(content));
    response.writeHead(status, {
        'Content-Type': isText ? 'text/plain; version=0.0.4; charset=utf-8' : 'application/json',
        'Content-Length': body.length,
        'Cache-Control': 'no-store',
        'X-Content-Type-Options': 'nosniff',
        ...(status === 401 && { 'WWW-Authenticate': 'Bearer realm="netcode"' }),
        ...(options.allow && { Allow: options.allow }),
        ...(options.retryAfter && { 'Retry-After': options.retryAfter }),
        ...(options.close && { Connection: 'close' }),
    });
    response.end(request.method === 'HEAD' ? undefined : body);
    if (options.close) response.once('finish', () => request.socket.destroySoon());
}

/* Counts the refusal; its status and its JSON. */
function tell(app, refusal) {
    const [status, text] = REFUSALS[refusal.name];
    app.refusals[refusal.name]++;
    return [status, { error: refusal.name, message: `${text}${refusal.detail ? `: ${refusal.detail}` : ''}.` }];
}

async function route(app, request, response) {
    const where = request.url.split('?')[0];
    const method = { '/v1/connect-token': 'POST', '/v1/servers': 'POST', '/healthz': 'GET', '/metrics': 'GET' }[where];
    if (request.httpVersion === '1.1' && request.headers.host === undefined)
        throw new Refusal('bad_request', '', { close: true });
    const body = await readBody(request);
    if (!method) throw new Refusal('not_found');
    if (request.method !== method && !(request.method === 'HEAD' && method === 'GET'))
        throw new Refusal('method_not_allowed', '', { allow: method === 'POST' ? 'POST' : 'GET, HEAD' });
    if (where === '/healthz') {
        const health = app.health();
        const healthy = health.servers > 0;
        send(request, response, healthy ? 200 : 503, health, { retryAfter: healthy ? 0 : RETRY_SECONDS });
        return;
    }
    if (where === '/metrics') {
        send(request, response, 200, app.metrics());
        return;
    }
    const credential = credentialOf(request);
    const answer = where === '/v1/servers' ? app.report(credential, body) : app.connectToken(credential, body);
    send(request, response, 200, await answer);
}

async function onRequest(app, request, response) {
    const begun = seconds();
    response.once('close', () => app.countDuration(seconds() - begun));
    try {
        await route(app, request, response);
    } catch (error) {
        if (!(error instanceof Refusal)) {
            if (request.socket.destroyed) return; // it was cut, by the other side or for being slow
            app.say(`error: a request ended by ${error.constructor.name}`);
        }
        const refusal = error instanceof Refusal ? error : new Refusal('internal');
        send(request, response, ...tell(app, refusal), refusal);
    }
}

/* What is no request that Node can read. Who was too slow is cut without a word. */
function onClientError(app, error, socket) {
    if (!socket.writable || error.code === 'ERR_HTTP_REQUEST_TIMEOUT' || error.code === 'ECONNRESET') {
        if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') app.cut++;
        socket.destroy();
        return;
    }
    const name = error.code === 'HPE_HEADER_OVERFLOW' ? 'head_too_large' : 'bad_request';
    const [status, content] = tell(app, new Refusal(name));
    const body = JSON.stringify(content);
    socket.end(
        `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\nContent-Type: application/json\r\n` +
            `Content-Length: ${body.length}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n${body}`,
    );
}

function makeServer(app) {
    const limit = app.options['request-seconds'] * 1000;
    const server = http.createServer(
        {
            maxHeaderSize: MAX_HEAD_BYTES,
            requestTimeout: limit,
            headersTimeout: limit,
            keepAliveTimeout: limit,
            connectionsCheckingInterval: 250,
            requireHostHeader: false, // Node's own answer is no JSON
        },
        (request, response) => onRequest(app, request, response),
    );
    server.maxConnections = MAX_CONNECTIONS;
    server.on('clientError', (error, socket) => onClientError(app, error, socket));
    server.on('timeout', (socket) => {
        app.cut++;
        socket.destroy();
    });
    return server;
}

/* ---- options ---- */

const HELP = `usage: node backend.mjs [options]
       node backend.mjs --credential                     makes a credential
       node backend.mjs --hash [CLIENT_ID NAME] < FILE   makes of a credential its hash, or a line of the players file

Gives players connect tokens, for the servers that report to it.

  --listen ADDRESS:PORT          loopback, port 0 for any (127.0.0.1:8080)
  --allow-remote                 lets --listen be no loopback address: the proxy with TLS is elsewhere
  --key-file FILE                the private key: 32 bytes, or the same in hex or base64. Required
  --players FILE                 lines "credential-hash client_id name". Required
  --server-credential-file FILE  the servers' credential, to report with; up to four lines. This, or
  --servers FILE                 lines "address:port [name [slots]]", or both
  --token-command FILE           netcode-token (build/token of the repository)
  --protocol-id N                unique to the game and its version (0x1122334455667788)
  --expire SECONDS               in which a token must have connected, 1..86400 (30)
  --timeout SECONDS              of silence that end a connection, 1..3600 (5)
  --rate N                       requests per player and minute, 1..100000 (30)
  --servers-per-token N          1..32 (3)
  --request-seconds N            a slower request is cut, 1..600 (10)
  --help                         this text

Key and credential files are refused when others than their owner can use them. SIGHUP reads all files again: put
new ones in their places by a rename. SIGINT and SIGTERM end it.`;

const NUMBERS = {
    expire: [1, 86400, 30],
    timeout: [1, 3600, 5],
    rate: [1, 100000, 30],
    'servers-per-token': [1, 32, 3],
    'request-seconds': [1, 600, 10],
};

function parseOptions(args) {
    const text = { type: 'string' };
    const flag = { type: 'boolean' };
    const { values } = parseArgs({
        args,
        options: {
            ...Object.fromEntries(Object.keys(NUMBERS).map((name) => [name, text])),
            ...{ listen: text, 'key-file': text, players: text, 'server-credential-file': text, servers: text },
            'token-command': text,
            ...{ 'protocol-id': text, 'allow-remote': flag, help: flag },
        },
    });
    const here = path.dirname(fileURLToPath(import.meta.url));
    const options = {
        listen: '127.0.0.1:8080',
        'protocol-id': '0x1122334455667788',
        'token-command': path.join(here, '..', '..', 'build', 'token'),
        ...values,
    };
    for (const [name, [low, high, otherwise]] of Object.entries(NUMBERS)) {
        options[name] = values[name] === undefined ? otherwise : Number(values[name]);
        if (!/^[0-9]*$/.test(values[name] ?? '') || !isCount(options[name], low, high))
            throw new Error(`--${name} is a number from ${low} to ${high}`);
    }
    if (readProtocolId(options['protocol-id']) === null) throw new Error('--protocol-id is a 64-bit number');
    for (const name of ['key-file', 'players', options.servers ? 'players' : 'server-credential-file'])
        if (!options[name] && !options.help) throw new Error(`--${name} is required`);
    return options;
}

/* The hash alone, or the line of a player. The credential comes from standard input: command lines can be read. */
function printHash(words) {
    const [line] = fs.readFileSync(0, 'latin1').split('\n');
    const credential = trim(line);
    const hash = hashCredential(credential);
    const text = [hash, ...words].join(' ');
    const match = PLAYER_LINE.exec(Buffer.from(text, 'utf8').toString('latin1'));
    const isPlayer = match && Buffer.from(match[3], 'latin1').toString('utf8') === words[1] && BigInt(match[2]) < 1n << 64n;
    if (!hash || (words.length && !isPlayer)) {
        console.error('backend.mjs --hash [CLIENT_ID NAME] wants a credential on standard input, a decimal id and a name');
        return 2;
    }
    if (credential.length < MIN_CREDENTIAL_BYTES) {
        console.error('backend.mjs --hash wants a credential that can not be guessed; see --credential');
        return 1;
    }
    console.log(text);
    return 0;
}

/* ---- the backend ---- */

function onStop(app, server) {
    server.close(() => {
        app.say(`ends: ${app.tokens} tokens issued, ${app.reports} reports taken`);
        process.exit(0);
    });
    server.closeIdleConnections();
    setTimeout(() => server.closeAllConnections(), LAST_ANSWERS_SECONDS * 1000).unref();
}

async function run(options) {
    const app = new App(options);
    const where = listenAddress(options);
    let onHangup = () => {}; // while we start the files are read just now, and without a listener it would end us
    process.on('SIGHUP', () => onHangup());
    for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {}); // who read the log is gone
    await app.readFiles();
    const server = makeServer(app);
    await new Promise((resolve, reject) => {
        server.once('error', (error) => reject(new FilesError(`${options.listen} ${error.code}`)));
        server.listen({ ...where, backlog: 128 }, resolve);
    });
    let reloading = Promise.resolve(); // one after the other
    onHangup = () => (reloading = reloading.then(() => app.reload()));
    process.once('SIGINT', () => onStop(app, server));
    process.once('SIGTERM', () => onStop(app, server));
    const { address, family, port } = server.address();
    console.log(`listening on ${family === 'IPv6' ? `[${address}]` : address}:${port}`);
    app.sayFiles('read');
}

async function main(args) {
    if (args[0] === '--credential' && args.length === 1) {
        console.log(randomBytes(32).toString('base64url'));
        return;
    }
    if (args[0] === '--hash') {
        process.exitCode = printHash(args.slice(1));
        return;
    }
    let options;
    try {
        options = parseOptions(args);
    } catch (error) {
        console.error(`backend: ${error.message}; see --help`);
        process.exitCode = 2;
        return;
    }
    if (options.help) {
        console.log(HELP);
        return;
    }
    await run(options).catch((error) => {
        console.error(`backend: ${error instanceof FilesError ? error.message : error.stack}`);
        process.exitCode = 1;
    });
}

await main(process.argv.slice(2));
