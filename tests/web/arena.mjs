/*  The arena as players have it: backend and gateway behind nginx with TLS, one server, 14 bots, a window (SDL2, under a virtual
    display) and pages in Chromium, all in one match.

    arena.mjs [--seconds=N] [--pictures=FOLDER] [WORD...]    N of the match; 60. Pictures: of the window and of the page */

import { execFileSync, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { parseArgs } from 'node:util';
import { FOLDER, Process, ROOT, WEB, atEnd, check, finish, holds, same, sleep, startGateway, until } from './common.mjs';

const { default: puppeteer } = await import(path.join(WEB, 'tests/browsers/node_modules/puppeteer-core/lib/esm/puppeteer/puppeteer-core.js'));
const { values } = parseArgs({ options: { seconds: { type: 'string', default: '60' }, pictures: { type: 'string' } }, strict: false, allowPositionals: true });
const CHROMIUM = '--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync --js-flags=--expose-gc';
const PROTOCOL_ID = '0x4172656e61000001'; // as arena_net.h has it
const MAX_TAB_BYTES = 400 * 1024;
const FIRST_FRAME_MS = 2000;
const SLOW_MS = 50;
const build = (name) => path.join(ROOT, 'build', name);
const place = (name) => path.join(FOLDER, name);
const write = (name, text) => fs.writeFileSync(place(name), text, { mode: 0o600 });

/* ---- everything that a game's operator runs ---- */

// The key that dev_token.h has: so the bots make their own tokens, beside players with those of the backend.
write('arena.key', Buffer.from(Array.from({ length: 32 }, (_, i) => 0x80 + i)));
const freePort = () => Number(execFileSync('python3', ['-c', 'import socket\ns = socket.socket()\ns.bind(("127.0.0.1", 0))\nprint(s.getsockname()[1])'], { encoding: 'utf8' }));
const port = freePort();
const site = `https://localhost:${port}`;

const PLAYERS = { alice: 2001, bob: 2002, carol: 2003 };
const credentials = {};
let players = '';
for (const [name, id] of Object.entries(PLAYERS)) {
    credentials[name] = execFileSync(build('backend'), ['--credential'], { encoding: 'utf8' }).trim();
    write(`${name}.credential`, credentials[name] + '\n');
    players += spawnSync(build('backend'), ['--hash', String(id), name], { input: credentials[name] + '\n', encoding: 'utf8' }).stdout;
}
write('players', players);

const server = new Process(build('arena-server'), '--address', '127.0.0.1:' + freePort(), '--key-file', place('arena.key'), '--trace', place('server.trace'));
const address = (await server.line(/open at (127\.0\.0\.1:\d+)/))[1];
write('servers', address + '\n');
const backend = new Process(build('backend'), '--listen', '127.0.0.1:0', '--key-file', place('arena.key'), '--players', place('players'), '--servers', place('servers'), '--protocol-id', PROTOCOL_ID, '--timeout', '10', '--rate', '100', '--gateway', site);
const backendAddress = (await backend.line(/listening on (127\.0\.0\.1:\d+)/))[1];
let gateway = await startGateway(address, { origin: site, 'behind-proxy': true });

execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '3', '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-keyout', place('tls.key'), '-out', place('tls.pem')], { stdio: 'ignore' });
fs.mkdirSync(place('nginx'));
const settings = { LISTEN: `127.0.0.1:${port}`, NAME: 'localhost', BACKEND: backendAddress, GATEWAY: gateway.address, SERVERS: '127.0.0.1', CERTIFICATE: place('tls.pem'), CERTIFICATE_KEY: place('tls.key'), PAGES: build('web/play') };
let template = fs.readFileSync(path.join(ROOT, 'examples/backend/nginx.conf'), 'utf8');
for (const [name, value] of Object.entries(settings)) template = template.replaceAll(`@${name}@`, value);
fs.chmodSync(FOLDER, 0o755); // nginx's workers are another user
fs.writeFileSync(place('nginx/nginx.conf'), (process.getuid() === 0 ? 'user root;\n' : '') + template);
const nginx = new Process('nginx', '-p', place('nginx'), '-c', 'nginx.conf', '-g', 'daemon off;');
atEnd(() => nginx.end('SIGTERM')); // killed, it would leave its workers
await until(() => fs.existsSync(place('nginx/nginx.pid')), 'nginx');

const browser = await puppeteer.launch({ headless: true, executablePath: '/usr/bin/chromium', acceptInsecureCerts: true, userDataDir: place('chromium'), args: CHROMIUM.split(' ') });
atEnd(() => browser.close());

/* ---- players ---- */

