/*  Pages in real browsers: Chromium, and Firefox for the part that is the same there. A page with netcode.mjs, the gateway,
    examples/server.c that says payloads back.

    browser.mjs [--seconds=N] [WORD...]    N for the long check; 20 */

import { execFileSync } from 'node:child_process';
import * as path from 'node:path';
import { parseArgs } from 'node:util';
import {
    CLIENT_ID,
    FOLDER,
    KEY,
    LIMIT_MS,
    ROOT,
    Skip,
    WEB,
    atEnd,
    check,
    finish,
    holds,
    metrics,
    mint,
    refuses,
    same,
    serveFiles,
    sleep,
    startGateway,
    startServer,
    until,
} from './common.mjs';

const { default: puppeteer } = await import(
    path.join(WEB, 'tests/browsers/node_modules/puppeteer-core/lib/esm/puppeteer/puppeteer-core.js')
);
const { values } = parseArgs({ options: { seconds: { type: 'string', default: '20' } }, strict: false, allowPositionals: true });
const GROWTH_BYTES = 4 << 20; // of a page's JavaScript memory, after garbage collection
const FAST_MS = 50; // no step of ours takes longer

// Of Chromium, as root without a display, and without words to the outside. WebRTC needs no switch here: the page's candidates are
// never sent, and the gateway's is an address of this machine.
const CHROMIUM =
    '--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update ' +
    '--disable-sync --js-flags=--expose-gc';

let nextId = CLIENT_ID;
const origin = await serveFiles();
const server = await startServer('--echo', '--roaming', '--replace');
let gateway = await startGateway(server.address, { origin });
let chromium = null;

async function launch(name, options) {
    try {
        const browser = await puppeteer.launch({ headless: true, timeout: LIMIT_MS, ...options });
        atEnd(() => browser.close());
        return browser;
    } catch (error) {
        throw new Skip(`${name} does not start: ${error.message.split('\n')[0]}`);
    }
}

/* A page of Chromium's with a client, not connected yet. */
async function openPage(options = {}, browser = null) {
    chromium ??= await launch('Chromium', {
        executablePath: '/usr/bin/chromium',
        userDataDir: path.join(FOLDER, 'chromium'),
        args: CHROMIUM.split(' '),
    });
    const page = await (browser ?? chromium).newPage();
    page.setDefaultTimeout(LIMIT_MS);
    page.faults = [];
    page.on('pageerror', (error) => page.faults.push(error.message));
    await page.goto(`${origin}/page.html`);
    await page.waitForFunction('window.test');
    await begin(page, options);
    return page;
}

async function begin(page, options) {
    await page.evaluate(
        (marker, settings) => {
            window.test.marker = marker;
            return window.test.start(settings);
        },
        options.marker ?? 'payload',
        { gateway: options.gateway ?? gateway.url, transportOptions: options.transportOptions },
    );
}

const connect = (page, token) => page.evaluate((text) => window.test.connect(text), token.base64);
const summary = (page) => page.evaluate(() => window.test.summary());

async function echoes(page, more) {
    const { echoed } = await summary(page);
    return until(async () => {
        const now = await summary(page);
        return now.echoed >= echoed + more && now;
    }, `${more} echoes`);
}

/* The gateway forgets the sessions of pages that have ended. */
const noSessions = () =>
    until(async () => {
        const counts = await metrics(gateway);
        return counts['netcode_gateway_sessions{kind="webrtc"}'] + counts['netcode_gateway_sessions{kind="websocket"}'] === 0;
    }, 'the gateway to have no session');

async function close(page) {
    await page.evaluate(() => window.test.stop());
    const { faults } = page;
    await page.close();
    same(faults.join('; '), '', 'what the page complains of');
}

