/*  The gateway from web pages to netcode servers: each player's datagrams come in by a WebRTC data channel or a WebSocket, and
    go out from a UDP socket of his own, as they are. It has no key and reads nothing but the first byte in front of each
    datagram, which is the index of the server in the list that the page gave. The game servers need not know of it.

        npm ci
        node gateway.mjs --allow 203.0.113.5:40000 --origin https://play.example.org --public-address 203.0.113.9 --behind-proxy

        POST /v1/gateway/offer     {"sdp": "...", "servers": ["203.0.113.5:40000"]}   the answer is {"sdp": "..."}
        GET  /v1/gateway/socket    a WebSocket; its first message is {"servers": [...]}, the answer {"open": true}; then datagrams
        GET  /healthz
        GET  /metrics              Prometheus text; not for the outside

    It speaks plain HTTP, on loopback: TLS is the business of the proxy in front of it (../backend/nginx.conf). All data
    channels share one UDP port. Needs Node.js 18 or newer; --help lists the options. */

import * as dgram from 'node:dgram';
import * as http from 'node:http';
import * as net from 'node:net';
import { parseArgs } from 'node:util';
import nodeDataChannel from 'node-datachannel';
import { WebSocketServer } from 'ws';

const MAX_DATAGRAM_BYTES = 1300;
const MAX_SERVERS = 32; // of a token
const MAX_BODY_BYTES = 8192;
const MAX_DRAINED_BYTES = 262144;
const MAX_SDP_BYTES = 6144;
const MAX_BUFFERED_BYTES = 65536; // to a page that does not read: more is dropped
const OPEN_SECONDS = 10; // from the offer to the open channel, and from the WebSocket to its first message
const EVICT_SECONDS = 5; // at its limit, an address may replace a session of its own that was silent for so long
const SWEEP_MS = 500;
const END_MS = 500; // for the last packets when a signal ends it

// Why a request was refused: the name in the JSON, the HTTP status, the sentence.
const REFUSALS = {
    not_found: [404, 'There is nothing at this address.'],
    method_not_allowed: [405, 'This address takes another method: see Allow.'],
    wrong_origin: [403, 'Pages from this origin may not use this gateway.'],
    wrong_proxy: [400, 'The proxy does not say which address the request comes from.'],
    too_large: [413, 'The body is too large.'],
    not_json: [400, 'The body is no JSON object.'],
    wrong_field: [400, 'A field is missing, unknown, or has a value that it can not have.'],
    wrong_offer: [400, 'The SDP is no offer of a WebRTC data channel.'],
    server_not_allowed: [403, 'This gateway does not lead to one of the servers in the token.'],
    too_many_of_address: [429, 'Your address has as many sessions as one may have.'],
    too_many: [503, 'The gateway has as many sessions as it can have.'],
    not_a_socket: [426, 'This address is for WebSockets.'],
    internal: [500, 'The gateway could not do it.'],
};

// Why a datagram was dropped.
const DROPS = ['empty', 'oversized', 'wrong_index', 'text', 'rate', 'other_source', 'page_slow', 'not_open', 'send_error'];

class Refusal extends Error {
    constructor(name) {
        super(REFUSALS[name][1]);
        this.code = name;
    }
}

/* 203.0.113.5:40000 or [2001:db8::7]:40000, in one form; null for anything else. */
export function readAddress(text) {
    const match = typeof text === 'string' && text.length < 64 ? /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+)):([1-9][0-9]{0,4})$/.exec(text) : null;
    if (!match || Number(match[3]) > 65535) return null;
    const family = match[1] ? 6 : 4;
    const host = match[1] ?? match[2];
    if (net.isIP(host) !== family) return null;
    const port = Number(match[3]);
    const address = new net.SocketAddress({ address: host, family: `ipv${family}`, port }).address;
    return { address, family, port, key: family === 6 ? `[${address}]:${port}` : `${address}:${port}` };
}

