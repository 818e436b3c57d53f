/*  The library's own tests, compiled to WebAssembly, under Node.js; the sizes of the module; where its random numbers come
    from. run.sh compiles them beforehand. */

import { execFile } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import { WEB, check, finish, holds, same } from './common.mjs';

const LARGEST = { 'netcode.wasm': 60000, 'netcode_wasm.mjs': 8000 }; // with gzip -9
const LEAST_PASSED = 950;

/*  Tests of what WebAssembly has not: UDP sockets (these whole files), and processes, a stack that ends in an abort, a sleep,
    or sockets again in tests of other files. Each must fail, so that the list stays true. */
const SOCKET_FILES = ['socket.c', 'sockets.c', 'linux.c'];
const LEFT_OUT = [
    'platform_time_and_sleep',
    'platform_default_assert_aborts',
    'mutants_sleep_of_more_than_a_second',
    'time_and_sleep',
    'threat_3_longer_datagrams_over_a_socket',
    'threat_4_empty_datagrams_at_1200_a_second',
    'threat_5_oversized_datagrams_at_1200_a_second',
    'threat_41_the_others_are_heard_beside_a_flood_over_a_socket',
    'threat_42_updates_are_bounded_under_a_flood',
    'contract_with_existing_code',
    'flood_a_long_update_is_noticed',
    'flood_counts_no_errors',
    'promise_create_says_why_not',
];

async function runTests(...filter) {
    try {
        return (await promisify(execFile)('node', [path.join(WEB, 'tests/test.cjs'), ...filter], { maxBuffer: 1 << 26, timeout: 300000 }))
            .stdout;
    } catch (error) {
        holds(error.stdout, `the tests do not run: ${error.stderr}`);
        return error.stdout;
    }
}

await check("the library's tests pass as WebAssembly", async () => {
    const output = await runTests();
    const last = /^(\d+) passed, (\d+) failed, (\d+) skipped$/m.exec(output);
    holds(last, `they did not reach their end: ${output.slice(-500)}`);
    const failures = [...output.matchAll(/^FAILED (\S+): (\w+)/gm)].map(([, file, name]) => ({ file, name }));
    same(failures.length, Number(last[2]), 'the number of failures');
    const others = failures.filter(({ file, name }) => !SOCKET_FILES.includes(file) && !LEFT_OUT.includes(name));
    holds(others.length === 0, `failed: ${others.map(({ name }) => name).join(', ')}\n${output.slice(0, 2000)}`);
    for (const name of LEFT_OUT)
        holds(
            failures.some((failure) => failure.name === name),
            `${name} passes: take it from the list`,
        );
    holds(Number(last[1]) >= LEAST_PASSED, `only ${last[1]} passed`);
    return `${last[1]} passed; ${failures.length} want sockets, sleep or processes; ${last[3]} skipped themselves`;
});

await check('the wire vectors, byte for byte', async () => {
    const output = await runTests('vectors.c');
    const last = /^(\d+) passed, 0 failed/m.exec(output);
    holds(last && Number(last[1]) >= 3, output.slice(-500));
    return `${last[1]} passed`;
});

await check('sizes', async () => {
    const details = [];
    for (const [name, most] of Object.entries(LARGEST)) {
        const bytes = fs.readFileSync(path.join(WEB, name));
        const packed = zlib.gzipSync(bytes, { level: 9 }).length;
        holds(packed <= most, `${name} has ${packed} bytes with gzip, more than ${most}`);
        details.push(`${name} ${bytes.length}, ${packed} with gzip`);
    }
    return details.join('; ');
});

await check("random numbers are the page's", async () => {
    const { default: makeModule } = await import(path.join(WEB, 'netcode_wasm.mjs'));
    const module = await makeModule({ wasmBinary: fs.readFileSync(path.join(WEB, 'netcode.wasm')) });
    const genuine = crypto.getRandomValues;
    const asked = [];
    try {
        crypto.getRandomValues = (bytes) => {
            asked.push(bytes.length);
            return bytes.fill(0x5a);
        };
        same(module._netcode_wasm_create(0, 0, 1, 200000), 1, 'create');
        asked.length = 0;
        module._netcode_wasm_random(200000); // in pieces: one call of getRandomValues fills 65,536
    } finally {
        crypto.getRandomValues = genuine;
    }
    same(asked.join(), '65536,65536,65536,3392', 'what was asked for');
    const at = module._netcode_wasm_input();
    holds(
        module.HEAPU8.subarray(at, at + 200000).every((byte) => byte === 0x5a),
        'other bytes than those came out',
    );
    crypto.getRandomValues = () => {
        throw new Error('no entropy');
    };
    try {
        let error = null;
        try {
            module._netcode_wasm_random(16);
        } catch (caught) {
            error = caught;
        }
        same(error?.message, 'no entropy', 'what happens without a source');
    } finally {
        crypto.getRandomValues = genuine;
    }
});

await finish('wasm');
