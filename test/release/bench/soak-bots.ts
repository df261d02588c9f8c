// The bots of a soak. A bot greets, says several things, clears some of them, sometimes disconnects
// as if it were redeployed, and leaves. One bot gives a long speech, whose length its call
// requests, and records when its marks return.

import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Random } from '../../faults/random.ts';

type Message = {
  readonly event: string;
  readonly streamSid?: string;
  readonly start?: { readonly customParameters: Readonly<Record<string, string>> };
};

const bytesASecond = 8_000;
const pieceMs = 1_000;
const second = Buffer.from(Array.from({ length: bytesASecond }, (_, index) => (index * 7) % 0x7f));

/** A long speech. Records when the mark after each second of it returned. */
export type Speech = { readonly markedAtMs: readonly number[] };

export class SoakBots {
  readonly speeches: Speech[] = [];
  readonly counts = { connections: 0, reconnections: 0, marks: 0, clears: 0, goodbyes: 0 };
  readonly #server: WebSocketServer;
  readonly #random: Random;

  private constructor(server: WebSocketServer, random: Random) {
    this.#server = server;
    this.#random = random;
    server.on('connection', (socket) => this.#serve(socket));
  }

  static async start(random: Random): Promise<SoakBots> {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
    await once(server, 'listening');
    return new SoakBots(server, random);
  }

  get url(): string {
    return `ws://127.0.0.1:${(this.#server.address() as AddressInfo).port}/audio`;
  }

  get open(): number {
    return this.#server.clients.size;
  }

  close(): void {
    for (const socket of this.#server.clients) socket.terminate();
    this.#server.close();
  }

  #serve(socket: WebSocket): void {
    this.counts.connections += 1;
    socket.on('error', () => undefined);
    socket.on('message', (data: Buffer) => {
      // Most messages are audio, which the bot ignores.
      const text = data.toString('latin1');
      if (text.startsWith('{"event":"media"')) return;
      const message = JSON.parse(text) as Message;
      if (message.start === undefined) return;
      const { speechMs, reconnect } = message.start.customParameters;
      if (reconnect !== undefined) this.counts.reconnections += 1;
      const { streamSid = '' } = message;
      if (speechMs === undefined) this.#converse(socket, streamSid);
      else this.#speak(socket, streamSid, Number(speechMs));
    });
  }

  #converse(socket: WebSocket, streamSid: string): void {
    const random = this.#random;
    let left = random.between(2, 10);
    const talk = (): void => {
      if (socket.readyState !== socket.OPEN) return;
      left -= 1;
      if (left === 0) {
        this.counts.goodbyes += 1;
        socket.close(1_000);
      } else if (random.next() < 0.05) socket.close(1_012);
      else this.#say(socket, streamSid, random.between(500, 8_000));
    };
    socket.on('message', (data: Buffer) => {
      if (!data.toString('latin1', 0, 15).startsWith('{"event":"mark"')) return;
      this.counts.marks += 1;
      setTimeout(talk, random.between(100, 2_000));
    });
    this.#say(socket, streamSid, 2_000);
  }

  #say(socket: WebSocket, streamSid: string, ms: number): void {
    const audio = Buffer.alloc((ms * bytesASecond) / 1_000, second);
    send(socket, { event: 'media', streamSid, media: { payload: audio.toString('base64') } });
    send(socket, { event: 'mark', streamSid, mark: { name: 'said' } });
    if (this.#random.next() > 0.2) return;
    this.counts.clears += 1;
    setTimeout(() => send(socket, { event: 'clear', streamSid }), ms / 2);
  }

  #speak(socket: WebSocket, streamSid: string, ms: number): void {
    const markedAtMs: number[] = [];
    this.speeches.push({ markedAtMs });
    socket.on('message', (data: Buffer) => {
      if (!data.toString('latin1', 0, 15).startsWith('{"event":"mark"')) return;
      markedAtMs.push(performance.now());
      if (markedAtMs.length * pieceMs >= ms) socket.close(1_000);
    });
    const payload = second.toString('base64');
    for (let at = pieceMs; at <= ms; at += pieceMs) {
      send(socket, { event: 'media', streamSid, media: { payload } });
      send(socket, { event: 'mark', streamSid, mark: { name: String(at) } });
    }
  }
}

function send(socket: WebSocket, message: object): void {
  if (socket.readyState === socket.OPEN) socket.send(JSON.stringify(message));
}
