// The bots of the meter run. The path of a connection names the person, and a bot does what the
// script says for that person. It logs when it sent its first sound.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { type WebSocket, WebSocketServer } from 'ws';
import type { BotPlan } from './meter-script.ts';

export type BotLog = { firstSoundAt?: number };

type Ports = {
  readonly planOf: (number: string) => BotPlan | undefined;
  /** How long ago the person answered. */
  readonly sinceAnswerMs: (number: string) => number | undefined;
};

/** A tenth of a second of a loud tone. */
const sound = Buffer.alloc(800, 1).toString('base64');
/** As many bytes of silence, as bots send that fill their pauses. */
const silence = Buffer.alloc(800, 0xff).toString('base64');
const silentEveryMs = 100;

export class MeterBots implements AsyncDisposable {
  readonly logs = new Map<string, BotLog>();
  readonly #server: Server;
  readonly #sockets = new WebSocketServer({ noServer: true });
  readonly #ports: Ports;

  private constructor(server: Server, ports: Ports) {
    this.#server = server;
    this.#ports = ports;
    server.on('upgrade', (request, stream, head) => {
      stream.on('error', () => undefined);
      void this.#upgrade(request, stream as Socket, head);
    });
  }

  static async start(ports: Ports): Promise<MeterBots> {
    const server = createServer();
    const bots = new MeterBots(server, ports);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return bots;
  }

  url(number: string): string {
    return `ws://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${number}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const link of this.#sockets.clients) link.terminate();
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #upgrade(request: IncomingMessage, stream: Socket, head: Buffer): Promise<void> {
    const number = (request.url ?? '').slice(1);
    const plan = this.#ports.planOf(number);
    if (plan === undefined || plan.kind === 'refuses') {
      stream.end('HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    if (plan.kind === 'opensLate') await this.#until(number, plan.atMs);
    if (stream.destroyed) return;
    this.#sockets.handleUpgrade(request, stream, head, (link) => this.#serve(link, number, plan));
  }

  #serve(link: WebSocket, number: string, plan: BotPlan): void {
    link.on('error', () => undefined);
    if (plan.kind === 'opensLate') this.#speak(link, number);
    if (plan.kind === 'speaks') {
      void this.#until(number, plan.atMs).then(() => this.#speak(link, number));
    }
    if (plan.kind !== 'silent') return;
    const timer = setInterval(() => send(link, silence), silentEveryMs);
    link.on('close', () => clearInterval(timer));
  }

  #speak(link: WebSocket, number: string): void {
    if (link.readyState !== link.OPEN) return;
    send(link, sound);
    const log = this.logs.get(number) ?? {};
    log.firstSoundAt ??= Date.now();
    this.logs.set(number, log);
  }

  async #until(number: string, atMs: number): Promise<void> {
    await pause(Math.max(0, atMs - (this.#ports.sinceAnswerMs(number) ?? 0)));
  }
}

function send(link: WebSocket, payload: string): void {
  if (link.readyState !== link.OPEN) return;
  link.send(JSON.stringify({ event: 'media', media: { payload } }));
}
