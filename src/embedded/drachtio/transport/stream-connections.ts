// SIP over connections (TCP or TLS). There's one connection per peer, used in both directions and
// closed when it's idle. Buffered input and unsent output are limited.

import type { Socket } from 'node:net';
import type { TimerHandle } from '../transaction/engine-timing.ts';
import {
  peerKey,
  type SipPeer,
  type TransportHandlers,
  type TransportOptions,
} from './sip-peer.ts';
import { StreamFramer } from './tcp-framing.ts';

/** If a peer stops reading, we disconnect it once this much output has piled up. */
export const maxUnsentBytes = 4 * 1_024 * 1_024;

export type Connection = {
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
  /** Undefined unless the connection is kept alive with CRLFs. */
  keepAliveTimer: TimerHandle | undefined;
  /** True from a double CRLF until the far end sends anything. */
  awaitsPong: boolean;
  /** Why the connection is ending. Undefined if the far end closes it without an error. */
  error: Error | undefined;
};

/** We can't find the start of the next message in the stream any more. */
export class NotSipError extends Error {}

/** The far end didn't respond to a keep-alive. */
class NoPongError extends Error {}

type ConnectionOptions = Pick<TransportOptions, 'timers' | 'clock' | 'logger'> & {
  /** Says in words why a connection ended. Default: no words. */
  readonly reasonFor?: (error: Error | undefined) => string;
  /** Keeps a connection open although it's idle. Default: false. */
  readonly isNeeded?: (peer: SipPeer) => boolean;
};

export class StreamConnections {
  readonly #options: ConnectionOptions;
  readonly #handlers: TransportHandlers;
  readonly #connections = new Map<string, Connection>();
  #closed = false;

  constructor(options: ConnectionOptions, handlers: TransportHandlers) {
    this.#options = options;
    this.#handlers = handlers;
  }

  get size(): number {
    return this.#connections.size;
  }

  of(peer: SipPeer): Connection | undefined {
    return this.#connections.get(peerKey(peer));
  }

  /** Starts to exchange messages over a socket. */
  adopt(socket: Socket, peer: SipPeer, spoken: boolean): Connection {
    socket.setNoDelay(true);
    const connection: Connection = {
      socket,
      peer,
      framer: new StreamFramer(),
      lastUsedMs: this.#options.clock.now(),
      spoken,
      timer: undefined,
      keepAliveTimer: undefined,
      awaitsPong: false,
      error: undefined,
    };
    const key = peerKey(peer);
    this.#connections.set(key, connection);
    this.#armIdle(connection);
    socket.on('data', (data) => this.#receive(connection, data.toString('latin1')));
    socket.on('error', (error) => {
      connection.error = error;
      this.#options.logger.debug({ err: error }, 'sip connection error');
    });
    socket.on('close', () => {
      this.#options.clock.clearTimer(connection.timer);
      this.#options.clock.clearTimer(connection.keepAliveTimer);
      if (this.#connections.get(key) === connection) this.#connections.delete(key);
      if (!this.#closed)
        this.#handlers.onFailure(peer, this.#options.reasonFor?.(connection.error));
    });
    return connection;
  }

  /**
   * Sends a request of ours. If the peer's trunk wants that, also starts to keep the connection
   * alive, so that the far end's requests reach us through a NAT, and a dead connection is noticed.
   */
  sendRequest(connection: Connection, peer: SipPeer, text: string): void {
    if (peer.keepsAlive === true && connection.keepAliveTimer === undefined) {
      this.#armKeepAlive(connection);
    }
    this.write(connection, text);
  }

  write(connection: Connection, text: string): void {
    connection.lastUsedMs = this.#options.clock.now();
    if (connection.socket.writableLength > maxUnsentBytes) {
      connection.socket.destroy();
      return;
    }
    connection.socket.write(text, 'latin1');
  }

  close(): void {
    this.#closed = true;
    for (const connection of [...this.#connections.values()]) connection.socket.destroy();
  }

  #receive(connection: Connection, chunk: string): void {
    connection.lastUsedMs = this.#options.clock.now();
    const isPong = connection.awaitsPong && chunk === '\r\n';
    connection.awaitsPong = false;
    if (isPong) return;
    for (const item of connection.framer.push(chunk)) {
      switch (item.kind) {
        case 'message':
          connection.spoken = true;
          this.#handlers.onMessage(item.text, connection.peer);
          break;
        case 'ping':
          this.write(connection, '\r\n');
          break;
        case 'broken':
          this.#options.logger.debug({ why: item.why }, 'sip stream cannot be read');
          connection.socket.destroy(new NotSipError(item.why));
          return;
      }
    }
  }

  /** Sends a double CRLF, and expects a CRLF or any message in return. */
  #armKeepAlive(connection: Connection): void {
    const { clock, timers } = this.#options;
    connection.keepAliveTimer = clock.setTimer(() => {
      connection.awaitsPong = true;
      this.write(connection, '\r\n\r\n');
      connection.keepAliveTimer = clock.setTimer(() => {
        if (connection.awaitsPong) connection.socket.destroy(new NoPongError('no pong'));
        else this.#armKeepAlive(connection);
      }, timers.pongMs);
    }, timers.keepAliveMs);
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
      const isIdle = quietMs >= (doubtful ? timers.tcpPartialMs : timers.tcpIdleMs);
      const isNeeded = !doubtful && this.#options.isNeeded?.(connection.peer) === true;
      if (isIdle && !isNeeded) connection.socket.destroy();
      else this.#armIdle(connection);
    }, timers.tcpPartialMs);
  }
}
