/*  netcode.mjs under Node.js, over UDP straight to real servers: in place of transport.mjs it gets one of node:dgram.

    node.mjs [--packets=N] [WORD...]    N payloads for the check of memory; 100000 */

import * as dgram from 'node:dgram';
import * as path from 'node:path';
import { parseArgs } from 'node:util';
import { KEY_FILE, Process, WEB, atEnd, check, finish, holds, mint, refuses, same, sleep, startServer, until } from './common.mjs';

const { Netcode, MESSAGE, ConnectError } = await import(path.join(WEB, 'netcode.mjs'));
const { values } = parseArgs({ options: { packets: { type: 'string', default: '100000' } }, strict: false, allowPositionals: true });
const GROWTH_BYTES = 8 << 20; // of the whole process; a leak of 100 bytes a packet is 10 MB

class UdpTransport {
    constructor() {
        this.queue = [];
        this.lost = 0; // the next so many datagrams are not sent
        this.counters = { sent: 0, received: 0 };
    }

    async open({ servers }) {
        this.close();
        this.servers = servers.map((server) => {
            const [address, port] = server.split(':');
            return { address, port: Number(port) };
        });
        this.socket = dgram.createSocket('udp4');
        this.socket.on('message', (data, from) => {
            const server = this.servers.findIndex((each) => each.port === from.port);
            this.queue.push({ data, server });
            this.counters.received++;
        });
        this.socket.on('error', () => {});
        await new Promise((resolve) => {
            this.socket.bind(0, '127.0.0.1', resolve);
        });
    }

    send(bytes, server) {
        this.counters.sent++;
        if (this.lost-- > 0) return true;
        this.socket.send(bytes.slice(), this.servers[server].port, this.servers[server].address);
        return true;
    }

    receive() {
        return this.queue.shift() ?? null;
    }

    close() {
        const old = this.socket;
        setTimeout(() => old?.close(), 50); // Node.js sends a little later
        this.socket = null;
    }
}

const transports = [];

async function makeClient(options = {}) {
    const transport = new UdpTransport();
    transports.push(transport);
    const client = await Netcode.create({ transport, onlog: () => {}, ...options });
    atEnd(() => client.destroy());
    return client;
}

/* Updates until the condition is true, 60 times a second. */
async function play(client, condition, what) {
    return until(async () => {
        client.update();
        const value = condition();
        client.flush();
        if (!value) await sleep(16);
        return value;
    }, what);
}

async function connect(client, token) {
    const connected = client.connect(token);
    let done = false;
    connected.then(
        () => (done = true),
        () => (done = true),
    );
    await play(client, () => done, 'an end of connect');
    return connected;
}

let nextId = 1000;
const server = await startServer('--echo', '--replace');

await check('connects, says payloads and hears them again', async () => {
    const states = [];
    const client = await makeClient({ onstate: (state, previous) => states.push(`${previous}>${state}`) });
    same(client.state, 'DISCONNECTED');
    same(client.send(new Uint8Array(3)), false, 'send while not connected');
    await connect(client, mint(server.address, { 'client-id': nextId++ }).base64);
    same(client.state, 'CONNECTED');
    same(client.clientIndex, 0);
    same(client.maxClients, 32);
    same(
        states.join(' '),
        'DISCONNECTED>SENDING_CONNECTION_REQUEST SENDING_CONNECTION_REQUEST>SENDING_CONNECTION_RESPONSE ' +
            'SENDING_CONNECTION_RESPONSE>CONNECTED',
    );
    for (const bytes of [1, 2, 100, 1199, 1200]) {
        const sent = crypto.getRandomValues(new Uint8Array(bytes));
        same(client.send(sent), true);
        const heard = await play(client, () => client.receive(), 'the echo');
        holds(Buffer.from(heard).equals(Buffer.from(sent)), `${bytes} bytes came back as others`);
    }
    await play(client, () => client.stats().roundTrip > 0, 'a measured round trip');
    const stats = client.stats();
    holds(
        stats.packetsSent > 5 && stats.packetsReceived > 5 && stats.connects === 1 && stats.roundTrip < 0.2 && stats.transport.sent > 5,
        JSON.stringify(stats),
    );
    client.disconnect();
    same(client.state, 'DISCONNECTED');
    client.destroy();
    return `round trip ${(stats.roundTrip * 1000).toFixed(1)} ms`;
});

await check('a token as bytes, a buffer or base64; a second connect replaces the first', async () => {
    const client = await makeClient();
    let id = 100; // a server remembers four tokens of a player
    for (const form of [
        (token) => token.bytes,
        (token) => token.bytes.buffer,
        (token) => new DataView(token.bytes.buffer),
        (token) => ` ${token.base64}\n`,
    ]) {
        await connect(client, form(mint(server.address, { 'client-id': ++id })));
        same(client.state, 'CONNECTED');
    }
    client.destroy();
});

