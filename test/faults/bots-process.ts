// Runs bots that misbehave as real bots do, in a separate process that can be killed and stopped.
// The path of a connection says what its bot does and which number it talks to: `/talk/4911…`. The
// process tells its parent when a connection is requested and when it is closed.

import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import { randomFrom } from './random.ts';

export const botKinds = [
  'talk',
  'goodbye',
  'deploy',
  'deaf',
  'mute',
  'flood',
  'garbage',
  'cut',
] as const;
export type BotKind = (typeof botKinds)[number];

export type FromBots =
  | { readonly kind: 'listening'; readonly port: number }
  | {
      readonly kind: 'opened';
      readonly id: number;
      readonly bot: BotKind;
      readonly number: string;
    }
  | { readonly kind: 'closed'; readonly id: number };
/** Makes the bots that did not read their sockets start reading. */
export type ToBots = { readonly kind: 'read' };

const oneSecond = Buffer.alloc(8_000, 1).toString('base64');
const floodBytes = 100_000_000;
const floodPiece = Buffer.alloc(1_000_000, 2).toString('base64');
const random = randomFrom(process.pid);
const webSockets = new WebSocketServer({ noServer: true });
const deaf = new Set<Socket>();
let connections = 0;
let isCalm = false;

const report = (message: FromBots): void => void process.send?.(message);

const server = createServer();
server.on('upgrade', (request, stream, head) => {
  const socket = stream as Socket;
  const [, bot = 'talk', number = ''] = (request.url ?? '').split('/');
  connections += 1;
  const id = connections;
  report({ kind: 'opened', id, bot: bot as BotKind, number });
  socket.on('close', () => {
    deaf.delete(socket);
    report({ kind: 'closed', id });
  });
  socket.on('error', () => undefined);
  // A server's sockets stay half open until the server ends them.
  socket.on('end', () => socket.end());
  if (bot === 'mute') neverRead(socket);
  else
    webSockets.handleUpgrade(request, socket, head, (link) => serve(bot as BotKind, link, socket));
});
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
  report({ kind: 'listening', port: (server.address() as AddressInfo).port });
});
process.on('message', (_message: ToBots) => {
  isCalm = true;
  for (const socket of deaf) socket.resume();
});
process.on('disconnect', () => process.exit(0));

function serve(bot: BotKind, link: WebSocket, socket: Socket): void {
  link.on('error', () => undefined);
  link.on('message', (data: Buffer) => {
    const text = data.toString('latin1');
    if (text.startsWith('{"event":"media"')) return;
    const message = JSON.parse(text) as { event: string; start?: Started };
    if (message.event === 'mark') say(link);
    if (message.start !== undefined) begin(bot, link, socket, message.start);
  });
}

type Started = { readonly customParameters: Readonly<Record<string, string>> };

function begin(bot: BotKind, link: WebSocket, socket: Socket, { customParameters }: Started): void {
  switch (bot) {
    case 'goodbye':
      say(link);
      link.close(1_000);
      return;
    case 'deploy':
      say(link);
      if (customParameters['reconnect'] === undefined) link.close(1_012);
      return;
    case 'deaf':
      say(link);
      neverRead(socket);
      return;
    case 'flood':
      flood(link, floodBytes);
      return;
    case 'garbage':
      garbage(link, socket);
      return;
    case 'cut':
      say(link);
      // The header announces a text frame of 4,096 bytes, but only three bytes follow.
      socket.end(Buffer.from([0x81, 0x7e, 0x10, 0x00, 0x7b, 0x22, 0x65]));
      return;
    case 'mute':
    case 'talk':
      say(link);
  }
}

/** Sends one second of audio and a mark. When the mark comes back, the bot repeats both. */
function say(link: WebSocket): void {
  if (link.readyState !== link.OPEN) return;
  link.send(JSON.stringify({ event: 'media', media: { payload: oneSecond } }));
  link.send(JSON.stringify({ event: 'mark', mark: { name: 'said' } }));
}

function neverRead(socket: Socket): void {
  if (isCalm) {
    socket.resume();
    return;
  }
  deaf.add(socket);
  socket.pause();
}

/** Sends audio as quickly as the gateway reads it. */
function flood(link: WebSocket, left: number): void {
  if (left <= 0 || link.readyState !== link.OPEN) return;
  link.send(JSON.stringify({ event: 'media', media: { payload: floodPiece } }), () =>
    flood(link, left - floodPiece.length),
  );
}

function garbage(link: WebSocket, socket: Socket): void {
  const noise = () => Buffer.from(Array.from({ length: 400 }, () => random.between(0, 255)));
  for (let count = 0; count < 20; count += 1) {
    link.send(noise().toString('latin1'));
    link.send(noise(), { binary: true });
    link.send(JSON.stringify({ event: noise().toString('base64'), media: [] }));
  }
  socket.write(noise());
}
