/*  netcode.h in a web page: connects with a connect token to a game server that knows nothing of browsers, over a gateway that
    can read nothing. Everything is sealed and opened in the page, by the same C code as elsewhere, as WebAssembly.

        import { Netcode, MESSAGE } from './netcode.mjs';

        const client = await Netcode.create({ gateway: 'https://play.example.org', messages: true });
        function frame() {
            client.update();                                       // each frame: receives, sends what is due
            for (let m; (m = client.receiveMessage()); ) play(m.channel, m.data);
            client.sendMessage(0, MESSAGE.RELIABLE_ORDERED, bytes);
            client.flush();                                        // what was queued goes out now and not in the next frame
            requestAnimationFrame(frame);
        }
        requestAnimationFrame(frame);
        await client.connect(token);                               // 2048 bytes or base64, from your backend

    build.sh puts this file, transport.mjs and the module into build/web: serve that folder. Times are seconds. Mistakes are
    exceptions whose message is a sentence. netcode.d.mts has the types. */

import makeModule from './netcode_wasm.mjs';
import { Transport } from './transport.mjs';

export { Transport, GatewayError } from './transport.mjs';

export const TOKEN_BYTES = 2048;
export const MAX_PAYLOAD_BYTES = 1200;
export const MAX_MESSAGE_BYTES = 16777216;

/* How a message is delivered: see 15 in the manual in netcode.h. */
export const MESSAGE = Object.freeze({
    UNRELIABLE: 0,
    UNRELIABLE_SEQUENCED: 1,
    RELIABLE: 2,
    RELIABLE_ORDERED: 3,
    RELIABLE_SEQUENCED: 4,
});

const STATE_DISCONNECTED = 0;
const STATE_CONNECTED = 3;
const LOG_LEVELS = { none: 0, error: 1, info: 2, debug: 3 };
const EVENTS = ['none', 'acked', 'lost', 'spurious', 'progress', 'broken'];

// What netcode_wasm_stats writes, in its order.
const STATS = [
    'packetsSent',
    'packetsReceived',
    'packetsDropped',
    'bytesSent',
    'bytesReceived',
    'sendErrors',
    'connects',
    'disconnects',
    'rebinds',
    'roundTrip',
    'roundTripLowest',
    'roundTripVariation',
    'packetsLost',
    'packetsReordered',
    'lossShare',
    'packetsQueued',
];
const MESSAGE_STATS = [
    'messagesSent',
    'messagesReceived',
    'retries',
    'roundTrip',
    'ping',
    'lossSent',
    'lossReceived',
    'sendRate',
    'sendBufferUsed',
    'receiveBufferUsed',
];

/* Why a connection could not be made, or ended: the message is the sentence of report(). */
export class ConnectError extends Error {
    constructor(report) {
        super(report.text);
        this.name = 'ConnectError';
        this.report = report;
    }
}

function isWhole(value, least, most) {
    return Number.isInteger(value) && value >= least && value <= most;
}

function checkWhole(name, value, least, most) {
    if (!isWhole(value, least, most)) throw new RangeError(`${name} is a whole number from ${least} to ${most}, and not ${String(value)}.`);
    return value;
}

/* The bytes of any view or buffer, without a copy. */
function bytesOf(name, value) {
    if (value instanceof Uint8Array) return value;
    if (value instanceof ArrayBuffer) return new Uint8Array(value);
    if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    throw new TypeError(`${name} is a Uint8Array or another view of bytes.`);
}

function tokenBytes(token) {
    let bytes;
    if (typeof token === 'string') {
        let text;
        try {
            text = atob(token.trim());
        } catch {
            throw new TypeError('The connect token is no base64.');
        }
        bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
    } else bytes = bytesOf('The connect token', token);
    if (bytes.length !== TOKEN_BYTES) throw new RangeError(`A connect token has ${TOKEN_BYTES} bytes, and not ${bytes.length}.`);
    return bytes;
}

/* The module's bytes where there is no page to fetch them for: Node.js reads the file. */
async function readWasm(url) {
    const { readFile } = await import('node:fs/promises');
    globalThis.crypto ??= (await import('node:crypto')).webcrypto; // Node.js 18 has it under that name alone
    return readFile(url);
}

