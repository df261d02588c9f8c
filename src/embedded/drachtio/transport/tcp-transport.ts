// SIP over TCP, with one listener. For each peer address, we reuse the connection in both
// directions, and close it when it's idle. The number of connections, their buffered input and
// their unsent output are limited.

import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { TimerHandle } from '../transaction/engine-timing.ts';
import {
  peerKey,
  type SipPeer,
  type TransportHandlers,
  type TransportOptions,
} from './sip-peer.ts';
import { StreamFramer } from './tcp-framing.ts';

/**
 * Limit for inbound and outbound connections together, which bounds the number of file descriptors.
 */
const maxConnections = 2_048;
/**
 * There's a lower limit for inbound connections, so that some remain for the engine's own requests.
 */
const maxAcceptedConnections = 1_536;
/** If a peer stops reading, we disconnect it once this much output has piled up. */
const maxUnsentBytes = 4 * 1_024 * 1_024;

type Connection = {
  readonly socket: Socket;
  readonly peer: SipPeer;
  readonly framer: StreamFramer;
  lastUsedMs: number;
  /**
   * True if the engine has opened the connection, or if a whole message has arrived on it.
   * Otherwise, the shorter idle time-out applies.
   */
  spoken: boolean;
  timer: TimerHandle | undefined;
};

export class TcpTransport implements AsyncDisposable {
  readonly #options: TransportOptions;
  readonly #handlers: TransportHandlers;
  readonly #server: Server;
  readonly #connections = new Map<string, Connection>();
  #accepted = 0;
  #closed = false;

  constructor(options: TransportOptions, handlers: TransportHandlers) {
    this.#options = options;
    this.#handlers = handlers;
    this.#server = createServer((socket) => this.#accept(socket));
  }

  async listen(): Promise<number> {
    this.#server.listen(this.#options.port, this.#options.host);
    await once(this.#server, 'listening');
    this.#server.on('error', (error) =>
      this.#options.logger.warn({ err: error }, 'sip tcp listener error'),
    );
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : this.#options.port;
  }

  get connectionCount(): number {
    return this.#connections.size;
  }

  sendRequest(peer: SipPeer, text: string): void {
    const connection = this.#connections.get(peerKey(peer)) ?? this.#open(peer);
    if (connection === undefined) {
      this.#handlers.onFailure(peer);
      return;
    }
    this.#write(connection, text);
  }

  /**
   * Only uses the connection on which the request arrived. RFC 3261 would also allow us to open a
   * connection to the address in Via, but none of our peers need that.
   */
  sendResponse(peer: SipPeer, text: string): void {
    const connection = this.#connections.get(peerKey(peer));
    if (connection !== undefined) this.#write(connection, text);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const connection of [...this.#connections.values()]) connection.socket.destroy();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #accept(socket: Socket): void {
    const { remoteAddress, remotePort } = socket;
    const isFull = this.#accepted >= maxAcceptedConnections;
    if (remoteAddress === undefined || remotePort === undefined || isFull) {
      socket.destroy();
      return;
    }
    this.#accepted += 1;
    socket.on('close', () => {
      this.#accepted -= 1;
    });
    this.#adopt(socket, { protocol: 'tcp', address: remoteAddress, port: remotePort }, false);
  }

  #open(peer: SipPeer): Connection | undefined {
    if (this.#closed || this.#connections.size >= maxConnections) return undefined;
    const socket = connect({ host: peer.address, port: peer.port });
    return this.#adopt(socket, peer, true);
  }

  #adopt(socket: Socket, peer: SipPeer, spoken: boolean): Connection {
    socket.setNoDelay(true);
    const connection: Connection = {
      socket,
      peer,
      framer: new StreamFramer(),
      lastUsedMs: this.#options.clock.now(),
      spoken,
      timer: undefined,
    };
    const key = peerKey(peer);
    this.#connections.set(key, connection);
    this.#armIdle(connection);
    socket.on('data', (data) => this.#receive(connection, data.toString('latin1')));
    socket.on('error', (error) =>
      this.#options.logger.debug({ err: error }, 'sip tcp connection error'),
    );
    socket.on('close', () => {
      this.#options.clock.clearTimer(connection.timer);
      if (this.#connections.get(key) === connection) this.#connections.delete(key);
      if (!this.#closed) this.#handlers.onFailure(peer);
    });
    return connection;
  }

  #receive(connection: Connection, chunk: string): void {
    connection.lastUsedMs = this.#options.clock.now();
    for (const item of connection.framer.push(chunk)) {
      switch (item.kind) {
        case 'message':
          connection.spoken = true;
          this.#handlers.onMessage(item.text, connection.peer);
          break;
        case 'ping':
          this.#write(connection, '\r\n');
          break;
        case 'broken':
          this.#options.logger.debug({ why: item.why }, 'sip tcp stream cannot be read');
          connection.socket.destroy();
          return;
      }
    }
  }

  #write(connection: Connection, text: string): void {
    connection.lastUsedMs = this.#options.clock.now();
    if (connection.socket.writableLength > maxUnsentBytes) {
      connection.socket.destroy();
      return;
    }
    connection.socket.write(text, 'latin1');
  }

  /**
   * The shorter time-out applies if the connection is silent, or stuck halfway through a message.
   * Otherwise, anyone could keep a connection open for a long time by sending a few bytes.
   */
  #armIdle(connection: Connection): void {
    const { clock, timers } = this.#options;
    connection.timer = clock.setTimer(() => {
      const quietMs = clock.now() - connection.lastUsedMs;
      const doubtful = !connection.spoken || connection.framer.pendingBytes > 0;
      if (quietMs >= (doubtful ? timers.tcpPartialMs : timers.tcpIdleMs)) {
        connection.socket.destroy();
      } else {
        this.#armIdle(connection);
      }
    }, timers.tcpPartialMs);
  }
}
