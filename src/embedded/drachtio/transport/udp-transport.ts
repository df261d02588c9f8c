// SIP over UDP. Node doesn't report ICMP errors on unconnected sockets, so for each destination we
// send requests through a connected socket of its own, which is bound to the same local port with
// SO_REUSEADDR. Linux passes ICMP errors, and datagrams from the peer, to the socket with the most
// specific match. That may be a connected socket or the shared one, so both kinds have the same
// handler.

import { createSocket, type Socket, type SocketOptions } from 'node:dgram';
import { lookup } from 'node:dns';
import { once } from 'node:events';
import { isIP, isIPv6 } from 'node:net';
import type { TimerHandle } from '../transaction/engine-timing.ts';
import {
  peerKey,
  type SipPeer,
  type TransportHandlers,
  type TransportOptions,
} from './sip-peer.ts';

/**
 * Maximum number of destinations with a connected socket, which bounds the number of file
 * descriptors. Requests to any further destinations are sent through the shared socket, so if a
 * port is dead, we don't notice until the request times out.
 */
const maxConnectedSockets = 256;
/** Trunks name their local addresses, and a host has a handful. */
const maxLocalAddresses = 64;
/**
 * Maximum number of datagrams that may wait for their socket to connect. Connecting takes one turn
 * of the event loop.
 */
const maxWaitingDatagrams = 4_096;
/**
 * With this much buffer, the kernel can store the messages from a burst of calls while the event
 * loop is busy.
 */
const socketBufferBytes = 4 * 1_024 * 1_024;
/** The largest payload of an IPv4 datagram. */
const maxDatagramBytes = 65_507;

type ConnectedSocket = {
  readonly socket: Socket;
  readonly waiting: Buffer[];
  connected: boolean;
  lastUsedMs: number;
  timer: TimerHandle | undefined;
};

export class UdpTransport implements AsyncDisposable {
  readonly #options: TransportOptions;
  readonly #handlers: TransportHandlers;
  readonly #main: Socket;
  readonly #connected = new Map<string, ConnectedSocket>();
  /** Sockets like `#main` on the local addresses of trunks, from their first request on. */
  readonly #locals = new Map<string, Socket>();
  #closed = false;

  constructor(options: TransportOptions, handlers: TransportHandlers) {
    this.#options = options;
    this.#handlers = handlers;
    this.#main = this.#createSocket(undefined);
  }

