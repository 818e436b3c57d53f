/*  The path of netcode datagrams from a page to the gateway: a WebRTC data channel that neither repeats nor orders, or a
    WebSocket where that does not open in time. The packets are sealed in the page and opened in the game server: nothing on
    this path can read or change one. It can lose, delay, repeat and reorder them, as a network can.

        const transport = new Transport();
        await transport.open({ gateway: 'https://play.example.org', servers: ['203.0.113.5:40000'] });
        transport.send(bytes, 0);          // to servers[0]; copied
        const packet = transport.receive();   // { data, server }, or null; valid until the next receive
        transport.close();

    A datagram travels as one byte, the index of the server, and then its own 1 to 1300 bytes. When the path dies, another
    one is opened, with pauses that grow; the netcode session stays, if the server has `roaming` on and its timeout is longer.

    WebTransport would be a third entry of CARRIERS, in front: a function that opens a path and returns { kind, send, buffered, close }.
    README.md says why it is not there. */

const MAX_DATAGRAM_BYTES = 1300;
const MAX_SERVERS = 32;
const OPEN_SECONDS = 10; // for one try, all carriers together
const RETRY_SECONDS = [0.2, 5]; // the first pause before another try, and the longest
const LINGER_MS = 250; // for what was sent just before the end, a disconnect above all
const REBIND_SECONDS = [2, 16]; // the same between two tries because nothing is heard, though the path seems to be open

/* A gateway's refusal: `status` and `code` are those of its JSON. Only 429 and 5xx are worth another try. */
export class GatewayError extends Error {
    constructor(message, status = 0, code = '') {
        super(message);
        Object.assign(this, { name: 'GatewayError', status, code });
    }
}

function isNumber(value, least, most) {
    return typeof value === 'number' && value >= least && value <= most;
}

/* The gateway's address with another path, and for WebSockets another scheme. */
function endpoint(gateway, path, scheme) {
    const url = new URL(path, gateway);
    if (scheme) url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    return url.href;
}

async function postOffer(options, sdp, signal) {
    let response;
    try {
        const body = JSON.stringify({ sdp, servers: options.servers });
        const headers = { 'Content-Type': 'application/json' };
        response = await fetch(endpoint(options.gateway, '/v1/gateway/offer'), {
            method: 'POST',
            headers,
            body,
            signal,
            cache: 'no-store',
        });
    } catch (error) {
        throw new GatewayError(`The gateway at ${options.gateway} can not be reached (${error.message}).`);
    }
    let answer = null;
    try {
        answer = await response.json();
    } catch {
        // no JSON: the status says what there is to say
    }
    if (response.ok && answer && typeof answer.sdp === 'string') return answer.sdp;
    const message = answer && typeof answer.message === 'string' ? answer.message : `The gateway answered with status ${response.status}.`;
    throw new GatewayError(message, response.status, answer && typeof answer.error === 'string' ? answer.error : '');
}

/* The offer goes out without waiting for candidates: the gateway reads none, it answers where packets come from. */
async function openWebRtc(options, signal, events) {
    if (typeof RTCPeerConnection !== 'function') throw new GatewayError('This browser has no WebRTC here.');
    const connection = new RTCPeerConnection({ iceServers: [] });
    const channel = connection.createDataChannel('netcode', { ordered: false, maxRetransmits: 0, negotiated: true, id: 0 });
    let ended = false;
    const end = () => {
        if (ended) return;
        ended = true;
        connection.onconnectionstatechange = null;
        channel.close();
        setTimeout(() => connection.close(), LINGER_MS);
        events.closed();
    };
    try {
        channel.binaryType = 'arraybuffer';
        channel.onmessage = (event) => events.message(event.data);
        const opened = new Promise((resolve, reject) => {
            channel.onopen = resolve;
            channel.onclose = () => {
                reject(new GatewayError('The data channel did not open.'));
                end();
            };
            connection.onconnectionstatechange = () => {
                if (connection.connectionState === 'failed') channel.onclose();
            };
            signal.addEventListener('abort', () => reject(signal.reason), { once: true });
            if (signal.aborted) reject(signal.reason);
        });
        opened.catch(() => {}); // it may fail while the offer is still on its way
        await connection.setLocalDescription(await connection.createOffer());
        await connection.setRemoteDescription({ type: 'answer', sdp: await postOffer(options, connection.localDescription.sdp, signal) });
        await opened;
        if (ended) throw new GatewayError('The data channel closed at once.');
        return { kind: 'webrtc', send: (bytes) => channel.send(bytes), buffered: () => channel.bufferedAmount, close: end };
    } catch (error) {
        ended = true; // it never was open: that it closed is not reported
        connection.close();
        throw error;
    }
}