async function openTab(name, wishes = '', inBrowser = browser) {
    const page = await (await inBrowser.createBrowserContext()).newPage();
    await page.setViewport({ width: 1280, height: 1040 });
    Object.assign(page, { faults: [], bytes: 0 });
    page.on('pageerror', (error) => page.faults.push(error.message));
    page.on('console', (message) => message.type() === 'error' && page.faults.push(message.text()));
    await page.goto(`${site}/play/${wishes && '#' + wishes}`);
    await page.type('#credential', credentials[name] ?? name);
    await page.click('button');
    await page.waitForFunction('window.arena');
    return page;
}

const state = (page) => page.evaluate(() => window.arena.state());
const playing = (page) => until(async () => {
    const now = await state(page);
    return now.phase === 'playing' && now;
}, 'a page that plays');

async function closeTab(page) {
    const { faults } = page;
    await page.browserContext().close();
    same(faults.join('; '), '', 'what the page complains of');
}

const bots = (count, seconds, first, ...more) => new Process(build('arena-bots'), '--address', address, '--bots', String(count), '--seconds', String(seconds), '--first-id', String(first), ...more);

let display = null;
async function startWindow(seconds, ...options) {
    display ??= new Process('Xvfb', '-displayfd', '1', '-screen', '0', '1400x1000x24', '-nolisten', 'tcp');
    process.env.DISPLAY = ':' + (await display.line(/^(\d+)\n/))[1];
    return new Process(build('arena-client'), '--url', `${site}/v1/connect-token`, '--ca', place('tls.pem'), '--credential-file', place('alice.credential'), '--seconds', String(seconds), ...options);
}

/* ---- what is shown ---- */

await check('a page plays: it joins, walks, shoots, chats', async () => {
    const begun = Date.now();
    const page = await openTab('bob');
    const first = await playing(page);
    const took = Date.now() - begun;
    // One of the four directions is free. After all four it may stand where it began.
    let [moved, walks] = [first, 0];
    for (const key of ['KeyD', 'KeyA', 'KeyW', 'KeyS']) {
        const before = moved;
        await page.keyboard.down(key);
        await sleep(400);
        await page.keyboard.up(key);
        moved = await state(page);
        walks += moved.x !== before.x || moved.y !== before.y;
    }
    holds(walks > 0, 'it did not move');
    await page.keyboard.press('Enter');
    await page.keyboard.type('hello from a page', { delay: 20 });
    await page.keyboard.press('Enter');
    await server.line(/bob: hello from a page/);
    await page.mouse.click(640, 400, { delay: 400 });
    same(moved.kind, 'webrtc', 'the path');
    await closeTab(page);
    return `playing ${took} ms after the click, over ${moved.kind}`;
});

await check('what a page loads, and how soon it draws', async () => {
    const page = await (await browser.createBrowserContext()).newPage();
    const session = await page.createCDPSession();
    await session.send('Network.enable');
    let bytes = 0;
    session.on('Network.loadingFinished', (event) => {
        bytes += event.encodedDataLength;
    });
    await page.goto(`${site}/play/`);
    await page.type('#credential', credentials.bob);
    const begun = Date.now();
    await page.click('button');
    await page.waitForFunction('window.arena && window.arena.state().frames > 0');
    const firstFrame = Date.now() - begun;
    await playing(page);
    holds(bytes < MAX_TAB_BYTES, `${bytes} bytes, and at most ${MAX_TAB_BYTES} are allowed`);
    holds(firstFrame < FIRST_FRAME_MS, `the first frame took ${firstFrame} ms`);
    await page.browserContext().close();
    return `${(bytes / 1024).toFixed(0)} KiB compressed (limit ${MAX_TAB_BYTES / 1024}), the first frame after ${firstFrame} ms (limit ${FIRST_FRAME_MS})`;
});

