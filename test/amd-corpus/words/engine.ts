// A recogniser that knows what is said: a real WebSocket server on loopback that speaks Vosk's
// protocol or Offhook's own. It returns the words of the answer up to where it has heard, with a
// lag: as interim results, and as a final one after a pause.

import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import type { HeardWord } from './mishearing.ts';

export type EngineKind = 'vosk' | 'websocket';

/** Streaming engines finish a sentence after this much silence. */
const endpointMs = 700;
/** 16 bits at 8 kHz. */
const bytesPerMs = 16;

export type Engine = {
  readonly url: string;
  /** Sets what the next connection will hear. */
  expect(words: readonly HeardWord[]): void;
};

/** An engine that really listens, wherever it runs. */
export function realEngine(url: string): Engine {
  return { url, expect: () => undefined };
}

export async function startEngine(
  kind: EngineKind,
  lagMs: number,
): Promise<Engine & AsyncDisposable> {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  let expected: readonly HeardWord[] = [];
  server.on('connection', (socket) => {
    recognise(socket, createListener(expected), kind, lagMs);
  });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `ws://127.0.0.1:${port}/`,
    expect(words) {
      expected = words;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of server.clients) socket.terminate();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Answers each message of audio once, as Vosk does. */
function recognise(socket: WebSocket, listener: Listener, kind: EngineKind, lagMs: number): void {
  let audioMs = 0;
  socket.on('error', () => undefined);
  socket.on('message', (data: Buffer, isBinary) => {
    if (!isBinary) return;
    audioMs += data.length / bytesPerMs;
    const untilMs = Math.max(0, audioMs - lagMs);
    const { text, isFinal } = listener(untilMs);
    const generic = { transcript: text, is_final: isFinal, until_ms: untilMs };
    // Vosk does not say how far it has listened. The client takes its answer to cover all audio
    // sent.
    const vosk = isFinal ? { text } : { partial: text };
    socket.send(JSON.stringify(kind === 'vosk' ? vosk : generic));
  });
}

type Listener = (untilMs: number) => { readonly text: string; readonly isFinal: boolean };

export function createListener(words: readonly HeardWord[]): Listener {
  let settled = 0;
  return (untilMs) => {
    const heard = words.filter(({ untilMs: endMs }) => endMs <= untilMs);
    const last = heard.at(-1);
    const isFinal =
      heard.length > settled && last !== undefined && untilMs - last.untilMs >= endpointMs;
    const open = heard.slice(settled);
    if (isFinal) settled = heard.length;
    const text = open.map((word) =>
      word === last && !isFinal && untilMs - word.untilMs < endpointMs / 2
        ? word.atFirst
        : word.text,
    );
    return { text: text.join(' '), isFinal };
  };
}