function openWebSocket(options, signal, events) {
    return new Promise((resolve, reject) => {
        if (typeof WebSocket !== 'function') throw new GatewayError('There are no WebSockets here.');
        const socket = new WebSocket(endpoint(options.gateway, '/v1/gateway/socket', true));
        let open = false;
        socket.binaryType = 'arraybuffer';
        signal.addEventListener('abort', () => open || socket.close(), { once: true });
        socket.onopen = () => socket.send(JSON.stringify({ servers: options.servers }));
        socket.onmessage = (event) => {
            if (typeof event.data !== 'string') {
                if (open) events.message(event.data);
            } else if (!open) {
                open = true; // the gateway says that the list of servers is accepted
                resolve({
                    kind: 'websocket',
                    send: (bytes) => socket.send(bytes),
                    buffered: () => socket.bufferedAmount,
                    close: () => socket.close(),
                });
            }
        };
        socket.onclose = (event) => {
            if (open) events.closed();
            else reject(new GatewayError(event.reason || `The gateway at ${options.gateway} closed the WebSocket (${event.code}).`));
        };
    });
}

/* In the order in which they are tried; each next one begins when the one before it was not open in time, or has failed. */
const CARRIERS = [openWebRtc, openWebSocket];

export class Transport {
    #options = null;
    #carrier = null;
    #attempt = null; // what ends a try that is in progress
    #timer = null;
    #pause = RETRY_SECONDS[0];
    #rebindPause = REBIND_SECONDS[0];
    #rebindAt = 0;
    #first = 0; // the carrier to begin with: the one that worked last
    #ring = []; // received datagrams, in entries that are used again
    #head = 0;
    #count = 0;
    #pending = []; // datagrams to be sent when a path is open: the newest few
    #frame = new Uint8Array(1 + MAX_DATAGRAM_BYTES);
    #counters = { sent: 0, received: 0, dropped: 0, reconnects: 0 };
    #error = null;

