/*  The gateway against pages, servers and gateways that are hostile; by itself and behind nginx with the template. Pages are
    programs here: netcode.mjs or bare WebSockets and data channels. browser.mjs has the real ones. */

import * as dgram from 'node:dgram';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as http from 'node:http';
import { createRequire } from 'node:module';
import * as net from 'node:net';
import * as path from 'node:path';
import * as tls from 'node:tls';
import {
    FOLDER,
    Process,
    ROOT,
    WEB,
    atEnd,
    check,
    finish,
    holds,
    metrics,
    mint,
    same,
    sleep,
    startGateway,
    startServer,
    until,
} from './common.mjs';

const require = createRequire(path.join(WEB, 'gateway/gateway.mjs'));
const { WebSocket: Socket } = require('ws');
const nodeDataChannel = require('node-datachannel');
const { Netcode, Transport } = await import(path.join(WEB, 'netcode.mjs'));
const { cleanOffer, readAddress } = await import(path.join(WEB, 'gateway/gateway.mjs'));

const ORIGIN = 'http://page.example';
const FINGERPRINT = Array.from({ length: 32 }, (_, index) => index.toString(16).padStart(2, '0').toUpperCase()).join(':');
const OFFER = [
    'v=0',
    'o=- 4611 2 IN IP4 127.0.0.1',
    's=-',
    't=0 0',
    'a=group:BUNDLE 0',
    'm=application 9 UDP/DTLS/SCTP webrtc-datachannel',
    'c=IN IP4 0.0.0.0',
    'a=candidate:1 1 udp 2113937151 203.0.113.77 5353 typ host',
    'a=ice-ufrag:abcd',
    'a=ice-pwd:0123456789012345678901',
    'a=ice-options:trickle',
    `a=fingerprint:sha-256 ${FINGERPRINT}`,
    'a=setup:actpass',
    'a=mid:0',
    'a=sctp-port:5000',
    'a=max-message-size:262144',
    '',
].join('\r\n');
let nextId = 8000;

/* One HTTP request: { status, headers, body, json }. */
async function ask(gateway, method, target, body, headers = { origin: ORIGIN }) {
    // Not fetch: a connection that it keeps may be closed just when it is used again, and then fetch of Node.js 18 gives up.
    const response = await new Promise((resolve, reject) => {
        const request = http.request(`${gateway.url}${target}`, { method, headers, agent: false }, resolve);
        request.on('error', reject);
        request.end(body);
    });
    let text = '';
    for await (const part of response.setEncoding('utf8')) text += part;
    let json = null;
    try {
        json = JSON.parse(text);
    } catch {
        // metrics
    }
    return { status: response.statusCode, headers: new Headers(Object.entries(response.headers).map(([name, value]) => [name, String(value)])), text, json };
}

const offer = (gateway, value, headers) =>
    ask(gateway, 'POST', '/v1/gateway/offer', typeof value === 'string' ? value : JSON.stringify(value), headers);

function refused(answer, status, error) {
    same(answer.status, status, `the status (${answer.text})`);
    same(answer.json?.error, error, 'the error');
    holds(/^[A-Z].*\.$/.test(answer.json.message), `no sentence: ${answer.json.message}`);
}

/* A WebSocket as a page would have it; `servers` null: it says nothing. */
async function openSocket(gateway, servers, options = {}) {
    const socket = new Socket(`${gateway.url.replace('http', 'ws')}/v1/gateway/socket`, { origin: ORIGIN, ...options });
    atEnd(() => socket.terminate());
    socket.heard = [];
    socket.on('message', (data, isBinary) => socket.heard.push(isBinary ? data : data.toString()));
    socket.closed = new Promise((resolve) => {
        socket.on('close', (code, reason) => resolve(`${code} ${reason}`));
    });
    socket.refusal = new Promise((resolve) => {
        socket.on('unexpected-response', (_, response) => {
            let text = '';
            response
                .on('data', (data) => (text += data))
                .on('end', () => resolve({ status: response.statusCode, text, json: JSON.parse(text) }));
        });
    });
    socket.on('error', () => {});
    await new Promise((resolve) => {
        socket.on('open', resolve).on('close', resolve).on('unexpected-response', resolve);
    });
    if (servers && socket.readyState === Socket.OPEN) {
        socket.send(JSON.stringify({ servers }));
        await until(() => socket.heard.length || socket.readyState !== Socket.OPEN, 'an answer');
    }
    return socket;
}