await check(`a match of ${values.seconds} s: a window, a page and 14 bots`, async () => {
    const seconds = Number(values.seconds);
    const native = bots(14, seconds + 8, 3000, '--trace', place('bots.trace'));
    const window = await startWindow(seconds + 6, '--bot', '--trace', place('window.trace'), '--picture', place('window.bmp'));
    const page = await openTab('carol', 'bot');
    await playing(page);
    await sleep(3000); // its clocks have found their pace, and so have the others'
    await page.evaluate((slow) => {
        window.gc();
        window.arena.countFrames(slow);
    }, SLOW_MS);
    const before = (await state(page)).memory;
    let trace = '';
    const end = Date.now() + seconds * 1000;
    let last = null;
    while (Date.now() < end) {
        last = await state(page);
        trace += [last.slot, last.render, ...last.others.map((other) => other.join(':'))].join(' ') + '\n';
        await sleep(100);
    }
    const picture = await page.screenshot({ path: path.join(values.pictures ?? FOLDER, 'page.png') });
    holds(picture.length > 20000, `the picture has ${picture.length} bytes: it is nearly blank`);
    write('page.trace', trace);
    same(last.phase, 'playing');
    same(last.memory, before, "the program's memory in the page");
    // A shared machine takes the processor away for that long now and then; what is ours would come again and again.
    holds(last.slow <= last.framesCounted / 500, `${last.slow} of ${last.framesCounted} frames took more than ${SLOW_MS} ms`);
    await closeTab(page);
    same(await window.ended, 0, `the window's status; it says ${window.text}`);
    same(await native.ended, 0, `the bots' status; they say ${native.text}`);
    if (values.pictures) execFileSync('convert', [place('window.bmp'), path.join(values.pictures, 'window.png')]);
    const results = ['bots', 'window', 'page'].map((name) => {
        const judged = spawnSync('python3', [path.join(ROOT, 'tests/arena/views.py'), place('server.trace'), place(`${name}.trace`)], { encoding: 'utf8' });
        holds(judged.status === 0, `${name}: ${judged.stdout}${judged.stderr}`);
        return `\n         ${name}: ${judged.stdout.trim()}`;
    });
    return `the page's slowest frame ${last.slowestMs.toFixed(1)} ms, ${last.slow} of ${last.framesCounted} over ${SLOW_MS} ms, ${last.corrections} corrections${results.join('')}`;
});

await check('a page is loaded again, and its player is back', async () => {
    const page = await openTab('bob', 'bot');
    const { slot } = await playing(page);
    await sleep(1100); // a token is newer by a second at least
    await page.reload();
    await page.waitForFunction('window.arena');
    await playing(page);
    await closeTab(page);
    return `slot ${slot} before`;
});

await check('the gateway is killed in mid-game, and the game goes on', async () => {
    const page = await openTab('bob', 'bot');
    const { slot, snapshots } = await playing(page);
    const { port: listens, udpPort } = gateway;
    await gateway.end('SIGKILL');
    await sleep(500);
    const begun = Date.now();
    gateway = await startGateway(address, { origin: site, 'behind-proxy': true, listen: `127.0.0.1:${listens}`, 'udp-port': udpPort });
    const before = (await state(page)).snapshots;
    const after = await until(async () => {
        const now = await state(page);
        return now.snapshots > before + 30 && now;
    }, 'more snapshots');
    holds(snapshots <= before, 'it counted backwards');
    same(after.phase, 'playing');
    same(after.slot, slot, 'the slot');
    await server.line(/bob has another address, and plays on/);
    page.faults.length = 0; // the browser's own words on failed requests
    await closeTab(page);
    return `${((Date.now() - begun) / 1000).toFixed(1)} s after it was back`;
});

await check('without UDP a page plays over a WebSocket, and beside it one over a data channel', async () => {
    const pages = [await openTab('bob', 'bot,websocket'), await openTab('carol', 'bot')];
    const kinds = [];
    for (const page of pages) {
        await page.bringToFront();
        await playing(page);
        kinds.push((await state(page)).kind);
    }
    same(kinds.join(), 'websocket,webrtc');
    for (const page of pages) await closeTab(page);
});

await check('Firefox: a page joins and plays', async () => {
    const firefox = await puppeteer.launch({ headless: true, browser: 'firefox', executablePath: '/usr/bin/firefox-esr', acceptInsecureCerts: true });
    atEnd(() => firefox.close());
    const page = await openTab('bob', 'bot', firefox);
    const first = await playing(page);
    const later = await until(async () => {
        const now = await state(page);
        return now.snapshots > first.snapshots + 60 && now;
    }, 'two seconds of snapshots');
    same(later.phase, 'playing');
    holds(later.x !== first.x || later.y !== first.y, 'it did not move');
    await closeTab(page);
    await firefox.close();
    return `over ${later.kind}`;
});

await check('why a page can not play stands in words on it', async () => {
    const page = await openTab('no such credential');
    const sorry = await until(async () => {
        const now = await state(page);
        return now.phase === 'sorry' && now;
    }, 'a sentence');
    holds(/credential/i.test(sorry.why), sorry.why);
    page.faults.length = 0; // the browser's own words on the 401
    await closeTab(page);
    return `"${sorry.why}"`;
});

await check('the server ends, and the page says so', async () => {
    const page = await openTab('bob', 'bot');
    await playing(page);
    same(await server.end('SIGTERM'), 0, "the server's status");
    const sorry = await until(async () => {
        const now = await state(page);
        return now.phase === 'sorry' && now;
    }, 'a sentence');
    holds(/disconnected/i.test(sorry.why), sorry.why);
    await closeTab(page);
    return `"${sorry.why}"; ${/summary .*/.exec(server.text)[0]}`;
});

await finish('arena');
