// The control port, where applications connect, authenticate, ask for routes and send SIP messages.
// No matter what an application sends, it must not be able to make us throw, stall other
// applications, or use unbounded memory.

import { timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import type { EngineContext } from '../engine-context.ts';
import { formatHostPort } from '../message/sip-grammar.ts';
import { ControlClient } from './control-client.ts';
import { type ControlFrame, FrameReader } from './control-framing.ts';
import { type ControlCommand, parseCommand } from './control-messages.ts';

/** Maximum number of connected applications. The gateway is the only one that we need. */
const maxClients = 256;

/** We report this version, because drachtio-srf doesn't ping servers before v0.8.2. */
const serverVersion = 'v0.9.10-offhook';

export type SipCommand = Extract<ControlCommand, { kind: 'sip' }>;

export type ControlServerOptions = {
  readonly host: string;
  readonly port: number;
  readonly secret: string;
  readonly onSip: (client: ControlClient, messageId: string, command: SipCommand) => void;
  readonly onGone: (client: ControlClient) => void;
};

export class ControlServer implements AsyncDisposable {
  readonly #options: ControlServerOptions;
  readonly #context: EngineContext;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  constructor(options: ControlServerOptions, context: EngineContext) {
    this.#options = options;
    this.#context = context;
    this.#server = createServer((socket) => this.#accept(socket));
  }

  get clientCount(): number {
    return this.#sockets.size;
  }

  async listen(): Promise<number> {
    this.#server.listen(this.#options.port, this.#options.host);
    await once(this.#server, 'listening');
    this.#server.on('error', (error) =>
      this.#context.logger.warn({ err: error }, 'control listener error'),
    );
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : this.#options.port;
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #accept(socket: Socket): void {
    if (this.#sockets.size >= maxClients) {
      socket.destroy();
      return;
    }
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.setKeepAlive(true);
    const client = new ControlClient(socket, this.#context.identifiers.uuid);
    const reader = new FrameReader();
    const { clock, timers } = this.#context;
    const deadline = clock.setTimer(() => {
      if (!client.authenticated) socket.destroy();
    }, timers.authenticateMs);
    socket.on('data', (chunk) => {
      for (const frame of reader.push(chunk.toString('latin1'))) {
        if (client.alive) this.#receive(client, socket, frame);
      }
    });
    socket.on('error', (error) =>
      this.#context.logger.debug({ err: error }, 'control connection error'),
    );
    socket.on('close', () => {
      clock.clearTimer(deadline);
      this.#sockets.delete(socket);
      client.markGone();
      this.#context.routes.removeClient(client);
      this.#options.onGone(client);
      if (client.authenticated) this.#context.logger.info('application disconnected');
    });
  }

  #receive(client: ControlClient, socket: Socket, frame: ControlFrame): void {
    switch (frame.kind) {
      case 'broken':
        socket.destroy();
        return;
      case 'oversize':
        this.#disconnect(client, frame.messageId, 'message too long');
        return;
      case 'frame': {
        const { messageId, command } = parseCommand(frame.payload);
        this.#execute(client, messageId, command);
        return;
      }
    }
  }

  #execute(client: ControlClient, messageId: string, command: ControlCommand): void {
    if (command.kind === 'authenticate') {
      this.#authenticate(client, messageId, command);
      return;
    }
    if (!client.authenticated && command.kind !== 'malformed') {
      this.#disconnect(client, messageId, 'not authenticated');
      return;
    }
    switch (command.kind) {
      case 'malformed':
        this.#disconnect(client, messageId, command.reason);
        return;
      case 'ping':
        client.ok(messageId, 'pong');
        return;
      case 'route':
        if (this.#context.routes.add(client, command.verb)) {
          client.ok(messageId);
          return;
        }
        client.refuse(messageId, 'too many routes');
        return;
      case 'removeRoute':
        this.#context.routes.remove(client, command.verb);
        client.ok(messageId);
        return;
      case 'proxy':
        if (command.fields.length >= 4) {
          client.refuse(messageId, 'proxy is not supported by this server');
          return;
        }
        this.#disconnect(
          client,
          messageId,
          'Invalid proxy request: not enough information provided',
        );
        return;
      case 'sip':
        this.#options.onSip(client, messageId, command);
        return;
    }
  }

  #authenticate(
    client: ControlClient,
    messageId: string,
    command: Extract<ControlCommand, { kind: 'authenticate' }>,
  ): void {
    if (!sameSecret(command.secret, this.#options.secret)) {
      this.#context.logger.warn('application refused: incorrect secret');
      this.#disconnect(client, messageId, 'incorrect secret');
      return;
    }
    client.authenticated = true;
    this.#context.logger.info({ clients: this.#sockets.size }, 'application connected');
    const { local } = this.#context;
    const address = formatHostPort(local.host, local.port);
    const hostports = `tcp/${address},udp/${address}`;
    client.ok(messageId, hostports, serverVersion, hostports);
  }

  #disconnect(client: ControlClient, messageId: string, reason: string): void {
    client.refuseAndClose(messageId, reason);
  }
}

/**
 * Compares in constant time. A frame has one character per byte, so converting it to latin1
 * restores the UTF-8 bytes.
 */
function sameSecret(given: string, expected: string): boolean {
  const left = Buffer.from(given, 'latin1');
  const right = Buffer.from(expected, 'utf8');
  return left.length === right.length && timingSafeEqual(left, right);
}