await check('reports say why not', async () => {
    const client = await makeClient();
    const expired = await refuses(() => connect(client, mint(server.address, { expire: 0 }).base64), /expired/);
    holds(expired instanceof ConnectError, 'it is no ConnectError');
    same(expired.report.state, 'CONNECT_TOKEN_EXPIRED');
    same(client.report().text, expired.message);
    holds(expired.report.tokenSecondsLeft <= 0, 'the token has seconds left');
    const broken = mint(server.address).bytes;
    broken.fill(0, 0, 13);
    await refuses(() => connect(client, broken), /token/);
    same(client.state, 'INVALID_CONNECT_TOKEN');
    const dead = mint('127.0.0.1:9', { timeout: 1, expire: 3 });
    await refuses(() => connect(client, dead.base64), /answer|respon|reach/i);
    same(client.report().servers, 1);
    client.destroy();
    return expired.message;
});

await check('mistakes are exceptions with a sentence', async () => {
    const client = await makeClient();
    const joined = await makeClient({ messages: { channels: 2, maxMessageBytes: 5000 } });
    const sentence = /^[A-Z].*\.$|^[a-z]+[. ].*\.$/;
    const data = new Uint8Array(1);
    const cases = [
        () => client.connect('not base64!'),
        () => client.connect('AAAA'),
        () => client.connect(new Uint8Array(2047)),
        () => client.connect(7),
        () => client.connect(null),
        () => client.connect(),
        () => client.update(NaN),
        () => client.update(Infinity),
        () => client.update('1'),
        () => client.update(null),
        () => client.update(1n),
        () => client.send(new Uint8Array(0)),
        () => client.send(new Uint8Array(1201)),
        () => client.send('text'),
        () => client.send([1, 2]),
        () => client.send(),
        () => client.sendMessage(0, 2, data),
        () => client.receiveMessage(),
        () => client.receiveMessageEvent(),
        () => joined.send(data),
        () => joined.receive(),
        () => joined.sendMessage(2, 2, data),
        () => joined.sendMessage(-1, 2, data),
        () => joined.sendMessage(0.5, 2, data),
        () => joined.sendMessage('0', 2, data),
        () => joined.sendMessage(0, 8, data),
        () => joined.sendMessage(0, NaN, data),
        () => joined.sendMessage(0, 2, new Uint8Array(5001)),
        () => joined.sendMessage(0, 2, 'text'),
        () => joined.sendMessage(0, 2, data, { ttl: -1 }),
        () => joined.sendMessage(0, 2, data, { ttl: NaN }),
        () => joined.sendMessage(0, 2, data, { receipt: 1.5 }),
        () => joined.sendMessage(0, 3, data, { ttl: 1 }),
        () => Netcode.create({ log: 'loud' }),
        () => Netcode.create({ transport: {} }),
        () => Netcode.create({ messages: { channels: 33 } }),
        () => Netcode.create({ messages: { channels: 0 } }),
        () => Netcode.create({ messages: { maxMessageBytes: 1e9 } }),
        () => Netcode.create({ messages: { maxMessageBytes: '9' } }),
        () => new Netcode(),
        () => Netcode.create({ gateway: 'nowhere' }).then((other) => other.connect(mint(server.address, { 'client-id': nextId++ }).base64)),
    ];
    for (const each of cases) await refuses(each, sentence);
    client.destroy();
    joined.destroy();
    return `${cases.length} of them`;
});

await check('after destroy every call throws, but destroy', async () => {
    const client = await makeClient({ messages: true });
    client.destroy();
    client.destroy();
    const calls = [
        () => client.connect(mint(server.address).bytes),
        () => client.update(),
        () => client.flush(),
        () => client.send(new Uint8Array(1)),
        () => client.receive(),
        () => client.sendMessage(0, 0, new Uint8Array(1)),
        () => client.receiveMessage(),
        () => client.receiveMessageEvent(),
        () => client.state,
        () => client.isConnected,
        () => client.clientIndex,
        () => client.maxClients,
        () => client.stats(),
        () => client.report(),
        () => client.rebind(),
        () => client.disconnect(),
    ];
    for (const call of calls) await refuses(call, /was destroyed/);
});

/*  A page asks for another path beside one that is silent; the silent one ends, and then the try for the other one fails. */
await check('a page whose paths end in either order tries again', async () => {
    const { Transport } = await import(path.join(WEB, 'transport.mjs'));
    const real = globalThis.WebSocket;
    try {
        for (const order of [[0, 1], [1, 0]]) {
            const sockets = [];
            globalThis.WebSocket = class {
                bufferedAmount = 0;
                constructor() {
                    sockets.push(this);
                }
                close() {}
            };
            const transport = new Transport();
            const opened = transport.open({ gateway: 'http://127.0.0.1:1', servers: ['127.0.0.1:2'], webrtc: false });
            await until(() => sockets[0]?.onmessage, 'the first try');
            sockets[0].onmessage({ data: 'ok' });
            await opened;
            same(transport.rebind(), true);
            await until(() => sockets[1]?.onclose, 'the second path');
            for (const each of order) {
                sockets[each].onclose({ code: 1006, reason: '' });
                await sleep(50); // for the timer of a try, which is set or not
            }
            await until(() => sockets[2], 'a third try');
            transport.close();
        }
    } finally {
        globalThis.WebSocket = real;
    }
});