await check('Chromium: a page plays over a data channel', async () => {
    // No WebSocket comes before the data channel, however long that takes.
    const page = await openPage({ transportOptions: { fallbackSeconds: 60 } });
    const begun = Date.now();
    same(await connect(page, mint(server.address, { 'client-id': ++nextId, timeout: 60 })), 'CONNECTED');
    const took = Date.now() - begun;
    const { stats, wrong } = await echoes(page, 60);
    same(stats.transport.kind, 'webrtc', 'the path');
    same(wrong, 0, 'payloads that came back as others');
    const roundTrip = await until(async () => (await summary(page)).stats.roundTrip, 'a round trip');
    await close(page);
    await noSessions();
    return `connected after ${took} ms, round trip ${(roundTrip * 1000).toFixed(0)} ms`;
});

await check('Chromium: over a WebSocket where UDP is dead', async () => {
    // Its answers name an address at which nothing listens, as a firewall that drops UDP does.
    const dead = await startGateway(server.address, { origin, 'udp-address': '127.0.0.1', 'public-address': '127.0.0.2' });
    const page = await openPage({ gateway: dead.url });
    const begun = Date.now();
    same(await connect(page, mint(server.address, { 'client-id': ++nextId })), 'CONNECTED');
    const took = Date.now() - begun;
    const { stats, wrong } = await echoes(page, 60);
    same(stats.transport.kind, 'websocket', 'the path');
    same(wrong, 0);
    holds(took >= 3000 && took < 6000, `it took ${took} ms, and not three seconds and a little`);
    await close(page);
    await dead.end();
    return `connected after ${took} ms`;
});

await check('Chromium: over a WebSocket where there is no WebRTC', async () => {
    const page = await openPage({ transportOptions: { webrtc: false } });
    same(await connect(page, mint(server.address, { 'client-id': ++nextId })), 'CONNECTED');
    const { stats } = await echoes(page, 30);
    same(stats.transport.kind, 'websocket');
    await close(page);
});

/* A page plays while the gateway is killed and started again. */
async function survive(kind) {
    const id = ++nextId;
    const page = await openPage({ transportOptions: { webrtc: kind === 'webrtc' } });
    same(await connect(page, mint(server.address, { 'client-id': id, timeout: 60 })), 'CONNECTED');
    const before = await echoes(page, 30);
    same(before.stats.transport.kind, kind);
    if (before.stats.transport.reconnects) { // another path has replaced it after a silence: what that costs is not known
        await close(page);
        await noSessions();
        return null;
    }
    if (kind === 'websocket' && !before.stats.transport.dropped) same(before.gaps, 0, 'the number of gaps in what came back');
    const { port, udpPort } = gateway;
    await gateway.end('SIGKILL');
    await sleep(500);
    const begun = Date.now();
    gateway = await startGateway(server.address, { origin, listen: `127.0.0.1:${port}`, 'udp-port': udpPort });
    const { state, states, stats, untried } = await echoes(page, 60);
    same(state, 'CONNECTED');
    holds(untried < 10, `it took ${untried} steps of the page until another path was asked for`); // whatever stood still: both are the page's
    same(states.at(-1), 'CONNECTED', 'the last state');
    same(states.length, 3, 'the number of states: it never connected again');
    same(stats.connects, 1, 'connects');
    same(server.text.match(new RegExp(` connected slot=\\d+ client=${id} `, 'g'))?.length, 1, 'what the server saw of connects');
    holds(stats.transport.reconnects > 0, 'the transport says that nothing happened');
    await close(page);
    await noSessions();
    const seconds = ((Date.now() - begun) / 1000).toFixed(1);
    return { kind: stats.transport.kind, said: `heard again ${seconds} s after the gateway was back, ${stats.transport.reconnects} tries` };
}

for (const kind of ['webrtc', 'websocket'])
    await check(`Chromium: the gateway is killed and comes back, and the session stays (${kind})`, async () => {
        // Where the request for a data channel just misses the new gateway, or a busy machine is slow, the page is right to take a WebSocket.
        let result = null;
        for (let tries = 0, replaced = 0; (!result || result.kind !== kind) && tries < 3; ) {
            result = await survive(kind);
            if (result) tries++;
            else holds(++replaced <= 3, 'another path replaced the first one each time, before the gateway was killed');
        }
        same(result.kind, kind);
        return result.said;
    });