  async listen(): Promise<void> {
    // Register the listener first, because the socket may be bound immediately.
    const listening = once(this.#main, 'listening');
    this.#main.bind({ port: this.#options.port, address: this.#options.host });
    await listening;
    enlargeBuffers(this.#main);
    this.#main.on('error', (error) =>
      this.#options.logger.debug({ err: error }, 'sip udp socket error'),
    );
  }

  get socketCount(): number {
    return this.#connected.size;
  }

  sendRequest(peer: SipPeer, text: string): void {
    if (this.#closed) return;
    const payload = Buffer.from(text, 'latin1');
    const key = peerKey(peer);
    const existing = this.#connected.get(key);
    if (existing !== undefined) {
      this.#sendConnected(existing, payload, peer);
      return;
    }
    if (this.#connected.size >= maxConnectedSockets) {
      this.#sendShared(payload, peer);
      return;
    }
    const opened = this.#openConnected(peer, key);
    this.#sendConnected(opened, payload, peer);
  }

  sendResponse(peer: SipPeer, text: string): void {
    this.#sendShared(Buffer.from(text, 'latin1'), peer);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const key of [...this.#connected.keys()]) this.#drop(key);
    for (const socket of this.#locals.values()) socket.close();
    this.#locals.clear();
    const closed = once(this.#main, 'close');
    this.#main.close();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /**
   * Returns the socket on a trunk's local address. If the address doesn't exist, sending fails,
   * which fails the request.
   */
  #sharedFor({ local }: SipPeer): Socket {
    if (local === undefined) return this.#main;
    const existing = this.#locals.get(local);
    if (existing !== undefined) return existing;
    if (this.#locals.size >= maxLocalAddresses) return this.#main;
    const socket = this.#createSocket(local);
    this.#locals.set(local, socket);
    socket.on('error', (error) => {
      this.#options.logger.warn({ err: error, local }, 'sip udp socket of a local address failed');
      if (this.#locals.get(local) !== socket) return;
      this.#locals.delete(local);
      socket.close();
    });
    socket.bind({ port: this.#main.address().port, address: local }, () => enlargeBuffers(socket));
    return socket;
  }

  /** @param local the trunk's local address. Undefined for the transport's own */
  #createSocket(local: string | undefined): Socket {
    const socket = createSocket({
      type: isIPv6(local ?? this.#options.host) ? 'udp6' : 'udp4',
      reuseAddr: true,
      lookup: lookupUnlessAddress,
    });
    socket.on('message', (data, from) => {
      this.#handlers.onMessage(data.toString('latin1'), {
        protocol: 'udp',
        address: from.address,
        port: from.port,
        ...(local !== undefined && { local }),
      });
    });
    return socket;
  }

  #sendShared(payload: Buffer, peer: SipPeer): void {
    if (this.#closed || payload.length > maxDatagramBytes) return;
    this.#sharedFor(peer).send(payload, peer.port, peer.address, (error) => {
      if (error !== null) this.#handlers.onFailure(peer);
    });
  }

  #sendConnected(entry: ConnectedSocket, payload: Buffer, peer: SipPeer): void {
    if (this.#closed) return;
    if (payload.length > maxDatagramBytes) {
      this.#handlers.onFailure(peer);
      return;
    }
    if (!entry.connected) {
      if (entry.waiting.length < maxWaitingDatagrams) entry.waiting.push(payload);
      return;
    }
    entry.lastUsedMs = this.#options.clock.now();
    entry.socket.send(payload, (error) => {
      if (error !== null) this.#handlers.onFailure(peer);
    });
  }

  #openConnected(peer: SipPeer, key: string): ConnectedSocket {
    // The carrier's requests may come from another port, so the address needs a socket of its own.
    this.#sharedFor(peer);
    const socket = this.#createSocket(peer.local);
    const entry: ConnectedSocket = {
      socket,
      waiting: [],
      connected: false,
      lastUsedMs: this.#options.clock.now(),
      timer: undefined,
    };
    this.#connected.set(key, entry);
    this.#armIdle(entry, key);
    socket.on('error', () => {
      if (entry.connected) this.#handlers.onFailure(peer);
      else this.#giveUpConnecting(entry, peer, key);
    });
    const address = peer.local ?? this.#options.host;
    socket.bind({ port: this.#main.address().port, address }, () => {
      enlargeBuffers(socket);
      // The callback receives an error, although Node's types don't say so.
      socket.connect(peer.port, peer.address, (...given: readonly unknown[]) => {
        if (this.#connected.get(key) !== entry) return;
        if (given[0] !== undefined) {
          this.#giveUpConnecting(entry, peer, key);
          return;
        }
        entry.connected = true;
        for (const payload of entry.waiting.splice(0)) this.#sendConnected(entry, payload, peer);
      });
    });
    return entry;
  }

  /**
   * Called if there's no file descriptor left, or no route. We send the waiting datagrams through
   * the shared socket instead, which reports any failure.
   */
  #giveUpConnecting(entry: ConnectedSocket, peer: SipPeer, key: string): void {
    const waiting = entry.waiting.splice(0);
    this.#drop(key);
    for (const payload of waiting) this.#sendShared(payload, peer);
  }

  /**
   * We use one timer per socket rather than per datagram. When the timer fires, it checks how long
   * the socket hasn't sent anything.
   */
  #armIdle(entry: ConnectedSocket, key: string): void {
    const { clock, timers } = this.#options;
    entry.timer = clock.setTimer(() => {
      if (clock.now() - entry.lastUsedMs < timers.udpIdleMs) this.#armIdle(entry, key);
      else this.#drop(key);
    }, timers.udpIdleMs);
  }

  #drop(key: string): void {
    const entry = this.#connected.get(key);
    if (entry === undefined) return;
    this.#connected.delete(key);
    this.#options.clock.clearTimer(entry.timer);
    entry.socket.removeAllListeners('error');
    entry.socket.on('error', () => undefined);
    entry.socket.close();
  }
}

/**
 * Skips the look-up for IP addresses. A look-up would delay sends on the shared socket by a tick,
 * so a BYE on a connected socket could overtake a response that was sent before it.
 */
const lookupUnlessAddress: SocketOptions['lookup'] = (name, options, callback) => {
  const family = isIP(name);
  if (family === 0) lookup(name, options, callback);
  else callback(null, name, family);
};

function enlargeBuffers(socket: Socket): void {
  try {
    socket.setRecvBufferSize(socketBufferBytes);
    socket.setSendBufferSize(socketBufferBytes);
  } catch {
    // The system's limit is lower, so we use the default size.
  }
}
