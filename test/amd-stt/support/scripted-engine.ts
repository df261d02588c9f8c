// A speech-to-text provider that follows a script: a real WebSocket server that speaks each of the
// protocols.

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import { eventually } from '../../support/eventually.ts';

export type EngineKind = 'deepgram' | 'websocket' | 'vosk' | 'sherpa-onnx';

/** 16 bits at 8 kHz, or 32 bits at 16 kHz. */
const bytesPerMs: Readonly<Record<EngineKind, number>> = {
  deepgram: 16,
  websocket: 16,
  vosk: 16,
  'sherpa-onnx': 64,
};

export class EngineSession {
  readonly request: IncomingMessage;
  readonly socket: WebSocket;
  readonly kind: EngineKind;
  /** JSON messages from the gateway, in order. */
  readonly messages: Record<string, unknown>[] = [];
  /** All text messages, unchanged. */
  readonly texts: string[] = [];
  readonly audio: Buffer[] = [];
  closed = false;

  constructor(kind: EngineKind, request: IncomingMessage, socket: WebSocket) {
    this.kind = kind;
    this.request = request;
    this.socket = socket;
    socket.on('error', () => undefined);
    socket.on('close', () => (this.closed = true));
    socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) this.audio.push(data);
      if (isBinary) return;
      this.texts.push(data.toString());
      if (data.toString().startsWith('{'))
        this.messages.push(JSON.parse(data.toString()) as Record<string, unknown>);
    });
  }

  get query(): Record<string, string> {
    const url = new URL(this.request.url ?? '', 'ws://engine');
    return Object.fromEntries(url.searchParams);
  }

  get audioMs(): number {
    return Buffer.concat(this.audio).length / bytesPerMs[this.kind];
  }

  async untilHeard(ms: number): Promise<void> {
    await eventually(() => this.audioMs >= ms, `the provider has ${ms} ms of audio`);
  }

  /** Sends a result in the form of the protocol. */
  say(transcript: string, { final = false, untilMs }: { final?: boolean; untilMs?: number } = {}) {
    if (this.kind === 'vosk') {
      this.send(final ? { text: transcript } : { partial: transcript });
      return;
    }
    if (this.kind === 'sherpa-onnx') {
      this.send({ text: transcript, tokens: [], timestamps: [], segment: 0, is_final: final });
      return;
    }
    if (this.kind === 'websocket') {
      const until = untilMs === undefined ? {} : { until_ms: untilMs };
      this.send({ transcript, is_final: final, ...until });
      return;
    }
    this.send({
      type: 'Results',
      channel_index: [0, 1],
      start: 0,
      duration: (untilMs ?? this.audioMs) / 1_000,
      is_final: final,
      speech_final: final,
      channel: { alternatives: [{ transcript, confidence: 0.98, words: [] }] },
    });
  }

  send(message: unknown): void {
    this.socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  }
}

export type ScriptedEngine = AsyncDisposable & {
  readonly url: string;
  readonly sessions: readonly EngineSession[];
  /** Waits for the connection of a call. */
  session(index?: number): Promise<EngineSession>;
};

export type EngineOptions = {
  readonly kind?: EngineKind;
  /** Answers the handshake with this HTTP status. */
  readonly refusal?: number;
  /** Accepts the request and never answers. */
  readonly mute?: boolean;
  /** Completes the handshake and ignores everything after it. */
  readonly deaf?: { onAudio(): void; onLeft(): void };
  /** Delays the end of the handshake until this resolves. */
  readonly handshakeWhen?: Promise<void>;
  /** Runs in each session as soon as it opens. */
  readonly script?: (session: EngineSession) => void;
};

export async function startEngine(options: EngineOptions = {}): Promise<ScriptedEngine> {
  const { kind = 'websocket', refusal, mute = false, deaf, handshakeWhen, script } = options;
  const http = createServer();
  const server = new WebSocketServer({ noServer: true });
  const sessions: EngineSession[] = [];
  http.on('upgrade', (request, socket, head) => {
    socket.on('error', () => undefined);
    if (mute) return;
    if (refusal !== undefined) {
      socket.end(`HTTP/1.1 ${refusal} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
      return;
    }
    if (deaf !== undefined) {
      const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
      const accepted = createHash('sha1').update(key).digest('base64');
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accepted}\r\n\r\n`,
      );
      socket.on('data', () => deaf.onAudio()).on('end', () => deaf.onLeft());
      return;
    }
    const accept = (): void =>
      server.handleUpgrade(request, socket, head, (webSocket) => {
        const session = new EngineSession(kind, request, webSocket);
        sessions.push(session);
        script?.(session);
      });
    if (handshakeWhen === undefined) accept();
    else void handshakeWhen.then(accept);
  });
  const sockets = new Set<{ destroy(): void }>();
  http.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const { port } = http.address() as AddressInfo;
  return {
    url: `ws://127.0.0.1:${port}/listen`,
    sessions,
    async session(index = 0) {
      await eventually(() => sessions[index] !== undefined, 'the gateway connects');
      return sessions[index] as EngineSession;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      http.close();
      await once(http, 'close');
    },
  };
}