/* A data channel, and the answer of the gateway that it was made with. */
async function openChannel(gateway, servers) {
    const page = new nodeDataChannel.PeerConnection('page', { iceServers: [], disableAutoNegotiation: true, bindAddress: '127.0.0.1' });
    const channel = page.createDataChannel('netcode', { negotiated: true, id: 0, unordered: true, maxRetransmits: 0 });
    const heard = [];
    let open = false;
    channel.onOpen(() => (open = true));
    channel.onMessage((data) => heard.push(Buffer.from(data)));
    page.setLocalDescription('offer');
    const answer = await offer(gateway, { sdp: page.localDescription().sdp, servers });
    same(answer.status, 200, answer.text);
    page.setRemoteDescription(answer.json.sdp, 'answer');
    await until(() => open, 'the channel to open');
    return { page, channel, heard, sdp: answer.json.sdp };
}

const frame = (index, ...bytes) => Buffer.from([index, ...bytes]);

/* A server that is none: it keeps what it hears. */
async function bareServer() {
    const socket = dgram.createSocket('udp4');
    socket.heard = [];
    socket.on('message', (data, from) => socket.heard.push({ data, from }));
    await new Promise((resolve) => {
        socket.bind(0, '127.0.0.1', resolve);
    });
    socket.name = `127.0.0.1:${socket.address().port}`;
    atEnd(() => socket.close());
    return socket;
}

/* What a counter is more than before. */
async function counted(gateway, name, before, more) {
    await until(async () => ((await metrics(gateway))[name] ?? 0) >= (before[name] ?? 0) + more, `${name} to grow by ${more}, from ${before[name]}`);
}

const dropped = (reason) => `netcode_gateway_dropped_total{reason="${reason}"}`;
const refusals = (error) => `netcode_gateway_refusals_total{error="${error}"}`;

/* A page's other half under Node.js: the platform's own WebSocket sends no Origin, so transport.mjs gets ours. */
globalThis.WebSocket = class extends Socket {
    constructor(url) {
        super(url, { origin: ORIGIN });
    }
};

async function playOver(url, options = {}) {
    const client = await Netcode.create({ gateway: url, log: 'none', ...options });
    atEnd(() => client.destroy());
    client.loop = setInterval(() => client.update(), 16);
    atEnd(() => clearInterval(client.loop));
    return client;
}

function stop(client) {
    clearInterval(client.loop);
    client.destroy();
}

const server = await bareServer();
const second = await bareServer();
const gateway = await startGateway([server.name, second.name], { origin: ORIGIN, 'sessions-per-address': 8, packets: 200, bytes: 100000 });

await check('--help and wrong options', async () => {
    const run = (...options) => {
        const program = new Process('node', path.join(WEB, 'gateway/gateway.mjs'), ...options);
        return program.ended.then((status) => ({ status, text: program.text }));
    };
    const help = await run('--help');
    same(help.status, 0);
    for (const name of [
        'allow',
        'origin',
        'listen',
        'udp-port',
        'public-address',
        'sessions',
        'sessions-per-address',
        'packets',
        'bytes',
        'idle',
        'behind-proxy',
    ])
        holds(help.text.includes(`--${name}`), `--help does not list --${name}`);
    const good = ['--allow', '127.0.0.1:1', '--origin', 'http://a'];
    const wrong = [
        [],
        ['--allow', '127.0.0.1:1'],
        ['--origin', 'http://a'],
        [...good, '--sessions', '0'],
        [...good, '--sessions', 'many'],
        [...good, '--idle', '1e3'],
        [...good, '--listen', 'localhost:1'],
        [...good, '--udp-port', '65536'],
        [...good, '--allow', 'host:1'],
        [...good, '--allow', '127.0.0.1:0'],
        [...good, '--allow', '127.0.0.1'],
        [...good, '--origin', 'http://a/b'],
        [...good, '--public-address', 'name'],
        [...good, '--bytes', '100'],
        [...good, '--nonsense'],
        [...good, 'more'],
    ];
    const results = await Promise.all(wrong.map((options) => run(...options)));
    results.forEach((result, index) =>
        holds(result.status === 2 && result.text.trim(), `${wrong[index].join(' ')}: ${JSON.stringify(result)}`),
    );
    return `${wrong.length} refused`;
});

