/*  The arena in a page: login, transport, keys and frames around the client that is written in C (client.c).

        const arena = await startArena({ canvas, credential, backend: 'https://play.example.org' });
        arena.state();     // how it stands
        arena.stop();

    `make web` puts it beside arena_wasm.mjs and transport.mjs in build/web. The credential is the player's, as the backend
    knows it; the gateway is the one that the backend names with the token, or the backend's own address. */

import createArena from './arena_wasm.mjs';
import { Transport } from './transport.mjs';

const KEYS = {
    KeyW: 1, ArrowUp: 1, KeyS: 2, ArrowDown: 2, KeyA: 4, ArrowLeft: 4, KeyD: 8, ArrowRight: 8, Space: 16,
    Enter: 32, NumpadEnter: 32, Backspace: 64, Escape: 128,
};
const HELD = 31; // the others count once, when they are pressed
const HIDDEN_MS = 200; // frames of a hidden tab: enough to stay connected

/* What screen_web.h draws with and reads from. */
class Screen {
    held = 0;
    pressed = 0;
    typed = '';
    mouseX = 0;
    mouseY = 0;
    #colors = new Map();
    #listeners = new AbortController();

    constructor(canvas) {
        this.context = canvas.getContext('2d', { alpha: false });
        this.context.font = '16px monospace';
        this.context.textBaseline = 'top';
        const on = (target, type, listener) => target.addEventListener(type, listener, { signal: this.#listeners.signal });
        on(window, 'keydown', (event) => this.#key(event));
        on(window, 'keyup', (event) => (this.held &= ~((KEYS[event.code] ?? 0) & HELD)));
        on(window, 'blur', () => (this.held = 0));
        on(canvas, 'mousemove', (event) => {
            const box = canvas.getBoundingClientRect();
            this.mouseX = ((event.clientX - box.left) * canvas.width) / box.width;
            this.mouseY = ((event.clientY - box.top) * canvas.height) / box.height;
        });
        on(canvas, 'mousedown', () => (this.held |= 16));
        on(window, 'mouseup', () => (this.held &= ~16));
    }

    #key(event) {
        if (event.target instanceof HTMLInputElement || event.ctrlKey || event.metaKey || event.altKey) return;
        const bit = KEYS[event.code] ?? 0;
        if (bit & HELD) this.held |= bit;
        else this.pressed |= bit;
        if (event.key.length === 1 && this.typed.length < 40) this.typed += event.key;
        if (bit || event.key.length === 1) event.preventDefault(); // keys are the game's, not the page's
    }

    #color(color) {
        let text = this.#colors.get(color);
        if (!text) this.#colors.set(color, (text = '#' + color.toString(16).padStart(6, '0')));
        return text;
    }

    fill(color) {
        this.context.fillStyle = this.#color(color);
    }

    stroke(color) {
        this.context.strokeStyle = this.#color(color);
    }

    close() {
        this.#listeners.abort();
    }
}

/* A token of the backend: { token: Uint8Array, gateway }. Throws an Error with a sentence. */
async function logIn(backend, credential) {
    let response;
    try {
        response = await fetch(new URL('/v1/connect-token', backend), {
            method: 'POST', cache: 'no-store', headers: { Authorization: `Bearer ${credential}`, 'Content-Type': 'application/json' }, body: '{}',
        });
    } catch {
        throw new Error(`The backend at ${backend} can not be reached.`);
    }
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw new Error(`The backend gives no token: ${answer.message ?? `status ${response.status}`}`);
    const token = Uint8Array.from(atob(answer.connect_token), (character) => character.charCodeAt(0));
    return { token, gateway: answer.gateway ?? backend };
}

/*  Starts the game on a canvas of 1280 by 920 pixels. Options: canvas, credential, backend (where the page comes from), bot
    (it plays by itself), transport (options for Transport.open). */
export async function startArena({ canvas, credential, backend = location.origin, bot = false, transport: options = {} }) {
    const screen = new Screen(canvas);
    const transport = new Transport();
    const module = await createArena({ screen, netcodeTransport: transport });
    let stopped = false;
    let isLoggingIn = false;
    const counted = { frames: 0, slow: 0, slowest: 0, slowMs: Infinity };
    if (!module._arena_open(crypto.getRandomValues(new Uint32Array(1))[0])) throw new Error('libsodium could not be initialised.');
    module._arena_bot(bot ? 1 : 0);

    async function comeIn() {
        isLoggingIn = true;
        try {
            const { token, gateway } = await logIn(backend, credential);
            module.HEAPU8.set(token.subarray(0, 2048), module._arena_token());
            if (token.length !== 2048 || !module._arena_servers()) throw new Error('The backend sent something else than a connect token.');
            const servers = module.UTF8ToString(module._arena_text()).trim().split('\n');
            await transport.open({ ...options, gateway, servers });
            if (!stopped) module._arena_begin(performance.now() / 1000);
        } catch (error) {
            module.stringToUTF8(error.message, module._arena_text(), 300);
            module._arena_sorry();
        }
        isLoggingIn = false;
    }

    function frame() {
        if (stopped) return;
        const start = performance.now();
        if (module._arena_frame(start / 1000) && !isLoggingIn) comeIn();
        const took = performance.now() - start;
        counted.frames++;
        counted.slow += took > counted.slowMs;
        counted.slowest = Math.max(counted.slowest, took);
        if (document.hidden) setTimeout(frame, HIDDEN_MS);
        else requestAnimationFrame(frame);
    }

    function stop() {
        stopped = true;
        module._arena_end();
        transport.close();
        screen.close();
    }

    addEventListener('pagehide', stop, { once: true });
    frame();
    return {
        stop,
        bot: (on) => module._arena_bot(on ? 1 : 0),
        state: () => {
            module._arena_state();
            const { kind, ...counters } = transport.counters;
            return { ...JSON.parse(module.UTF8ToString(module._arena_text())), slowestMs: counted.slowest, slow: counted.slow, framesCounted: counted.frames, memory: module.HEAPU8.length, kind, counters };
        },
        // From here on: how many frames took longer than this, in our code alone.
        countFrames: (slowMs) => Object.assign(counted, { frames: 0, slow: 0, slowest: 0, slowMs }),
    };
}
