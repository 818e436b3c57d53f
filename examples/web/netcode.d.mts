/*  Types of netcode.mjs. */

export const TOKEN_BYTES: 2048;
export const MAX_PAYLOAD_BYTES: 1200;
export const MAX_MESSAGE_BYTES: 16777216;

export const MESSAGE: Readonly<{
    UNRELIABLE: 0;
    UNRELIABLE_SEQUENCED: 1;
    RELIABLE: 2;
    RELIABLE_ORDERED: 3;
    RELIABLE_SEQUENCED: 4;
}>;

export type State =
    | 'CONNECT_TOKEN_EXPIRED'
    | 'INVALID_CONNECT_TOKEN'
    | 'CONNECTION_TIMED_OUT'
    | 'CONNECTION_RESPONSE_TIMED_OUT'
    | 'CONNECTION_REQUEST_TIMED_OUT'
    | 'CONNECTION_DENIED'
    | 'DISCONNECTED'
    | 'SENDING_CONNECTION_REQUEST'
    | 'SENDING_CONNECTION_RESPONSE'
    | 'CONNECTED';

export type Bytes = ArrayBuffer | ArrayBufferView;

export interface TransportOptions {
    gateway?: string;
    servers: string[];
    fallbackSeconds?: number;
    webrtc?: boolean;
    queue?: number;
    bufferedBytes?: number;
}

export interface TransportCounters {
    sent: number;
    received: number;
    dropped: number;
    reconnects: number;
    kind: 'webrtc' | 'websocket' | null;
}

/* What Netcode needs of a path; Transport is one. */
export interface Path {
    open(options: TransportOptions): Promise<void>;
    send(bytes: Uint8Array, server: number): boolean | void;
    receive(): { data: Uint8Array; server: number } | null;
    rebind?(): boolean;
    close(): void;
    readonly counters?: object;
}

export class Transport implements Path {
    open(options: TransportOptions): Promise<void>;
    send(bytes: Uint8Array, server: number): boolean;
    receive(): { data: Uint8Array; server: number } | null;
    rebind(): boolean;
    close(): void;
    readonly state: 'closed' | 'opening' | 'open';
    readonly kind: 'webrtc' | 'websocket' | null;
    readonly error: Error | null;
    readonly counters: TransportCounters;
}

export class GatewayError extends Error {
    readonly status: number;
    readonly code: string;
}

export interface Report {
    text: string;
    state: State;
    servers: number;
    serverIndex: number;
    refused: number;
    refusedAs: string;
    tokenSecondsLeft: number;
}

export class ConnectError extends Error {
    readonly report: Report;
}

export interface MessageStats {
    messagesSent: number;
    messagesReceived: number;
    retries: number;
    roundTrip: number;
    ping: number;
    lossSent: number;
    lossReceived: number;
    sendRate: number;
    sendBufferUsed: number;
    receiveBufferUsed: number;
}

export interface Stats {
    packetsSent: number;
    packetsReceived: number;
    packetsDropped: number;
    bytesSent: number;
    bytesReceived: number;
    sendErrors: number;
    connects: number;
    disconnects: number;
    rebinds: number;
    roundTrip: number;
    roundTripLowest: number;
    roundTripVariation: number;
    packetsLost: number;
    packetsReordered: number;
    lossShare: number;
    packetsQueued: number;
    messages?: MessageStats;
    transport: TransportCounters | object | null;
}

export interface Message {
    channel: number;
    kind: number;
    data: Uint8Array;
}

export interface MessageEvent {
    type: 'none' | 'acked' | 'lost' | 'spurious' | 'progress' | 'broken';
    channel: number;
    kind: number;
    bytes: number;
    bytesDone: number;
    /** Of 'broken': NETCODE_MESSAGES_REASON_... of netcode.h. */
    reason: number;
    receipt: number;
}

export interface Options {
    gateway?: string;
    messages?: boolean | { channels?: number; maxMessageBytes?: number };
    transport?: Path;
    transportOptions?: Omit<TransportOptions, 'gateway' | 'servers'>;
    wasm?: string | URL | Uint8Array | ArrayBuffer;
    log?: 'none' | 'error' | 'info' | 'debug';
    onlog?: (level: string, line: string) => void;
    onstate?: (state: State, previous: State) => void;
}

export class Netcode {
    static create(options?: Options): Promise<Netcode>;
    private constructor();
    connect(token: string | Bytes): Promise<void>;
    update(nowSeconds?: number): void;
    flush(): void;
    send(bytes: Bytes): boolean;
    receive(): Uint8Array | null;
    sendMessage(channel: number, kind: number, bytes: Bytes, options?: { ttl?: number; receipt?: number }): boolean;
    receiveMessage(): Message | null;
    receiveMessageEvent(): MessageEvent | null;
    readonly state: State;
    readonly isConnected: boolean;
    readonly clientIndex: number;
    readonly maxClients: number;
    stats(): Stats;
    report(): Report;
    rebind(): boolean;
    disconnect(): void;
    destroy(): void;
}