await check('every refusal has its status, its JSON and its count', async () => {
    const before = await metrics(gateway);
    const servers = [server.name];
    refused(await ask(gateway, 'GET', '/elsewhere'), 404, 'not_found');
    refused(await ask(gateway, 'GET', '/__proto__'), 404, 'not_found');
    refused(await ask(gateway, 'GET', '/v1/gateway/offer'), 405, 'method_not_allowed');
    refused(await ask(gateway, 'POST', '/healthz', ''), 405, 'method_not_allowed');
    refused(await ask(gateway, 'GET', '/v1/gateway/socket'), 426, 'not_a_socket');
    refused(await offer(gateway, { sdp: OFFER, servers }, {}), 403, 'wrong_origin');
    refused(await offer(gateway, { sdp: OFFER, servers }, { origin: 'http://page.example.evil' }), 403, 'wrong_origin');
    refused(await offer(gateway, { sdp: OFFER, servers }, { origin: 'null' }), 403, 'wrong_origin');
    for (const text of ['', '{', '[]', 'null', '7', '"text"']) refused(await offer(gateway, text), 400, 'not_json');
    for (const value of [
        {},
        { sdp: OFFER },
        { servers },
        { sdp: OFFER, servers, more: 1 },
        { sdp: OFFER, servers: [] },
        { sdp: OFFER, servers: server.name },
        { sdp: OFFER, servers: [7] },
        { sdp: OFFER, servers: [null] },
        { sdp: OFFER, servers: ['name:1'] },
        { sdp: OFFER, servers: Array(33).fill(server.name) },
        { sdp: OFFER, servers: { length: 1 } },
    ])
        refused(await offer(gateway, value), 400, 'wrong_field');
    for (const name of ['127.0.0.1:9', '169.254.169.254:80', '[::1]:53', '[::ffff:127.0.0.1]:1'])
        refused(await offer(gateway, { sdp: OFFER, servers: [server.name, name] }), 403, 'server_not_allowed');
    refused(await offer(gateway, 'x'.repeat(10000)), 413, 'too_large');
    await ask(gateway, 'POST', '/v1/gateway/offer', 'x'.repeat(4 << 20)).catch(() => null); // cut off
    const after = await metrics(gateway);
    const grown = Object.fromEntries(
        [
            'not_found',
            'method_not_allowed',
            'not_a_socket',
            'wrong_origin',
            'not_json',
            'wrong_field',
            'server_not_allowed',
            'too_large',
        ].map((name) => [name, after[refusals(name)] - before[refusals(name)]]),
    );
    same(
        JSON.stringify(grown),
        JSON.stringify({
            not_found: 2,
            method_not_allowed: 2,
            not_a_socket: 1,
            wrong_origin: 3,
            not_json: 6,
            wrong_field: 11,
            server_not_allowed: 4,
            too_large: 2,
        }),
    );
    same((await ask(gateway, 'GET', '/healthz')).status, 200);
    const preflight = await ask(gateway, 'OPTIONS', '/v1/gateway/offer');
    same(preflight.status, 204);
    same(preflight.headers.get('access-control-allow-origin'), ORIGIN);
    refused(await ask(gateway, 'OPTIONS', '/v1/gateway/offer', undefined, { origin: 'http://other' }), 403, 'wrong_origin');
});

