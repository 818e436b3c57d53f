/*  The page around the arena: asks for the credential once, and keeps it while the tab is open, so that a reload plays on.
    #bot behind the page's address lets it play by itself, #websocket goes without WebRTC. */

import { startArena } from './arena.mjs';

const KEY = 'arena-credential';
const canvas = document.getElementById('canvas');
const login = document.getElementById('login');
const other = document.getElementById('other');
const wishes = new Set(location.hash.slice(1).split(','));

async function play(credential) {
    sessionStorage.setItem(KEY, credential);
    login.hidden = true;
    canvas.hidden = false;
    other.hidden = false;
    window.arena = await startArena({ canvas, credential, bot: wishes.has('bot'), transport: { webrtc: !wishes.has('websocket') } });
}

login.addEventListener('submit', (event) => {
    event.preventDefault();
    play(document.getElementById('credential').value.trim());
});

other.addEventListener('click', () => {
    sessionStorage.removeItem(KEY);
    location.reload();
});

const known = sessionStorage.getItem(KEY);
if (known) play(known);