export class Netcode {
    #module;
    #transport;
    #options;
    #state = STATE_DISCONNECTED;
    #waiting = null; // { resolve, reject } of connect
    #attempt = 0;
    #destroyed = false;
    #result; // index into HEAP32
    #inputCapacity;
    #message = { channel: 0, kind: 0, data: null }; // receiveMessage returns it each time

    /*  A client, not connected yet. Options:
        gateway      the gateway's address; where the page comes from, if there is none
        messages     true, or { channels: 1 to 32, maxMessageBytes }: messages instead of payloads
        transport    an object of yours in place of transport.mjs's: open({ gateway, servers }), send, receive, close
        transportOptions   for transport.mjs: fallbackSeconds and so on
        wasm         the address of netcode.wasm, or its bytes; beside this file, if there is none
        log          'none', 'error' (default), 'info' or 'debug'
        onlog        gets (level, line); else lines go to the console
        onstate      gets (state, previous), names both, during update, connect or disconnect */
    static async create(options = {}) {
        const messages = options.messages === true ? {} : options.messages || null;
        const channels = messages ? checkWhole('messages.channels', messages.channels ?? 32, 1, 32) : 0;
        const most = messages ? checkWhole('messages.maxMessageBytes', messages.maxMessageBytes ?? 262144, 1, MAX_MESSAGE_BYTES) : 0;
        const level = LOG_LEVELS[options.log ?? 'error'];
        if (level === undefined) throw new TypeError("log is 'none', 'error', 'info' or 'debug'.");
        const transport = options.transport ?? new Transport();
        for (const name of ['open', 'send', 'receive', 'close'])
            if (typeof transport[name] !== 'function') throw new TypeError(`The transport has no function ${name}.`);

        const settings = { netcodeTransport: transport, netcodeLog: (number, line) => Netcode.#log(options, number, line) };
        if (options.wasm instanceof Uint8Array || options.wasm instanceof ArrayBuffer) settings.wasmBinary = options.wasm;
        else if (options.wasm) settings.locateFile = () => String(options.wasm);
        else if (typeof window === 'undefined' && typeof process === 'object' && process.versions?.node)
            settings.wasmBinary = await readWasm(new URL('./netcode.wasm', import.meta.url));
        else settings.locateFile = () => new URL('./netcode.wasm', import.meta.url).href;
        const module = await makeModule(settings);
        if (!module._netcode_wasm_create(performance.now() / 1000, level, channels, most))
            throw new RangeError('There is not enough memory for messages of this size.');
        return new Netcode(module, transport, { ...options, isJoined: channels > 0, channels }, Math.max(MAX_PAYLOAD_BYTES, most));
    }

    /* Use Netcode.create. */
    constructor(module, transport, options, inputCapacity) {
        if (!module || !options) throw new TypeError('Use Netcode.create, which loads the module.');
        this.#module = module;
        this.#transport = transport;
        this.#options = options;
        this.#inputCapacity = inputCapacity;
        this.#result = module._netcode_wasm_result() >> 2;
    }

    static #log(options, level, line) {
        const name = Object.keys(LOG_LEVELS)[level];
        if (options.onlog) options.onlog(name, line);
        else if (name === 'error') console.error(`netcode: ${line}`);
        else console.log(`netcode: ${line}`);
    }

    #alive() {
        if (this.#destroyed) throw new Error('This client was destroyed.');
        return this.#module;
    }