await check('SDP that is no offer of a data channel', async () => {
    const lines = OFFER.split('\r\n');
    const without = (start) => lines.filter((line) => !line.startsWith(start)).join('\r\n');
    const garbage = [
        '',
        'v=0',
        'x'.repeat(6200),
        '\0\0\0',
        without('m='),
        without('a=ice-ufrag'),
        without('a=ice-pwd'),
        without('a=fingerprint'),
        without('a=mid'),
        without('a=setup'),
        without('a=sctp-port'),
        OFFER + OFFER,
        `${OFFER}m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n`,
        OFFER.replace('actpass', 'passive'),
        OFFER.replace('sha-256', 'md5'),
        OFFER.replace('abcd', 'a'),
        OFFER.replace('abcd', 'ab\u0000cd'),
        OFFER.replace('a=mid:0', `a=mid:${'0'.repeat(17)}`),
        OFFER.replace('5000', '0'),
        OFFER.replace(FINGERPRINT, FINGERPRINT.slice(3)),
    ];
    for (const sdp of [...garbage, 7, null, {}, []]) refused(await offer(gateway, { sdp, servers: [server.name] }), 400, 'wrong_offer');
    let seed = 1;
    const random = (most) => (seed = (seed * 48271) % 2147483647) % most;
    let accepted = 0;
    for (let round = 0; round < 20000; round++) {
        const bytes = Buffer.from(OFFER);
        for (let change = 0; change <= random(4); change++) bytes[random(bytes.length)] = random(128);
        try {
            const clean = cleanOffer(bytes.toString('latin1'));
            holds(
                /^[\x20-\x7e\r\n]*$/.test(clean) && !clean.includes('candidate') && clean.split('\r\n').length === 15,
                `it passed on: ${clean}`,
            );
            accepted++;
        } catch (error) {
            same(error.code, 'wrong_offer', `what garbage leads to (${error.stack})`);
        }
    }
    holds(!cleanOffer(OFFER).includes('203.0.113.77'), 'a candidate of the page is in the offer');
    for (const text of ['1.2.3.4:5', '[::1]:5', '[2001:DB8:0::1]:65535']) holds(readAddress(text), text);
    for (const text of [
        '',
        '1.2.3.4',
        '1.2.3.4:0',
        '1.2.3.4:65536',
        '1.2.3.4:05',
        '1.2.3:5',
        '::1:5',
        '[::1]',
        '[1.2.3.4]:5',
        '[fe80::1%1]:5',
        ' 1.2.3.4:5',
        '1.2.3.4:5\n',
        '01.2.3.4:5',
        7,
        null,
    ])
        same(readAddress(text), null, String(text));
    same((await ask(gateway, 'GET', '/healthz')).json.sessions, 0, 'sessions');
    return `${garbage.length} kinds; of 20000 changed offers ${accepted} were still one`;
});

await check('a WebSocket: datagrams there and back, each as it was', async () => {
    const socket = await openSocket(gateway, [server.name, second.name]);
    same(socket.heard.shift(), '{"open":true}');
    server.heard.length = second.heard.length = 0;
    for (const bytes of [1, 2, 1299, 1300]) {
        const data = crypto.getRandomValues(new Uint8Array(bytes));
        socket.send(Buffer.concat([frame(1), data]));
        const heard = await until(() => second.heard.shift(), 'the datagram');
        holds(heard.data.equals(Buffer.from(data)), 'it is another one');
        same(heard.from.address, '127.0.0.1');
        second.send(heard.data, heard.from.port, heard.from.address);
        const back = await until(() => socket.heard.shift(), 'the answer');
        same(back[0], 1, 'the index');
        holds(back.subarray(1).equals(Buffer.from(data)), 'the answer is another one');
    }
    same(server.heard.length, 0, 'what the other server heard');
    socket.close();
});

await check('datagrams that are none are dropped and counted', async () => {
    const before = await metrics(gateway);
    const socket = await openSocket(gateway, [server.name]);
    const outsider = await bareServer();
    server.heard.length = 0;
    socket.send(frame(0));
    socket.send(Buffer.alloc(0));
    socket.send(Buffer.alloc(1302));
    socket.send(frame(1, 1));
    socket.send(frame(255, 1));
    socket.send('text');
    socket.send(frame(0, 42));
    const heard = await until(() => server.heard[0], 'the one that is good');
    same(server.heard.length, 1);
    socket.heard.length = 0;
    outsider.send(Buffer.from([1, 2, 3]), heard.from.port, '127.0.0.1');
    second.send(Buffer.from([1, 2, 3]), heard.from.port, '127.0.0.1'); // allowed, but not of this session
    server.send(Buffer.alloc(0), heard.from.port, '127.0.0.1');
    server.send(Buffer.alloc(1301), heard.from.port, '127.0.0.1');
    server.send(Buffer.from([7]), heard.from.port, '127.0.0.1');
    await until(() => socket.heard.length, 'the one that is good, back');
    same(socket.heard.length, 1);
    for (const [reason, more] of [
        ['empty', 3],
        ['oversized', 2],
        ['wrong_index', 2],
        ['text', 1],
        ['other_source', 2],
    ])
        await counted(gateway, dropped(reason), before, more);
    socket.close();
});