function readJson(text, names) {
    let value;
    try {
        value = JSON.parse(text);
    } catch {
        throw new Refusal('not_json');
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Refusal('not_json');
    if (Object.keys(value).sort().join() !== names) throw new Refusal('wrong_field');
    return value;
}

/*  What is needed of a page's offer, in an offer of our own: libdatachannel gets nothing that a page wrote, and above all
    no candidates, to which it would send. It answers where authentic packets come from. */
export function cleanOffer(sdp) {
    if (typeof sdp !== 'string' || sdp.length > MAX_SDP_BYTES) throw new Refusal('wrong_offer');
    const one = (pattern) => {
        const found = sdp.match(pattern) ?? [];
        if (found.length !== 1) throw new Refusal('wrong_offer');
        return found[0].trim();
    };
    one(/^m=.*$/gm);
    one(/^m=application [0-9]{1,5} UDP\/DTLS\/SCTP webrtc-datachannel\r?$/gm);
    const mid = one(/^a=mid:[A-Za-z0-9_-]{1,16}\r?$/gm);
    const ufrag = one(/^a=ice-ufrag:[A-Za-z0-9+/]{4,64}\r?$/gm);
    const password = one(/^a=ice-pwd:[A-Za-z0-9+/]{22,128}\r?$/gm);
    const fingerprint = one(/^a=fingerprint:sha-256 (?:[0-9A-Fa-f]{2}:){31}[0-9A-Fa-f]{2}\r?$/gm);
    const setup = one(/^a=setup:actpass\r?$/gm);
    const port = one(/^a=sctp-port:[1-9][0-9]{0,4}\r?$/gm);
    const lines = [
        'v=0',
        'o=- 1 1 IN IP4 0.0.0.0',
        's=-',
        't=0 0',
        `a=group:BUNDLE ${mid.slice(6)}`,
        'm=application 9 UDP/DTLS/SCTP webrtc-datachannel',
        'c=IN IP4 0.0.0.0',
    ];
    return [...lines, mid, ufrag, password, fingerprint, setup, port, 'a=max-message-size:1400', ''].join('\r\n');
}

/* A rate in things a second, of which a second's worth may come at once. */
class Allowance {
    constructor(rate) {
        this.rate = this.left = rate;
        this.at = performance.now();
    }

    take(count) {
        const now = performance.now();
        this.left = Math.min(this.rate, this.left + ((now - this.at) / 1000) * this.rate);
        this.at = now;
        if (this.left < count) return false;
        this.left -= count;
        return true;
    }
}

/* One player: a channel on one side, a UDP socket (of each family that his servers have) on the other. */
class Session {
    constructor(gateway, address, servers, kind) {
        Object.assign(this, { gateway, address, servers, kind });
        this.open = false;
        this.ended = false;
        this.begun = this.heard = performance.now();
        this.channel = null; // { send(Buffer), buffered(), close() }
        this.sockets = new Map();
        this.indexes = new Map(servers.map((server, index) => [server.key, index]));
        const options = gateway.options;
        this.packets = { up: new Allowance(options.packets), down: new Allowance(options.packets) };
        this.bytes = { up: new Allowance(options.bytes), down: new Allowance(options.bytes) };
        for (const family of new Set(servers.map((server) => server.family))) this.#openSocket(family);
    }

    #openSocket(family) {
        const socket = dgram.createSocket({ type: family === 6 ? 'udp6' : 'udp4' });
        this.sockets.set(family, socket);
        socket.on('message', (data, from) => this.#fromServer(data, from, family));
        socket.on('error', () => this.gateway.drop('send_error'));
        socket.bind({ address: this.gateway.options.bind[family], port: 0 });
    }

    #allowed(direction, bytes) {
        if (this.packets[direction].take(1) && this.bytes[direction].take(bytes)) return true;
        this.gateway.drop('rate');
        return false;
    }

    /* A frame from the page: a byte of index, and a datagram. */
    fromPage(frame) {
        if (this.ended) return;
        this.heard = performance.now();
        const bytes = frame.length - 1;
        if (bytes < 1) return this.gateway.drop('empty');
        if (bytes > MAX_DATAGRAM_BYTES) return this.gateway.drop('oversized');
        const server = this.servers[frame[0]];
        if (!server) return this.gateway.drop('wrong_index');
        if (!this.#allowed('up', bytes)) return;
        this.gateway.count('up', bytes);
        this.sockets.get(server.family).send(frame, 1, bytes, server.port, server.address, (error) => {
            if (error) this.gateway.drop('send_error');
        });
    }

    /* A datagram from a server, or from anyone who has found the port. */
    #fromServer(data, from, family) {
        const key = family === 6 ? `[${from.address}]:${from.port}` : `${from.address}:${from.port}`;
        const index = this.indexes.get(key);
        if (this.ended) return;
        if (index === undefined) return this.gateway.drop('other_source');
        if (data.length < 1) return this.gateway.drop('empty');
        if (data.length > MAX_DATAGRAM_BYTES) return this.gateway.drop('oversized');
        if (!this.open) return this.gateway.drop('not_open');
        if (!this.#allowed('down', data.length)) return;
        if (this.channel.buffered() > MAX_BUFFERED_BYTES) return this.gateway.drop('page_slow');
        const frame = Buffer.allocUnsafe(1 + data.length);
        frame[0] = index;
        data.copy(frame, 1);
        try {
            this.channel.send(frame);
        } catch {
            return this.gateway.drop('send_error'); // it closes: its event is yet to come
        }
        this.gateway.count('down', data.length);
    }

    opened() {
        if (this.open || this.ended) return;
        this.open = true;
        this.heard = performance.now();
        this.gateway.opened[this.kind]++;
    }

    end() {
        if (this.ended) return;
        this.ended = true;
        this.gateway.forget(this);
        for (const socket of this.sockets.values()) socket.close();
        this.channel?.close();
    }
}

export class Gateway {
    constructor(options) {
        this.options = options;
        this.sessions = new Set();
        this.ofAddress = new Map();
        this.drops = Object.fromEntries(DROPS.map((name) => [name, 0]));
        this.refusals = Object.fromEntries(Object.keys(REFUSALS).map((name) => [name, 0]));
        this.traffic = { up: { packets: 0, bytes: 0 }, down: { packets: 0, bytes: 0 } };
        this.opened = { webrtc: 0, websocket: 0 };
        this.ends = { idle: 0, not_opened: 0, replaced: 0 };
        this.listener = null;
    }

    drop(name) {
        this.drops[name]++;
    }

    count(direction, bytes) {
        this.traffic[direction].packets++;
        this.traffic[direction].bytes += bytes;
    }

    // ---- who comes in ----

    /* Proxies are believed only where an option says that there is one, and then they must say exactly one address. */
    addressOf(request) {
        if (!this.options.behindProxy) return request.socket.remoteAddress;
        const claimed = request.headers['x-forwarded-for'];
        if (typeof claimed !== 'string' || !net.isIP(claimed)) throw new Refusal('wrong_proxy');
        return claimed;
    }

    checkOrigin(request) {
        const origin = request.headers.origin;
        if (typeof origin !== 'string' || !this.options.origins.has(origin)) throw new Refusal('wrong_origin');
        return origin;
    }

    readServers(list) {
        if (!Array.isArray(list) || list.length < 1 || list.length > MAX_SERVERS) throw new Refusal('wrong_field');
        const servers = list.map(readAddress);
        if (servers.includes(null)) throw new Refusal('wrong_field');
        if (!servers.every((server) => this.options.allowed.has(server.key))) throw new Refusal('server_not_allowed');
        return servers;
    }

    /* A session for this address, if it may have one more. */
    admit(address, servers, kind) {
        let own = this.ofAddress.get(address);
        if (own && own.size >= this.options.sessionsPerAddress) {
            let silent = null;
            for (const session of own) if (!silent || session.heard < silent.heard) silent = session;
            if (performance.now() - silent.heard < EVICT_SECONDS * 1000) throw new Refusal('too_many_of_address');
            this.ends.replaced++;
            silent.end();
            own = this.ofAddress.get(address);
        }
        if (this.sessions.size >= this.options.sessions) throw new Refusal('too_many');
        const session = new Session(this, address, servers, kind);
        this.sessions.add(session);
        if (own) own.add(session);
        else this.ofAddress.set(address, new Set([session]));
        return session;
    }

    forget(session) {
        this.sessions.delete(session);
        const own = this.ofAddress.get(session.address);
        own.delete(session);
        if (own.size === 0) this.ofAddress.delete(session.address);
    }

    /* Ends what never opened, and what was not heard of for too long. */
    sweep() {
        const now = performance.now();
        for (const session of this.sessions) {
            if (!session.open && now - session.begun > OPEN_SECONDS * 1000) {
                this.ends.not_opened++;
                session.end();
            } else if (now - session.heard > this.options.idle * 1000) {
                this.ends.idle++;
                session.end();
            }
        }
    }

    // ---- WebRTC ----

    async offer(address, body) {
        const { sdp, servers } = readJson(body, 'sdp,servers');
        const offer = cleanOffer(sdp);
        const session = this.admit(address, this.readServers(servers), 'webrtc');
        try {
            return { sdp: await this.answer(session, offer) };
        } catch (error) {
            session.end();
            throw error;
        }
    }

    answer(session, offer) {
        const { udpPort, udpAddress } = this.options;
        const connection = new nodeDataChannel.PeerConnection('netcode', {
            iceServers: [],
            bindAddress: udpAddress,
            enableIceUdpMux: true,
            portRangeBegin: udpPort,
            portRangeEnd: udpPort,
            maxMessageSize: 1400,
            disableAutoNegotiation: true,
        });
        let channel = null;
        session.channel = {
            send: (frame) => channel.sendMessageBinary(frame),
            buffered: () => channel.bufferedAmount(),
            close: () => {
                try {
                    channel?.close();
                    connection.close();
                } catch {
                    // it has closed by itself
                }
            },
        };
        return new Promise((resolve, reject) => {
            connection.onStateChange((state) => {
                if (state === 'failed' || state === 'closed') session.end();
            });
            // The one channel that we use was agreed on beforehand; any other is of no use.
            connection.onDataChannel((other) => other.close());
            connection.onGatheringStateChange((state) => {
                if (state !== 'complete') return;
                const answer = connection.localDescription();
                if (answer) resolve(this.withPublicAddress(answer.sdp));
                else reject(new Error('libdatachannel gave no answer'));
            });
            connection.setRemoteDescription(offer, 'offer');
            channel = connection.createDataChannel('netcode', { negotiated: true, id: 0, unordered: true, maxRetransmits: 0 });
            channel.onOpen(() => session.opened());
            channel.onClosed(() => session.end());
            channel.onError(() => session.end());
            channel.onMessage((message) => {
                if (typeof message === 'string') this.drop('text');
                else session.fromPage(message instanceof ArrayBuffer ? new Uint8Array(message) : message);
            });
            connection.setLocalDescription('answer');
        });
    }

    /* Behind a NAT, the machine's own addresses are of no use to players: the one that leads here takes their place. */
    withPublicAddress(sdp) {
        if (this.options.publicAddresses.length === 0) return sdp;
        const lines = sdp.split('\r\n').filter((line) => !line.startsWith('a=candidate:') && line !== 'a=end-of-candidates' && line !== '');
        this.options.publicAddresses.forEach((address, index) => {
            lines.push(`a=candidate:${index + 1} 1 UDP ${2122317823 - index} ${address} ${this.options.udpPort} typ host`);
        });
        return [...lines, 'a=end-of-candidates', ''].join('\r\n');
    }

    // ---- WebSockets ----

    socket(address, socket) {
        let session = null;
        const refuse = (error) => {
            const name = error instanceof Refusal ? error.code : 'internal';
            this.refusals[name]++;
            socket.close(4000, REFUSALS[name][1]);
        };
        const timer = setTimeout(() => {
            this.ends.not_opened++;
            socket.terminate();
        }, OPEN_SECONDS * 1000);
        socket.on('message', (data, isBinary) => {
            if (session) {
                if (isBinary) session.fromPage(data);
                else this.drop('text');
                return;
            }
            clearTimeout(timer);
            try {
                if (isBinary) throw new Refusal('not_json');
                session = this.admit(address, this.readServers(readJson(data.toString(), 'servers').servers), 'websocket');
                session.channel = {
                    send: (frame) => socket.send(frame),
                    buffered: () => socket.bufferedAmount,
                    close: () => {
                        socket.close(1001);
                        setTimeout(() => socket.terminate(), 1000).unref(); // it may read nothing any more
                    },
                };
                session.opened();
                socket.send('{"open":true}');
            } catch (error) {
                refuse(error);
            }
        });
        socket.on('error', () => {}); // too large, malformed: it closes
        socket.on('close', () => {
            clearTimeout(timer);
            session?.end();
        });
    }

    // ---- HTTP ----

    /* Reads a body. One that is too large is heard out for a while, so that the answer is read and not lost in a reset. */
    body(request) {
        return new Promise((resolve, reject) => {
            const pieces = [];
            let bytes = 0;
            request.on('data', (piece) => {
                bytes += piece.length;
                if (bytes <= MAX_BODY_BYTES) pieces.push(piece);
                else if (bytes > MAX_DRAINED_BYTES) request.socket.destroy();
            });
            request.on('end', () =>
                bytes > MAX_BODY_BYTES ? reject(new Refusal('too_large')) : resolve(Buffer.concat(pieces).toString('utf8')),
            );
            request.on('error', () => {}); // it is closed as well
            request.on('close', () => reject(bytes > MAX_BODY_BYTES ? new Refusal('too_large') : new Error('the request ended early')));
        });
    }

    reply(response, status, body, headers = {}) {
        const text = typeof body === 'string' ? body : JSON.stringify(body);
        const type = typeof body === 'string' ? 'text/plain; version=0.0.4' : 'application/json';
        response.writeHead(status, {
            'Content-Type': type,
            'Content-Length': Buffer.byteLength(text),
            'Cache-Control': 'no-store',
            ...headers,
        });
        response.end(text);
    }

    refusal(error) {
        const name = error instanceof Refusal ? error.code : 'internal';
        this.refusals[name]++;
        if (name === 'internal') console.error(`internal: ${error.message}`);
        return { status: REFUSALS[name][0], body: { error: name, message: REFUSALS[name][1] } };
    }

    async request(request, response) {
        const headers = {};
        try {
            const path = request.url.split('?')[0];
            const methods = { '/v1/gateway/offer': 'POST', '/v1/gateway/socket': 'GET', '/healthz': 'GET', '/metrics': 'GET' };
            const method = Object.hasOwn(methods, path) ? methods[path] : null;
            if (!method) throw new Refusal('not_found');
            const isPreflight = path === '/v1/gateway/offer' && request.method === 'OPTIONS';
            if (request.method !== method && !isPreflight) {
                headers.Allow = method;
                throw new Refusal('method_not_allowed');
            }
            if (path === '/healthz') return this.reply(response, 200, { sessions: this.sessions.size });
            if (path === '/metrics') return this.reply(response, 200, this.metrics());
            if (path === '/v1/gateway/socket') {
                headers.Upgrade = 'websocket';
                throw new Refusal('not_a_socket');
            }
            const origin = this.checkOrigin(request);
            Object.assign(headers, { 'Access-Control-Allow-Origin': origin, Vary: 'Origin' });
            if (isPreflight) {
                Object.assign(headers, {
                    'Access-Control-Allow-Methods': 'POST',
                    'Access-Control-Allow-Headers': 'Content-Type',
                    'Access-Control-Max-Age': '600',
                });
                response.writeHead(204, headers);
                return response.end();
            }
            const address = this.addressOf(request);
            return this.reply(response, 200, await this.offer(address, await this.body(request)), headers);
        } catch (error) {
            if (request.destroyed && !request.complete) {
                if (error instanceof Refusal) this.refusals[error.code]++;
                return undefined; // no client is there to read an answer
            }
            const { status, body } = this.refusal(error);
            if (status === 429 || status === 503) headers['Retry-After'] = '2';
            if (body.error === 'too_large') headers.Connection = 'close';
            return this.reply(response, status, body, headers);
        }
    }

    upgrade(sockets, request, stream, head) {
        stream.on('error', () => {});
        try {
            if (request.url.split('?')[0] !== '/v1/gateway/socket') throw new Refusal('not_found');
            this.checkOrigin(request);
            const address = this.addressOf(request);
            if (this.sessions.size >= this.options.sessions) throw new Refusal('too_many');
            if (sockets.clients.size >= 2 * this.options.sessions) throw new Refusal('too_many'); // those that say nothing
            sockets.handleUpgrade(request, stream, head, (socket) => this.socket(address, socket));
        } catch (error) {
            const { status, body } = this.refusal(error);
            const text = JSON.stringify(body);
            const rest = ['Content-Type: application/json', `Content-Length: ${text.length}`, 'Connection: close', '', text].join('\r\n');
            stream.end(`HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n${rest}`);
        }
    }

    metrics() {
        const lines = [];
        const family = (name, type, help, values) => {
            lines.push(`# HELP netcode_gateway_${name} ${help}`, `# TYPE netcode_gateway_${name} ${type}`);
            for (const [labels, value] of values) lines.push(`netcode_gateway_${name}${labels} ${value}`);
        };
        const labelled = (label, counts) => Object.entries(counts).map(([name, value]) => [`{${label}="${name}"}`, value]);
        const now = { webrtc: 0, websocket: 0 };
        for (const session of this.sessions) now[session.kind]++;
        family('sessions', 'gauge', 'Players now.', labelled('kind', now));
        family('sessions_opened_total', 'counter', 'Channels that opened.', labelled('kind', this.opened));
        family('sessions_ended_total', 'counter', 'Sessions that the gateway ended, by reason.', labelled('reason', this.ends));
        family(
            'packets_total',
            'counter',
            'Datagrams passed on: up to servers, down to pages.',
            labelled('direction', { up: this.traffic.up.packets, down: this.traffic.down.packets }),
        );
        family(
            'bytes_total',
            'counter',
            'Their bytes.',
            labelled('direction', { up: this.traffic.up.bytes, down: this.traffic.down.bytes }),
        );
        family('dropped_total', 'counter', 'Datagrams dropped, by reason.', labelled('reason', this.drops));
        family('refusals_total', 'counter', 'Requests refused, by the error in the answer.', labelled('error', this.refusals));
        return `${lines.join('\n')}\n`;
    }

    // ---- its life ----

    async start() {
        const sockets = new WebSocketServer({ noServer: true, maxPayload: 2048, perMessageDeflate: false, clientTracking: true });
        this.sockets = sockets;
        this.server = http.createServer(
            { maxHeaderSize: 8192, requestTimeout: 5000, headersTimeout: 5000, connectionsCheckingInterval: 1000 },
            (request, response) => {
                this.request(request, response).catch((error) => console.error(error.message));
            },
        );
        this.server.maxConnections = 4 * this.options.sessions + 1000;
        this.server.on('upgrade', (request, stream, head) => this.upgrade(sockets, request, stream, head));
        if (this.options.udpPort === 0) this.options.udpPort = await freePort(this.options.udpAddress);
        // libjuice keeps the shared port open while it has a listener or an agent.
        this.listener = new nodeDataChannel.IceUdpMuxListener(this.options.udpPort, this.options.udpAddress);
        await new Promise((resolve, reject) => {
            this.server.once('error', reject);
            this.server.listen(this.options.listen.port, this.options.listen.host, resolve);
        });
        this.timer = setInterval(() => this.sweep(), SWEEP_MS);
        return this.server.address();
    }

    async stop() {
        clearInterval(this.timer);
        this.server.close();
        for (const session of this.sessions) session.end();
        for (const socket of this.sockets.clients) socket.close(1001);
        await new Promise((resolve) => setTimeout(resolve, END_MS));
        for (const socket of this.sockets.clients) socket.terminate();
        this.server.closeAllConnections();
        // Not nodeDataChannel.cleanup(): version 0.33.4 can crash in it when there were connections. The process ends anyway.
        this.listener.stop();
    }
}

function freePort(address) {
    return new Promise((resolve, reject) => {
        const probe = dgram.createSocket(net.isIP(address) === 6 ? 'udp6' : 'udp4');
        probe.once('error', reject);
        probe.bind({ address, port: 0 }, () => {
            const { port } = probe.address();
            probe.close(() => resolve(port));
        });
    });
}

const HELP = `node gateway.mjs --allow ADDRESS... --origin ORIGIN... [options]

  --allow ADDRESS            a game server that pages may reach, 203.0.113.5:40000 or [2001:db8::7]:40000; repeat it
  --origin ORIGIN            where pages may come from, https://play.example.org; repeat it
  --listen ADDRESS           HTTP; 127.0.0.1:8090
  --udp-port PORT            of all data channels; 40100 (0: any)
  --udp-address ADDRESS      to bind that port to; 0.0.0.0
  --public-address ADDRESS   that players send to, without the port, where it is not the machine's own; repeat it
  --bind-address ADDRESS     to send to game servers from; 127.0.0.1 and ::1. Give yours where they are on other machines, for
                             each family
  --sessions COUNT           at once; 1000
  --sessions-per-address N   at once; 16
  --packets RATE             datagrams a second of a session, in each direction; 500
  --bytes RATE               bytes a second of a session, in each direction; 250000
  --idle SECONDS             a session of which nothing is heard ends; 15
  --behind-proxy             players' addresses are in X-Forwarded-For, which the proxy sets
  --help
`;

/* The options, checked; throws a sentence. */
export function readOptions(argv) {
    const text = { type: 'string' };
    const many = { type: 'string', multiple: true, default: [] };
    const { values } = parseArgs({
        args: argv,
        options: {
            allow: many,
            origin: many,
            listen: { ...text, default: '127.0.0.1:8090' },
            'udp-port': { ...text, default: '40100' },
            'udp-address': { ...text, default: '0.0.0.0' },
            'public-address': many,
            'bind-address': many,
            sessions: { ...text, default: '1000' },
            'sessions-per-address': { ...text, default: '16' },
            packets: { ...text, default: '500' },
            bytes: { ...text, default: '250000' },
            idle: { ...text, default: '15' },
            'behind-proxy': { type: 'boolean', default: false },
            help: { type: 'boolean', default: false },
        },
    });
    if (values.help) return null;
    const number = (name, least, most) => {
        const value = /^[0-9]{1,9}$/.test(values[name]) ? Number(values[name]) : NaN;
        if (!(value >= least && value <= most)) throw new Error(`--${name} takes a whole number from ${least} to ${most}.`);
        return value;
    };
    const isHost = (name, host) => {
        if (!net.isIP(host)) throw new Error(`--${name} takes an address in numbers, and not ${host}.`);
        return host;
    };
    const allowed = new Set();
    for (const server of values.allow) {
        const address = readAddress(server);
        if (!address) throw new Error(`--allow takes an address and port in numbers, and not ${server}.`);
        allowed.add(address.key);
    }
    if (allowed.size === 0) throw new Error('Give each game server with --allow: pages may reach no other.');
    const origins = new Set(values.origin);
    for (const origin of origins)
        if (!/^https?:\/\/[a-z0-9.[\]:-]+$/.test(origin))
            throw new Error(`--origin takes https://name or https://name:port, and not ${origin}.`);
    if (origins.size === 0) throw new Error('Give the origin of the pages with --origin: others are refused.');
    const listen = /^(?:\[([0-9a-f:]+)\]|([0-9.]+)):([0-9]{1,5})$/.exec(values.listen);
    if (!listen || Number(listen[3]) > 65535) throw new Error('--listen takes an address and port in numbers.');
    const bind = { 4: '127.0.0.1', 6: '::1' };
    for (const host of values['bind-address']) bind[net.isIP(isHost('bind-address', host))] = host;
    return {
        allowed,
        origins,
        bind,
        listen: { host: isHost('listen', listen[1] ?? listen[2]), port: Number(listen[3]) },
        udpPort: number('udp-port', 0, 65535),
        udpAddress: isHost('udp-address', values['udp-address']),
        publicAddresses: values['public-address'].map((host) => isHost('public-address', host)),
        sessions: number('sessions', 1, 100000),
        sessionsPerAddress: number('sessions-per-address', 1, 100000),
        packets: number('packets', 1, 1000000),
        bytes: number('bytes', 1300, 1000000000 - 1),
        idle: number('idle', 1, 3600),
        behindProxy: values['behind-proxy'],
    };
}

async function main() {
    let options;
    try {
        options = readOptions(process.argv.slice(2));
    } catch (error) {
        console.error(error.message);
        process.exit(2);
    }
    if (!options) {
        process.stdout.write(HELP);
        return;
    }
    const gateway = new Gateway(options);
    const { address, port } = await gateway.start();
    for (const name of ['SIGTERM', 'SIGINT']) process.once(name, () => gateway.stop().then(() => process.exit(0)));
    console.log(`listening on ${address}:${port}, data channels on UDP port ${options.udpPort}`);
}

if (import.meta.main ?? process.argv[1] === (await import('node:url')).fileURLToPath(import.meta.url)) {
    main().catch((error) => {
        console.error(error.message);
        process.exit(1);
    });
}