    #text(pointer) {
        return this.#module.UTF8ToString(pointer);
    }

    #moved(state) {
        if (state === this.#state) return;
        const previous = this.#state;
        this.#state = state;
        if (state === STATE_CONNECTED) this.#settle(null);
        else if (state <= STATE_DISCONNECTED && previous > STATE_DISCONNECTED) {
            this.#transport.close(); // a path without a session is of no use to anyone, and the gateway ends it
            this.#settle(new ConnectError(this.report()));
        }
        this.#options.onstate?.(
            this.#text(this.#module._netcode_wasm_state_name(state)),
            this.#text(this.#module._netcode_wasm_state_name(previous)),
        );
    }

    #settle(error) {
        const waiting = this.#waiting;
        this.#waiting = null;
        if (!waiting) return;
        if (error) waiting.reject(error);
        else waiting.resolve();
    }

    /*  Connects to one of the token's servers: opens the transport, then the session. Resolves when connected, and rejects with
        the reason if it can not be; meanwhile update has to be called as ever. An earlier connection ends. */
    connect(token) {
        const promise = this.#connect(token);
        promise.catch(() => {}); // whoever does not await it reads state and report instead
        return promise;
    }

    async #connect(token) {
        const module = this.#alive();
        const bytes = tokenBytes(token);
        this.disconnect();
        const attempt = ++this.#attempt;
        module.HEAPU8.set(bytes, module._netcode_wasm_token());
        const servers = module._netcode_wasm_servers();
        if (servers) {
            const list = this.#text(servers).trim().split('\n');
            await this.#transport.open({ ...this.#options.transportOptions, gateway: this.#options.gateway, servers: list });
            if (attempt !== this.#attempt || this.#destroyed) throw new Error('Another call has ended this connect.');
        }
        // A token that can not be read is the client's to refuse, in its own words.
        module.HEAPU8.set(bytes, module._netcode_wasm_token());
        module._netcode_wasm_connect();
        const opened = new Promise((resolve, reject) => {
            this.#waiting = { resolve, reject };
        });
        this.#state = STATE_DISCONNECTED;
        const state = module._netcode_wasm_state();
        if (state < STATE_DISCONNECTED) {
            this.#state = state;
            this.#transport.close();
            this.#settle(new ConnectError(this.report()));
        } else this.#moved(state);
        return opened;
    }

    /* Receives, sends what is due, moves the state: once a frame, or 60 times a second. The time is seconds of any clock. */
    update(nowSeconds = performance.now() / 1000) {
        const module = this.#alive();
        if (typeof nowSeconds !== 'number' || !Number.isFinite(nowSeconds)) throw new RangeError('The time is a finite number of seconds.');
        this.#moved(module._netcode_wasm_update(nowSeconds));
    }

    /* Sends what was queued since the last update. */
    flush() {
        this.#alive()._netcode_wasm_flush();
    }

    /* ---- payloads ---- */

    /* Sends a payload of 1 to 1200 bytes, which may be lost. False while not connected. */
    send(bytes) {
        const module = this.#alive();
        if (this.#options.isJoined) throw new Error('This client was created with messages: use sendMessage.');
        const data = bytesOf('A payload', bytes);
        if (data.length < 1 || data.length > MAX_PAYLOAD_BYTES)
            throw new RangeError(`A payload has 1 to ${MAX_PAYLOAD_BYTES} bytes, and not ${data.length}.`);
        if (this.#state !== STATE_CONNECTED) return false;
        module.HEAPU8.set(data, module._netcode_wasm_input());
        module._netcode_wasm_send(data.length);
        return true;
    }

    /* The oldest received payload, or null: a view that is valid until the next call of this client. */
    receive() {
        const module = this.#alive();
        if (this.#options.isJoined) throw new Error('This client was created with messages: use receiveMessage.');
        const pointer = module._netcode_wasm_receive();
        return pointer ? module.HEAPU8.subarray(pointer, pointer + module.HEAP32[this.#result]) : null;
    }

    /* ---- messages ---- */

    #joined() {
        const module = this.#alive();
        if (!this.#options.isJoined) throw new Error('This client was created without messages: give create the option.');
        return module;
    }

    /*  Queues a message. `kind` is one of MESSAGE; options are ttl (seconds) and receipt (a whole number that events return).
        True; false if the buffer is full: try again after the next updates. */
    sendMessage(channel, kind, bytes, options = {}) {
        const module = this.#joined();
        checkWhole('The channel', channel, 0, this.#options.channels - 1);
        checkWhole('The kind', kind, 0, 4);
        const data = bytesOf('A message', bytes);
        if (data.length > this.#inputCapacity)
            throw new RangeError(`A message has at most ${this.#inputCapacity} bytes here, and not ${data.length}.`);
        const ttl = options.ttl ?? 0;
        if (typeof ttl !== 'number' || !(ttl >= 0 && ttl <= 1e6)) throw new RangeError('ttl is a number of seconds.');
        if (ttl > 0 && kind === MESSAGE.RELIABLE_ORDERED)
            throw new RangeError('Ordered messages have no ttl: a gap would stop their channel.');
        const receipt = checkWhole('The receipt', options.receipt ?? 0, 0, Number.MAX_SAFE_INTEGER);
        module.HEAPU8.set(data, module._netcode_wasm_input());
        switch (module._netcode_wasm_send_message(channel, kind, data.length, ttl, receipt)) {
            case 1:
                return true;
            case 0:
                return false;
            case -1:
                throw new RangeError('The message is too large for its kind, or for the other side.');
            case -3:
                throw new Error('The messages of this connection are broken: connect again.');
            case -4:
                throw new RangeError('The other side has fewer channels.');
            default:
                throw new RangeError('A message of this kind can not be sent so: see examples/docs/MESSAGES.md.');
        }
    }

    /* The next message, or null: { channel, kind, data }. The same object each time; data is valid until the next call. */
    receiveMessage() {
        const module = this.#joined();
        if (!module._netcode_wasm_receive_message()) return null;
        const at = this.#result;
        const pointer = module.HEAP32[at + 3];
        this.#message.channel = module.HEAP32[at];
        this.#message.kind = module.HEAP32[at + 1];
        this.#message.data = module.HEAPU8.subarray(pointer, pointer + module.HEAP32[at + 2]);
        return this.#message;
    }

    /* What became of a message with a receipt: { type, channel, kind, bytes, bytesDone, receipt }, or null; 'broken' has a reason. */
    receiveMessageEvent() {
        const module = this.#joined();
        const numbers = module._netcode_wasm_message_event();
        if (!numbers) return null;
        const [type, channel, kind, bytes, bytesDone, reason] = module.HEAP32.subarray(this.#result, this.#result + 6);
        return { type: EVENTS[type], channel, kind, bytes, bytesDone, reason, receipt: module.HEAPF64[numbers >> 3] };
    }

    /* ---- how it goes ---- */

    /* 'CONNECTED', 'DISCONNECTED', 'SENDING_CONNECTION_REQUEST', 'CONNECTION_DENIED' and so on: the names of netcode.h. */
    get state() {
        const module = this.#alive();
        return this.#text(module._netcode_wasm_state_name(module._netcode_wasm_state()));
    }

    get isConnected() {
        return this.#alive()._netcode_wasm_state() === STATE_CONNECTED;
    }

    /* The slot on the server, and how many it has; 0 while not connected. */
    get clientIndex() {
        return this.#alive()._netcode_wasm_client_index();
    }

    get maxClients() {
        return this.#alive()._netcode_wasm_max_clients();
    }

    /* Counts and measurements: of the client, of its messages if it has them, and of the transport. */
    stats() {
        const module = this.#alive();
        const at = module._netcode_wasm_stats() >> 3;
        const read = (names, from) => Object.fromEntries(names.map((name, index) => [name, module.HEAPF64[from + index]]));
        const stats = read(STATS, at);
        if (this.#options.isJoined) stats.messages = read(MESSAGE_STATS, at + STATS.length);
        stats.transport = this.#transport.counters ?? null;
        return stats;
    }

    /* Why it is not connected: one sentence for the player, and what the client knows beside it. */
    report() {
        const module = this.#alive();
        const text = this.#text(module._netcode_wasm_report());
        const [state, servers, serverIndex, refused] = module.HEAP32.subarray(this.#result, this.#result + 4);
        const tokenSecondsLeft = module.HEAPF64[module._netcode_wasm_numbers() >> 3];
        return {
            text,
            state: this.#text(module._netcode_wasm_state_name(state)),
            servers,
            serverIndex,
            refused,
            refusedAs: this.#text(module._netcode_wasm_refused_as()),
            tokenSecondsLeft: tokenSecondsLeft > 1e299 ? Infinity : tokenSecondsLeft,
        };
    }

    /* Takes a fresh path: where the page learns of a new network ('online' events). True if one is being opened. */
    rebind() {
        return this.#alive()._netcode_wasm_rebind() === 1;
    }

    /* Notifies the server, and ends the connection or the attempt. */
    disconnect() {
        const module = this.#alive();
        this.#attempt++;
        module._netcode_wasm_disconnect();
        if (this.#waiting) this.#settle(new Error('The application disconnected the client.'));
        this.#moved(module._netcode_wasm_state());
    }

    /* Disconnects, closes the transport and wipes the keys. Every call afterwards throws, but another destroy. */
    destroy() {
        if (this.#destroyed) return;
        this.disconnect();
        this.#module._netcode_wasm_destroy();
        this.#destroyed = true;
        this.#transport.close();
        this.#settle(new Error('This client was destroyed.'));
    }
}