await check('first messages of a WebSocket that are wrong', async () => {
    for (const [message, sentence] of [
        ['{', 'no JSON'],
        ['{"servers":[]}', 'field'],
        ['{"servers":["127.0.0.1:9"]}', 'does not lead'],
        [Buffer.from('{}'), 'no JSON'],
        ['{"servers":["127.0.0.1:9"],"more":1}', 'field'],
    ]) {
        const socket = await openSocket(gateway, null);
        socket.send(message);
        const closed = await socket.closed;
        holds(closed.startsWith('4000 ') && closed.includes(sentence), closed);
    }
    const huge = await openSocket(gateway, null);
    huge.send(Buffer.alloc(100000));
    holds((await huge.closed).startsWith('1009'), 'a huge message was not refused');
    refused(await (await openSocket(gateway, null, { origin: 'http://evil' })).refusal, 403, 'wrong_origin');
    refused(await (await openSocket(gateway, null, { origin: undefined })).refusal, 403, 'wrong_origin');
});

await check('an address has its sessions, and those that are silent are evicted', async () => {
    const sockets = [];
    for (let number = 0; number < 8; number++) sockets.push(await openSocket(gateway, [server.name]));
    for (const socket of sockets) same(socket.heard[0], '{"open":true}');
    holds((await (await openSocket(gateway, [server.name])).closed).includes('as many sessions'), 'a ninth was let in');
    refused(await offer(gateway, { sdp: OFFER, servers: [server.name] }), 429, 'too_many_of_address');
    const alive = setInterval(() => sockets.slice(1).forEach((socket) => socket.send(frame(0, 1))), 500);
    await sleep(5500);
    const ninth = await openSocket(gateway, [server.name]);
    clearInterval(alive);
    same(ninth.heard[0], '{"open":true}');
    await sockets[0].closed;
    for (const socket of [...sockets.slice(1), ninth]) same(socket.readyState, Socket.OPEN, 'the others');
    for (const socket of [...sockets, ninth]) socket.close();
    await until(async () => (await ask(gateway, 'GET', '/healthz')).json.sessions === 0, 'the sessions to end');
});