    /*  Resolves when a path is open, and rejects with a sentence when none can be had. Options:
        gateway            its address, https://host[:port]; where the page comes from, if there is none
        servers            addresses as the connect token has them: 1 to 32
        fallbackSeconds    after which a WebSocket is tried beside WebRTC; 3
        webrtc             false: WebSocket only
        queue              received datagrams that are kept, 256: the oldest is dropped
        bufferedBytes      not yet sent, 16384: above it datagrams are dropped */
    async open(options) {
        const gateway = options.gateway ?? globalThis.location?.origin;
        const servers = options.servers;
        if (typeof gateway !== 'string' || !/^https?:\/\/[^/?#]+\/?$/.test(gateway))
            throw new TypeError('The gateway is an address like https://play.example.org, without a path.');
        if (
            !Array.isArray(servers) ||
            servers.length < 1 ||
            servers.length > MAX_SERVERS ||
            !servers.every((server) => typeof server === 'string' && server)
        )
            throw new TypeError('The servers are a list of 1 to 32 addresses.');
        const settings = { fallbackSeconds: 3, webrtc: true, queue: 256, bufferedBytes: 16384, ...options, gateway, servers: [...servers] };
        if (!isNumber(settings.fallbackSeconds, 0, 60)) throw new RangeError('fallbackSeconds is a number from 0 to 60.');
        if (!Number.isInteger(settings.queue) || !isNumber(settings.queue, 1, 65536))
            throw new RangeError('queue is a whole number from 1 to 65536.');
        if (!isNumber(settings.bufferedBytes, 1, 1 << 24)) throw new RangeError('bufferedBytes is a number from 1 to 16777216.');
        this.close();
        this.#options = settings;
        this.#ring = Array.from({ length: settings.queue }, () => ({ data: null, server: 0 }));
        this.#first = settings.webrtc ? 0 : 1;
        const own = this.#options;
        try {
            await this.#connect();
        } catch (error) {
            if (this.#options === own) this.close();
            throw error;
        }
    }

    /* Opens a path, and takes the old one out of use when the new one is there. */
    async #connect() {
        const attempt = new AbortController();
        this.#attempt?.abort(new GatewayError('Another try has begun.'));
        this.#attempt = attempt;
        const limit = setTimeout(
            () => attempt.abort(new GatewayError(`No path to the gateway opened in ${OPEN_SECONDS} s.`)),
            OPEN_SECONDS * 1000,
        );
        try {
            const carrier = await this.#race(attempt.signal);
            if (attempt.signal.aborted) {
                carrier.close();
                throw attempt.signal.reason;
            }
            const old = this.#carrier;
            this.#carrier = carrier;
            this.#first = carrier.kind === 'websocket' ? 1 : 0;
            this.#pause = RETRY_SECONDS[0];
            this.#error = null;
            old?.close();
            for (const { server, data } of this.#pending.splice(0)) this.send(data, server);
        } catch (error) {
            this.#error = error;
            throw error;
        } finally {
            clearTimeout(limit);
            if (this.#attempt === attempt) this.#attempt = null;
        }
    }

    /* The first carrier that opens; the next one starts when the one before it takes too long or fails. */
    #race(signal) {
        const options = this.#options;
        return new Promise((resolve, reject) => {
            let next = this.#first;
            let open = 0;
            let won = false;
            let timer = null;
            const tries = [];
            const start = () => {
                clearTimeout(timer);
                if (won || signal.aborted || next >= CARRIERS.length) return;
                const own = { carrier: null, abort: new AbortController() };
                // What comes late, of a path for another list of servers, is none of ours.
                const isOurs = () => this.#options === options;
                const events = { message: (data) => isOurs() && this.#arrived(data), closed: () => isOurs() && this.#ended(own.carrier) };
                tries.push(own);
                open++;
                CARRIERS[next++](options, own.abort.signal, events).then(
                    (carrier) => {
                        open--;
                        if (won || signal.aborted) return carrier.close();
                        won = true;
                        clearTimeout(timer);
                        own.carrier = carrier;
                        for (const other of tries) if (other !== own) other.abort.abort(new GatewayError('Another path was faster.'));
                        return resolve(carrier);
                    },
                    (error) => {
                        open--;
                        // A refusal for good is one for every carrier: there is no sense in another.
                        if (error.status >= 400 && error.status < 500) reject(error);
                        else if (next < CARRIERS.length) start();
                        else if (!open) reject(error);
                    },
                );
                if (next < CARRIERS.length) timer = setTimeout(start, options.fallbackSeconds * 1000);
            };
            const stop = () => {
                clearTimeout(timer);
                if (won) return;
                for (const each of tries) each.abort.abort(signal.reason);
                reject(signal.reason);
            };
            signal.addEventListener('abort', stop, { once: true });
            start();
        });
    }

    #arrived(data) {
        const bytes = data.byteLength;
        const server = bytes > 1 ? new DataView(data).getUint8(0) : MAX_SERVERS;
        if (bytes < 2 || bytes > 1 + MAX_DATAGRAM_BYTES || server >= this.#options.servers.length) {
            this.#counters.dropped++;
            return;
        }
        if (this.#count === this.#ring.length) {
            this.#head = (this.#head + 1) % this.#ring.length;
            this.#count--;
            this.#counters.dropped++;
        }
        const entry = this.#ring[(this.#head + this.#count) % this.#ring.length];
        entry.data = new Uint8Array(data, 1);
        entry.server = server;
        this.#count++;
        this.#counters.received++;
        this.#rebindPause = REBIND_SECONDS[0];
    }

    /* The path that was in use has closed by itself. */
    #ended(carrier) {
        if (!carrier || carrier !== this.#carrier) return;
        this.#carrier = null;
        this.#retry(0);
    }

    #retry(seconds) {
        if (!this.#options || this.#timer !== null) return;
        this.#timer = setTimeout(() => {
            this.#timer = null;
            if (!this.#options || this.#carrier || this.#attempt) return;
            this.#counters.reconnects++;
            this.#connect().catch(() => {
                const pause = this.#pause * (0.75 + Math.random() / 2); // not all players of a gateway at once
                this.#pause = Math.min(this.#pause * 2, RETRY_SECONDS[1]);
                if (!this.#carrier) this.#retry(pause);
            });
        }, seconds * 1000);
    }

    /* Sends a copy. False: it was dropped, because too much waits already, or no path is open. */
    send(bytes, server) {
        if (
            !this.#options ||
            bytes.length < 1 ||
            bytes.length > MAX_DATAGRAM_BYTES ||
            !(server >= 0 && server < this.#options.servers.length)
        ) {
            this.#counters.dropped++;
            return false;
        }
        if (!this.#carrier) {
            this.#pending.push({ server, data: bytes.slice() });
            if (this.#pending.length <= 4) return true;
            this.#pending.shift();
            this.#counters.dropped++;
            return false;
        }
        if (this.#carrier.buffered() > this.#options.bufferedBytes) {
            this.#counters.dropped++;
            return false;
        }
        this.#frame[0] = server;
        this.#frame.set(bytes, 1);
        try {
            this.#carrier.send(this.#frame.subarray(0, 1 + bytes.length));
        } catch {
            this.#counters.dropped++; // it is closing, and its event is yet to come
            return false;
        }
        this.#counters.sent++;
        return true;
    }

    receive() {
        if (this.#count === 0) return null;
        const entry = this.#ring[this.#head];
        this.#head = (this.#head + 1) % this.#ring.length;
        this.#count--;
        return entry;
    }

    /*  Nothing is heard: opens another path beside the one in use, which is kept until the new one is open. netcode.h asks
        once a second; tries become rarer until something is heard. Returns true if one has begun. */
    rebind() {
        const now = Date.now() / 1000;
        if (!this.#options || !this.#carrier || this.#attempt || now < this.#rebindAt) return false;
        this.#rebindAt = now + this.#rebindPause;
        this.#rebindPause = Math.min(this.#rebindPause * 2, REBIND_SECONDS[1]);
        this.#counters.reconnects++;
        this.#connect().catch(() => this.#carrier || this.#retry(0)); // the path in use may have ended meanwhile
        return true;
    }

    close() {
        const carrier = this.#carrier;
        this.#carrier = null;
        this.#options = null;
        this.#attempt?.abort(new GatewayError('The transport was closed.'));
        this.#attempt = null;
        clearTimeout(this.#timer);
        this.#timer = null;
        this.#count = 0;
        this.#pending.length = 0;
        this.#pause = RETRY_SECONDS[0];
        this.#rebindAt = 0;
        carrier?.close();
    }

    /* 'closed' before open and after close, 'open', or 'opening': also between two paths. */
    get state() {
        return !this.#options ? 'closed' : this.#carrier ? 'open' : 'opening';
    }

    /* 'webrtc' or 'websocket'; null while no path is open. */
    get kind() {
        return this.#carrier ? this.#carrier.kind : null;
    }

    /* Why the last try failed: an Error, or null. */
    get error() {
        return this.#error;
    }

    get counters() {
        return { ...this.#counters, kind: this.kind };
    }
}