await check('messages of every kind and size, ordered over losses', async () => {
    const echo = new Process(path.join(WEB, 'tests/messages_server'), KEY_FILE);
    const [, address] = await echo.line(/listening on (\S+)/);
    const client = await makeClient({ messages: { channels: 32, maxMessageBytes: 100000 } });
    await connect(client, mint(address).base64);
    transports.at(-1).lost = 5;
    for (let number = 0; number < 200; number++) same(client.sendMessage(1, MESSAGE.RELIABLE_ORDERED, new Uint8Array([number])), true);
    const heard = [];
    await play(
        client,
        () => {
            for (let message; (message = client.receiveMessage());) heard.push(message.data[0]);
            return heard.length === 200;
        },
        '200 messages',
    );
    holds(
        heard.every((number, index) => number === index),
        `the order was ${heard}`,
    );
    for (const bytes of [0, 1, 1180, 1181, 99999, 100000]) {
        const sent = new Uint8Array(bytes).map((_, index) => index * 7);
        same(client.sendMessage(3, MESSAGE.RELIABLE, sent, { receipt: bytes + 1 }), true);
        const message = await play(client, () => client.receiveMessage(), `${bytes} bytes`);
        same(message.channel, 3);
        same(message.kind, MESSAGE.RELIABLE);
        holds(Buffer.from(message.data).equals(Buffer.from(sent)), `${bytes} bytes came back as others`);
        const acked = await play(
            client,
            () => {
                for (let event; (event = client.receiveMessageEvent());) if (event.type === 'acked') return event;
                return null;
            },
            'a receipt',
        );
        same(acked.receipt, bytes + 1, 'the receipt');
    }
    let full = 0;
    for (let number = 0; number < 100; number++) if (!client.sendMessage(0, MESSAGE.RELIABLE, new Uint8Array(100000))) full++;
    holds(full > 0, 'the buffer has no end');
    const stats = client.stats().messages;
    holds(stats.messagesReceived >= 206 && stats.roundTrip > 0, JSON.stringify(stats));
    client.destroy();
    await echo.end();
});

await check('a transport that throws or returns wrong values does no harm', async () => {
    const client = await makeClient();
    const transport = transports.at(-1);
    const log = console.error;
    let errors = 0;
    console.error = () => errors++;
    try {
        const { receive } = transport;
        await connect(client, mint(server.address, { 'client-id': nextId++ }).base64);
        transport.receive = () => {
            throw new Error('broken');
        };
        client.update();
        const forged = [
            { data: new Uint8Array(100000), server: 0 },
            { data: new Uint8Array(0), server: 0 },
            { data: new Uint8Array(30), server: 31 },
            { data: new Uint8Array(30), server: -1 },
            { data: crypto.getRandomValues(new Uint8Array(60)), server: 0 },
        ];
        transport.receive = () => forged.shift() ?? null;
        client.update();
        transport.receive = receive;
        client.send(new Uint8Array([42]));
        same((await play(client, () => client.receive(), 'the echo'))[0], 42);
        holds(errors > 0, 'the exception was not reported');
        holds(client.stats().packetsDropped >= 3, JSON.stringify(client.stats()));
    } finally {
        console.error = log;
        client.destroy();
    }
});

await check('memory stays as it is', async () => {
    const client = await makeClient();
    await connect(client, mint(server.address, { 'client-id': nextId++ }).base64);
    const wanted = Number(values.packets);
    const payload = new Uint8Array(200);
    let sent = 0;
    let heard = 0;
    // On a busy machine the server's turns are few, and most of a flood is lost on the way: then it takes more to be heard.
    const round = async (until) => {
        while (sent < until || (heard <= until / 10 && sent < 10 * until)) {
            for (let i = 0; i < 12; i++) sent += client.send(payload) ? 1 : 0;
            client.update();
            while (client.receive()) heard++;
            await new Promise(setImmediate);
            await new Promise(setImmediate);
        }
    };
    await round(wanted / 5);
    globalThis.gc();
    const before = process.memoryUsage();
    await round(wanted);
    globalThis.gc();
    const after = process.memoryUsage();
    const growth = Math.max(after.rss - before.rss, after.external + after.heapUsed - before.external - before.heapUsed);
    holds(growth < GROWTH_BYTES, `it grew by ${growth} bytes`);
    holds(heard > wanted / 10, `only ${heard} of ${sent} came back`);
    same(client.state, 'CONNECTED');
    client.destroy();
    return `${sent} payloads sent, ${heard} heard, ${(growth / 1024).toFixed(0)} KiB more`;
});

await finish('node');