await check('thousands of offers, and offers without an answer, leave nothing behind', async () => {
    const small = await startGateway(server.name, { origin: ORIGIN, sessions: 20, 'sessions-per-address': 100 });
    const counts = {};
    const one = async () => {
        const { status } = await offer(small, { sdp: OFFER, servers: [server.name] });
        counts[status] = (counts[status] ?? 0) + 1;
    };
    await one();
    const memory = () => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${small.pid}/status`, 'utf8'))[1]);
    const before = memory();
    const begun = Date.now();
    for (let round = 0; round < 30; round++) await Promise.all(Array.from({ length: 100 }, one));
    // An offer without an answer ends after ten seconds: a machine that takes longer for all has room for twenty more then.
    const most = 20 * (1 + Math.floor((Date.now() - begun) / 10000));
    holds(counts[200] >= 20 && counts[200] <= most, `${counts[200]} were answered, and at most ${most} may be`);
    same(counts[200] + counts[503], 3001, 'how many were answered or refused');
    await until(async () => (await ask(small, 'GET', '/healthz')).json.sessions === 0, 'the sessions to end');
    same((await metrics(small))['netcode_gateway_sessions_ended_total{reason="not_opened"}'], counts[200], 'sessions that did not open');
    const growth = memory() - before;
    holds(growth < 65536, `it grew by ${growth} KiB`);
    same(fs.readdirSync(`/proc/${small.pid}/fd`).length < 60, true, 'few open files');
    await small.end();
    return `3001 offers, ${growth} KiB more`;
});

await check('a page that floods has its rate, and the others do not feel it', async () => {
    const before = await metrics(gateway);
    const flooder = await openSocket(gateway, [server.name]);
    const other = await openSocket(gateway, [second.name]);
    server.heard.length = second.heard.length = 0;
    for (let number = 0; number < 20000; number++) flooder.send(frame(0, 1, 2, 3));
    let answered = 0;
    for (let number = 0; number < 50; number++) {
        other.send(frame(0, number));
        await until(() => second.heard.length > number, 'the other page');
        answered++;
    }
    await counted(gateway, dropped('rate'), before, 10000);
    same(answered, 50);
    holds(server.heard.length >= 150 && server.heard.length < 2000, `${server.heard.length} of 20000 were passed on`);
    const large = await openSocket(gateway, [second.name]);
    second.heard.length = 0;
    for (let number = 0; number < 190; number++) large.send(Buffer.alloc(1301)); // 247,000 bytes, where 100,000 a second may pass
    await until(() => second.heard.length >= 70, 'the first large ones');
    await sleep(300);
    holds(second.heard.length >= 70 && second.heard.length < 170, `${second.heard.length} of 190 large ones were passed on`);
    for (const socket of [flooder, other, large]) socket.close();
    return `${server.heard.length} of 20000 passed on`;
});

await check('a server that floods has its rate, and a page that reads nothing costs no memory', async () => {
    const open = await startGateway(server.name, { origin: ORIGIN, packets: 1000000, bytes: 900000000 });
    const before = await metrics(open);
    const page = await openSocket(open, [server.name]);
    server.heard.length = 0;
    page.send(frame(0, 1));
    const { from } = await until(() => server.heard[0], 'the page');
    page.pause(); // nothing is read any more
    const memory = () => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${open.pid}/status`, 'utf8'))[1]);
    const resident = memory();
    for (let round = 0; round < 200; round++) {
        for (let number = 0; number < 100; number++) server.send(Buffer.alloc(1200, 7), from.port, '127.0.0.1');
        await sleep(2);
    }
    await counted(open, dropped('page_slow'), before, 100);
    const growth = memory() - resident;
    holds(growth < 32768, `it grew by ${growth} KiB`);
    page.terminate();
    await open.end();
    const limited = await metrics(gateway);
    const reader = await openSocket(gateway, [server.name]);
    server.heard.length = 0;
    reader.send(frame(0, 1));
    const path = await until(() => server.heard[0], 'the page');
    for (let round = 0; round < 60; round++) {
        for (let number = 0; number < 50; number++) server.send(Buffer.from([1]), path.from.port, '127.0.0.1');
        await sleep(2); // the system keeps a few hundred at most
    }
    await counted(gateway, dropped('rate'), limited, 1000);
    reader.close();
    return `${growth} KiB more`;
});

await check('connections that say nothing end', async () => {
    const silent = await openSocket(gateway, null);
    const dribble = net.connect(gateway.port, '127.0.0.1');
    dribble.on('error', () => {});
    dribble.write('POST /v1/gateway/offer HTTP/1.1\r\nHost: a\r\n');
    const gone = new Promise((resolve) => {
        dribble.on('close', resolve).on('data', () => {});
    });
    const begun = Date.now();
    await Promise.all([silent.closed, until(() => dribble.destroyed || dribble.readableEnded, 'the slow request to be cut'), gone]);
    same((await ask(gateway, 'GET', '/healthz')).status, 200);
    return `after ${((Date.now() - begun) / 1000).toFixed(0)} s`;
});

await check('an idle session ends', async () => {
    const quick = await startGateway(server.name, { origin: ORIGIN, idle: 1 });
    const page = await openSocket(quick, [server.name]);
    await page.closed;
    same((await metrics(quick))['netcode_gateway_sessions_ended_total{reason="idle"}'], 1);
    await quick.end();
});

await check('a data channel: there and back, and other channels are of no use', async () => {
    const { page, channel, heard, sdp } = await openChannel(gateway, [server.name]);
    holds(sdp.includes(` 127.0.0.1 ${gateway.udpPort} typ host`), 'the shared port is not in the answer');
    server.heard.length = 0;
    channel.sendMessageBinary(frame(0, 1, 2, 3));
    const { data, from } = await until(() => server.heard[0], 'the datagram');
    same(data.toString('hex'), '010203');
    server.send(data, from.port, from.address);
    same((await until(() => heard[0], 'the answer')).toString('hex'), '00010203');
    const before = await metrics(gateway);
    const extra = page.createDataChannel('more', {});
    let closed = false;
    extra.onClosed(() => (closed = true));
    await until(() => closed, 'the other channel to be closed');
    channel.sendMessage('text');
    await counted(gateway, dropped('text'), before, 1);
    page.close();
    await until(async () => (await ask(gateway, 'GET', '/healthz')).json.sessions === 0, 'the session to end');
});