await check('Chromium: a page that is loaded again comes back with a newer token', async () => {
    const page = await openPage();
    const id = ++nextId;
    same(await connect(page, mint(server.address, { 'client-id': id })), 'CONNECTED');
    await echoes(page, 10);
    await sleep(1100); // a token is newer by a second at least
    await page.reload();
    await page.waitForFunction('window.test');
    await begin(page, {});
    same(await connect(page, mint(server.address, { 'client-id': id })), 'CONNECTED');
    await echoes(page, 30);
    await close(page);
});

await check('Chromium: an expired token has its sentence, and so have a wrong server and a wrong gateway', async () => {
    const page = await openPage();
    const expired = await connect(page, mint(server.address, { expire: 0 }));
    holds(/expired/.test(expired), expired);
    await until(async () => (await metrics(gateway))['netcode_gateway_sessions{kind="webrtc"}'] === 0, 'the path to be closed');
    const forbidden = await connect(page, mint('127.0.0.1:9'));
    holds(/does not lead to one of the servers/.test(forbidden), forbidden);
    await close(page);
    const nowhere = await openPage({ gateway: 'http://127.0.0.1:9' });
    const unreachable = await connect(nowhere, mint(server.address));
    holds(/127\.0\.0\.1:9/.test(unreachable), unreachable);
    await close(nowhere);
    return `"${expired}" "${forbidden}" "${unreachable}"`;
});

await check('Chromium: two pages at once', async () => {
    const pages = [await openPage({ marker: 'one' }), await openPage({ marker: 'two' })];
    for (const page of pages) same(await connect(page, mint(server.address, { 'client-id': ++nextId })), 'CONNECTED');
    for (const page of pages) {
        await page.bringToFront(); // one that is hidden has its timers slowed down
        const { wrong } = await echoes(page, 30);
        same(wrong, 0, "the other page's payloads");
    }
    for (const page of pages) await close(page);
});

await check('the gateway has no payload, key or token in its memory, and nothing in its log', async () => {
    const marker = `plaintext-${crypto.randomUUID()}`;
    const page = await openPage({ marker });
    const token = mint(server.address, { 'client-id': ++nextId });
    same(await connect(page, token), 'CONNECTED');
    await echoes(page, 60);
    const ours = `control-${crypto.randomUUID()}`;
    const hex = (bytes) => Buffer.from(bytes).toString('hex');
    // Behind the public part of a token with one IPv4 server: Standard: Connect Token.
    const keys = 13 + 8 + 8 + 8 + 24 + 1024 + 4 + 4 + (1 + 4 + 2);
    const secrets = {
        payload: hex(Buffer.from(marker)),
        private_key: hex(KEY),
        client_to_server_key: hex(token.bytes.subarray(keys, keys + 32)),
        server_to_client_key: hex(token.bytes.subarray(keys + 32, keys + 64)),
        token: hex(token.bytes.subarray(keys - 7, keys + 64)),
        control: hex(Buffer.from(ours)),
    };
    // What does pass through it: the encrypted part of the token is in the connection request. And a page says a word that is no datagram.
    const passes = token.bytes.subarray(13 + 8 + 8 + 8 + 24 + 8, 13 + 8 + 8 + 8 + 24 + 8 + 24);
    holds(keys + 64 < token.bytes.length && token.bytes.subarray(keys, keys + 64).some((byte) => byte), 'the keys are not there');
    const look = (pid, wanted) => {
        const output = execFileSync('python3', [path.join(ROOT, 'tests/web/secrets.py'), String(pid), '-'], {
            input: Object.entries(wanted)
                .map((pair) => pair.join('='))
                .join('\n'),
            encoding: 'utf8',
        });
        return Object.fromEntries(
            output
                .trim()
                .split('\n')
                .map((line) => [line.split(' ')[0], Number(line.split(' ')[1])]),
        );
    };
    await fetch(`${gateway.url}/metrics?${ours}`);
    const found = look(gateway.pid, { ...secrets, passes: hex(passes) });
    for (const name of ['payload', 'private_key', 'client_to_server_key', 'server_to_client_key', 'token'])
        same(found[name], 0, `the number of times that ${name} is in its memory`);
    holds(found.control > 0, 'the control was not found: this search finds nothing');
    holds(found.bytes > 1 << 20, 'hardly any memory was read');
    // The same search does find them where they are: in the server.
    const inServer = look(server.pid, secrets);
    for (const name of ['private_key', 'client_to_server_key', 'server_to_client_key'])
        holds(inServer[name] > 0, `${name} is not even in the server's memory`);
    const log = Buffer.from(gateway.text);
    for (const [name, value] of Object.entries(secrets))
        holds(!log.includes(Buffer.from(value, 'hex')) && !gateway.text.includes(value), `${name} is in the log`);
    await close(page);
    return `${(found.bytes / (1 << 20)).toFixed(0)} MiB read; the control found ${found.control} times, and the keys in the server`;
});

