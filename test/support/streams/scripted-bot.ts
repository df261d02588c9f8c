// A bot on loopback that does what a test wants and keeps all messages that it receives.

import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import { eventually } from '../eventually.ts';
import { freeUdpPort } from '../free-port.ts';
import type { ToBot } from './stream-messages.ts';

type EventOf<Name extends ToBot['event']> = Extract<ToBot, { event: Name }>;

/** One connection of a gateway to the bot. */
export class BotConnection {
  readonly request: IncomingMessage;
  readonly socket: WebSocket;
  readonly texts: string[] = [];
  closeCode: number | undefined;
  /** Called with each message on its arrival. */
  onMessage: (message: ToBot) => void = () => undefined;

  constructor(socket: WebSocket, request: IncomingMessage) {
    this.socket = socket;
    this.request = request;
    socket.on('message', (data: Buffer) => {
      this.texts.push(data.toString());
      this.onMessage(JSON.parse(data.toString()) as ToBot);
    });
    socket.on('close', (code) => {
      this.closeCode = code;
    });
    socket.on('error', () => undefined);
  }

  get streamSid(): string {
    return this.of('start')[0]?.streamSid ?? '';
  }

  of<Name extends ToBot['event']>(event: Name): readonly EventOf<Name>[] {
    return this.texts
      .map((text) => JSON.parse(text) as ToBot)
      .filter((message): message is EventOf<Name> => message.event === event);
  }

  /** All audio that the bot has heard. */
  get heard(): Buffer {
    return Buffer.concat(this.of('media').map(({ media }) => Buffer.from(media.payload, 'base64')));
  }

  get marks(): readonly string[] {
    return this.of('mark').map(({ mark }) => mark.name);
  }

  say(audio: Uint8Array): void {
    this.send({ event: 'media', media: { payload: Buffer.from(audio).toString('base64') } });
  }

  mark(name: string): void {
    this.send({ event: 'mark', mark: { name } });
  }

  /** Sends the messages of `say` in one write, so that no pause of this process separates them. */
  atOnce(say: () => void): void {
    this.request.socket.cork();
    say();
    this.request.socket.uncork();
  }

  clear(): void {
    this.send({ event: 'clear' });
  }

  send(message: object): void {
    this.socket.send(JSON.stringify({ ...message, streamSid: this.streamSid }));
  }
}

export type ScriptedBotOptions = {
  /** Returns a status with which the bot refuses the upgrade. Undefined accepts it. */
  readonly refuseWith?: () => number | undefined;
  readonly onConnection?: (connection: BotConnection) => void;
  /** The port of the bot, for a bot that comes back. Default: a free port. */
  readonly port?: number;
};

export class ScriptedBot implements AsyncDisposable {
  readonly connections: BotConnection[] = [];
  /** Number of TCP connections since the start. */
  tcpConnections = 0;
  readonly #http: Server = createServer();
  readonly #sockets = new Set<Socket>();
  readonly #server = new WebSocketServer({ noServer: true });

  static async start(options: ScriptedBotOptions = {}): Promise<ScriptedBot> {
    const bot = new ScriptedBot();
    bot.#http.on('connection', (socket) => {
      bot.tcpConnections += 1;
      bot.#sockets.add(socket);
      socket.on('close', () => bot.#sockets.delete(socket));
    });
    bot.#http.on('upgrade', (request, socket, head) => {
      const status = options.refuseWith?.();
      if (status !== undefined) {
        socket.end(`HTTP/1.1 ${status} Refused\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
        return;
      }
      bot.#server.handleUpgrade(request, socket, head, (webSocket) => {
        const connection = new BotConnection(webSocket, request);
        bot.connections.push(connection);
        options.onConnection?.(connection);
      });
    });
    const port = options.port ?? (await freeUdpPort());
    await new Promise<void>((resolve) => bot.#http.listen(port, '127.0.0.1', resolve));
    return bot;
  }

  get port(): number {
    return (this.#http.address() as AddressInfo).port;
  }

  get url(): string {
    return `ws://127.0.0.1:${this.port}/audio`;
  }

  /** Waits until the connection with this index has received `start`, and returns it. */
  async connection(index = 0): Promise<BotConnection> {
    await eventually(
      () => (this.connections[index]?.of('start').length ?? 0) > 0,
      `the bot gets connection ${index}`,
    );
    return this.connections[index] as BotConnection;
  }

  /** Resets all connections and stops listening, as if the process had died. */
  async kill(): Promise<void> {
    for (const socket of this.#sockets) socket.resetAndDestroy();
    if (this.#http.listening) await new Promise((resolve) => this.#http.close(resolve));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}