await check('a hostile gateway can drop, delay and repeat, and no more', async () => {
    const echo = await startServer('--echo', '--roaming');
    const honest = await startGateway(echo.address, { origin: ORIGIN });
    // Between the page and the gateway, or what is the same, a gateway that an attacker has changed.
    class Hostile extends Transport {
        kept = [];
        mode = '';
        send(bytes, to) {
            const copy = bytes.slice();
            if (this.mode === 'corrupt' && Math.random() < 0.5)
                copy[Math.floor(Math.random() * copy.length)] ^= 1 << Math.floor(Math.random() * 8);
            if (this.mode === 'repeat') for (let times = 0; times < 3; times++) super.send(copy, to);
            if (this.mode === 'drop' && Math.random() < 0.5) return true;
            if (this.mode === 'delay') {
                setTimeout(() => super.send(copy, to), Math.random() * 200);
                return true;
            }
            return super.send(copy, to);
        }
        receive() {
            if (this.mode === 'repeat' && this.kept.length > 50) return this.kept.shift();
            const packet = super.receive();
            if (!packet) return null;
            const copy = { data: packet.data.slice(), server: packet.server };
            this.kept.push({ data: copy.data.slice(), server: copy.server }, { data: copy.data.slice(), server: copy.server });
            if (this.kept.length > 200) this.kept.splice(0, 100);
            if (this.mode === 'corrupt' && Math.random() < 0.5)
                copy.data[Math.floor(Math.random() * copy.data.length)] ^= 1 << Math.floor(Math.random() * 8);
            if (this.mode === 'drop' && Math.random() < 0.5) return null;
            return copy;
        }
    }
    const details = [];
    for (const mode of ['corrupt', 'repeat', 'drop', 'delay']) {
        const transport = new Hostile();
        const client = await playOver(honest.url, { transport, transportOptions: { webrtc: false } });
        await client.connect(mint(echo.address, { 'client-id': ++nextId }).base64);
        transport.mode = mode;
        const seen = new Set();
        let number = 0;
        let sent = 0;
        const end = Date.now() + 2000;
        while (Date.now() < end) {
            const payload = `payload ${number++}`;
            sent += client.send(new TextEncoder().encode(payload)) ? 1 : 0;
            await sleep(10);
            for (let data; (data = client.receive());) {
                const text = new TextDecoder().decode(data);
                holds(/^payload \d+$/.test(text) && Number(text.slice(8)) < number, `${mode}: a payload was changed: ${text}`);
                holds(!seen.has(text), `${mode}: a payload came twice: ${text}`);
                seen.add(text);
            }
        }
        same(client.state, 'CONNECTED', mode);
        holds(seen.size > sent / 20 && (mode === 'delay' || mode === 'repeat' || seen.size < sent), `${mode}: ${seen.size} of ${sent}`);
        const { packetsDropped } = client.stats();
        if (mode === 'corrupt' || mode === 'repeat')
            holds(packetsDropped > 10, `${mode}: only ${packetsDropped} were dropped by the client`);
        details.push(`${mode} ${seen.size} of ${sent}`);
        stop(client);
    }
    await honest.end();
    await echo.end();
    return details.join(', ');
});