await check(`Chromium: ${values.seconds} s at 60 Hz without growth or slow steps`, async () => {
    const page = await openPage();
    same(await connect(page, mint(server.address, { 'client-id': ++nextId, timeout: 20 })), 'CONNECTED');
    await echoes(page, 120);
    const memory = () =>
        page.evaluate(async () => {
            for (let i = 0; i < 3; i++) {
                window.gc();
                await new Promise((resolve) => setTimeout(resolve, 50));
            }
            return performance.memory.usedJSHeapSize;
        });
    const before = await memory();
    await page.evaluate(() => Object.assign(window.test, { slow: 0, longest: 0, updates: 0, echoed: 0 }));
    await sleep(Number(values.seconds) * 1000);
    const { updates, echoed, slow, longest, state } = await summary(page);
    const growth = (await memory()) - before;
    same(state, 'CONNECTED');
    holds(updates > Number(values.seconds) * 30, `only ${updates} steps`);
    holds(echoed > updates * 0.9, `only ${echoed} of ${updates} came back`);
    // A shared machine takes the processor away for that long now and then; what is ours would come again and again.
    holds(slow <= updates / 500, `${slow} of ${updates} steps took more than ${FAST_MS} ms`);
    holds(growth < GROWTH_BYTES, `it grew by ${growth} bytes`);
    await close(page);
    return `${updates} steps, the longest ${longest.toFixed(1)} ms, ${slow} over ${FAST_MS} ms, ${(growth / 1024).toFixed(0)} KiB more`;
});

await check('Firefox: a page plays', async () => {
    // Firefox pairs no address of its own with 127.0.0.1, so here the gateway offers the machine's other addresses as well.
    const other = await startGateway(server.address, { origin, 'udp-address': '0.0.0.0' });
    const browser = await launch('Firefox', { browser: 'firefox', executablePath: '/usr/bin/firefox-esr' });
    const page = await openPage({ gateway: other.url }, browser);
    const begun = Date.now();
    same(await connect(page, mint(server.address, { 'client-id': ++nextId })), 'CONNECTED');
    const took = Date.now() - begun;
    const { stats, wrong } = await echoes(page, 60);
    same(wrong, 0);
    await page.evaluate(() => window.test.stop());
    await browser.close();
    await other.end();
    return `over ${stats.transport.kind}, connected after ${took} ms`;
});

await check('the gateway ends on SIGTERM, with pages in it', async () => {
    const page = await openPage();
    same(await connect(page, mint(server.address, { 'client-id': ++nextId })), 'CONNECTED');
    const counts = await metrics(gateway);
    holds(counts['netcode_gateway_sessions{kind="webrtc"}'] >= 1, 'it counts no session');
    const begun = Date.now();
    same(await gateway.end('SIGTERM'), 0, 'its status');
    holds(Date.now() - begun < 5000, 'it took long');
    await refuses(() => fetch(`${gateway.url}/healthz`), /./);
    await page.close();
});

await finish('browser');
