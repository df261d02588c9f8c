// SIP over TCP, with one listener. For each peer address, we reuse the connection in both
// directions. The number of connections is limited.

import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { SipPeer, TransportHandlers, TransportOptions } from './sip-peer.ts';
import { type Connection, StreamConnections } from './stream-connections.ts';

/**
 * Limit for inbound and outbound connections together, which bounds the number of file descriptors.
 */
const maxConnections = 2_048;
/**
 * There's a lower limit for inbound connections, so that some remain for the engine's own requests.
 */
const maxAcceptedConnections = 1_536;

export class TcpTransport implements AsyncDisposable {
  readonly #options: TransportOptions;
  readonly #handlers: TransportHandlers;
  readonly #server: Server;
  readonly #connections: StreamConnections;
  #accepted = 0;
  #closed = false;

  constructor(options: TransportOptions, handlers: TransportHandlers) {
    this.#options = options;
    this.#handlers = handlers;
    this.#connections = new StreamConnections(options, handlers);
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
    const connection = this.#connections.of(peer) ?? this.#open(peer);
    if (connection === undefined) {
      this.#handlers.onFailure(peer);
      return;
    }
    this.#connections.sendRequest(connection, peer, text);
  }

  /**
   * Only uses the connection on which the request arrived. RFC 3261 would also allow us to open a
   * connection to the address in Via, but none of our peers need that.
   */
  sendResponse(peer: SipPeer, text: string): void {
    const connection = this.#connections.of(peer);
    if (connection !== undefined) this.#connections.write(connection, text);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#connections.close();
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
    const peer: SipPeer = { protocol: 'tcp', address: remoteAddress, port: remotePort };
    this.#connections.adopt(socket, peer, false);
  }

  #open(peer: SipPeer): Connection | undefined {
    if (this.#closed || this.#connections.size >= maxConnections) return undefined;
    const { local } = peer;
    const socket = connect({
      ...{ host: peer.address, port: peer.port },
      ...(local !== undefined && { localAddress: local }),
    });
    return this.#connections.adopt(socket, peer, true);
  }
}