await check('behind nginx: TLS, the real address, limits', async () => {
    execFileSync(
        'openssl',
        [
            'req',
            '-x509',
            '-newkey',
            'rsa:2048',
            '-nodes',
            '-days',
            '2',
            '-subj',
            '/CN=localhost',
            '-addext',
            'subjectAltName=DNS:localhost',
            '-keyout',
            path.join(FOLDER, 'tls.key'),
            '-out',
            path.join(FOLDER, 'tls.pem'),
        ],
        { stdio: 'ignore' },
    );
    const echo = await startServer('--echo');
    const inner = await startGateway(echo.address, { origin: 'https://localhost', 'behind-proxy': true, 'sessions-per-address': 2 });
    // It believes a proxy, and without one there is no address.
    refused(await offer(inner, { sdp: OFFER, servers: [echo.address] }, { origin: 'https://localhost' }), 400, 'wrong_proxy');
    refused(
        await offer(inner, { sdp: OFFER, servers: [echo.address] }, { origin: 'https://localhost', 'x-forwarded-for': '1.2.3.4, 5.6.7.8' }),
        400,
        'wrong_proxy',
    );
    const port = await new Promise((resolve) => {
        const probe = net.createServer().listen(0, '127.0.0.1', () => {
            const { port: free } = probe.address();
            probe.close(() => resolve(free));
        });
    });
    const template = fs.readFileSync(path.join(ROOT, 'examples/backend/nginx.conf'), 'utf8');
    const fill = {
        LISTEN: `127.0.0.1:${port}`,
        NAME: 'localhost',
        BACKEND: '127.0.0.1:9',
        GATEWAY: inner.address,
        SERVERS: '127.0.0.1',
        CERTIFICATE: path.join(FOLDER, 'tls.pem'),
        CERTIFICATE_KEY: path.join(FOLDER, 'tls.key'),
    };
    const prefix = path.join(FOLDER, 'nginx');
    fs.mkdirSync(prefix);
    fs.writeFileSync(
        path.join(prefix, 'nginx.conf'),
        template.replace(/@([A-Z_]+)@/g, (all, name) => fill[name] ?? all),
    );
    process.env.PATH += ':/usr/sbin';
    const nginx = new Process('nginx', '-p', prefix, '-c', 'nginx.conf', '-g', 'daemon off;');
    atEnd(() => nginx.end('SIGTERM'));
    const ca = fs.readFileSync(path.join(FOLDER, 'tls.pem'));
    await until(
        () =>
            new Promise((resolve) => {
                const probe = tls
                    .connect({ port, host: '127.0.0.1', servername: 'localhost', ca }, () => probe.end(() => resolve(true)))
                    .on('error', () => resolve(false));
            }),
        `nginx: ${nginx.text}`,
        10000,
    );
    const outer = { url: `https://127.0.0.1:${port}` };
    const options = { origin: 'https://localhost', ca, servername: 'localhost', headers: { 'X-Forwarded-For': '203.0.113.1' } };
    const open = async () => openSocket(outer, [echo.address], options);
    const pages = [await open(), await open()];
    for (const page of pages) same(page.heard[0], '{"open":true}', 'the answer');
    options.headers['X-Forwarded-For'] = '203.0.113.2'; // a claim that does not count: this is the third of 127.0.0.1
    holds((await (await open()).closed).includes('as many sessions'), 'a page made up its address');
    // A client plays through all of it.
    pages[0].close();
    await until(async () => (await ask(inner, 'GET', '/healthz')).json.sessions === 1, 'one to be free');
    const platform = globalThis.WebSocket;
    globalThis.WebSocket = class extends Socket {
        constructor(url) {
            super(url, options);
        }
    };
    const client = await playOver(outer.url, { transportOptions: { webrtc: false } });
    await client.connect(mint(echo.address, { 'client-id': ++nextId }).base64);
    client.send(new Uint8Array([1, 2, 3]));
    await until(() => client.receive()?.length === 3, 'the echo');
    stop(client);
    globalThis.WebSocket = platform;
    const metricsOutside = await new Promise((resolve) => {
        const socket = tls.connect({ port, host: '127.0.0.1', servername: 'localhost', ca }, () =>
            socket.write('GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n'),
        );
        let text = '';
        socket
            .on('data', (data) => (text += data))
            .on('end', () => resolve(text))
            .on('error', () => resolve(text));
    });
    holds(metricsOutside.includes('404'), 'metrics are shown to the outside');
    pages[1].close();
    await nginx.end();
    await inner.end();
});

await check('it ends with status 0 on SIGTERM, and closes its pages', async () => {
    const page = await openSocket(gateway, [server.name]);
    same(await gateway.end('SIGTERM'), 0, 'the status');
    holds((await page.closed).startsWith('1001'), 'the page was not notified');
    holds(!/[^\x20-\x7e\n]/.test(gateway.text), 'there are bytes in its log');
    // With data channels too, of which one has ended before.
    for (let round = 0; round < 3; round++) {
        const other = await startGateway(server.name, { origin: ORIGIN });
        const pages = [];
        for (let number = 0; number < 3; number++) pages.push((await openChannel(other, [server.name])).page);
        pages.pop().close();
        await sleep(200);
        same(await other.end('SIGTERM'), 0, 'the status with data channels');
        for (const each of pages) each.close();
    }
});

await finish('gateway');
