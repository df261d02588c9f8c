// SIP over TLS, as a client only: the engine opens connections and doesn't listen. We reuse a
// connection for each peer, i.e. for each combination of address, port, settings and name. The far
// end sends its own requests over the same connection. A SIP message never leaves before the far
// end's certificate has been verified, and there's no option to skip that: a private CA can be set,
// so an unverified connection would only help somebody on the path.

import { isIP } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import type { TimerHandle } from '../transaction/engine-timing.ts';
import { checkSipIdentity } from './server-identity.ts';
import {
  peerKey,
  type SipPeer,
  type TransportHandlers,
  type TransportOptions,
} from './sip-peer.ts';
import { maxUnsentBytes, StreamConnections } from './stream-connections.ts';
import { HandshakeTimeoutError, TooManyConnectionsError, tlsReason } from './tls-reasons.ts';
import type { TlsDirectory } from './tls-settings.ts';

/** Bounds the number of file descriptors. A trunk has 16 gateways at most. */
const maxConnections = 512;
/** Bounds the memory for requests that wait for one handshake. */
const maxWaiting = 4_096;

export type TlsConnected =
  /** `localPort` is this end's port of the connection. */
  | { readonly ok: true; readonly localPort: number }
  | { readonly ok: false; readonly reason: string };

type Opening = {
  readonly socket: TLSSocket;
  readonly queue: string[];
  queuedBytes: number;
  readonly waiting: ((result: TlsConnected) => void)[];
  timer: TimerHandle | undefined;
  error: Error | undefined;
};

type TlsOptions = Omit<TransportOptions, 'host' | 'port'> & {
  readonly directory: TlsDirectory;
  /** Whether a dialog needs the connection, because the far end can't reach us in another way. */
  readonly isNeeded: (peer: SipPeer) => boolean;
};

export class TlsTransport {
  readonly #options: TlsOptions;
  readonly #handlers: TransportHandlers;
  readonly #connections: StreamConnections;
  readonly #openings = new Map<string, Opening>();
  #closed = false;

  constructor(options: TlsOptions, handlers: TransportHandlers) {
    this.#options = options;
    this.#handlers = handlers;
    const { isNeeded } = options;
    this.#connections = new StreamConnections(
      { ...options, reasonFor: tlsReason, isNeeded },
      handlers,
    );
  }

  get connectionCount(): number {
    return this.#connections.size + this.#openings.size;
  }

  localPort(peer: SipPeer): number | undefined {
    return this.#connections.of(peer)?.socket.localPort;
  }

  /** Calls `done` once the connection is verified, or has failed. At once if it's already open. */
  whenConnected(peer: SipPeer, done: (result: TlsConnected) => void): void {
    const localPort = this.localPort(peer);
    if (localPort !== undefined) {
      done({ ok: true, localPort });
      return;
    }
    const opening = this.#openingTo(peer);
    if (opening === undefined || opening.waiting.length >= maxWaiting) {
      done({ ok: false, reason: tlsReason(new TooManyConnectionsError()) });
      return;
    }
    opening.waiting.push(done);
  }

  sendRequest(peer: SipPeer, text: string): void {
    const connection = this.#connections.of(peer);
    if (connection !== undefined) {
      this.#connections.sendRequest(connection, peer, text);
      return;
    }
    const opening = this.#openingTo(peer);
    if (opening === undefined || opening.queuedBytes + text.length > maxUnsentBytes) {
      this.#handlers.onFailure(peer, tlsReason(new TooManyConnectionsError()));
      return;
    }
    opening.queue.push(text);
    opening.queuedBytes += text.length;
  }

  sendResponse(peer: SipPeer, text: string): void {
    const connection = this.#connections.of(peer);
    if (connection !== undefined) this.#connections.write(connection, text);
  }

  close(): void {
    this.#closed = true;
    this.#connections.close();
    for (const { socket, timer } of this.#openings.values()) {
      this.#options.clock.clearTimer(timer);
      socket.destroy();
    }
    this.#openings.clear();
  }

  #openingTo(peer: SipPeer): Opening | undefined {
    const key = peerKey(peer);
    return this.#openings.get(key) ?? this.#open(peer, key);
  }

  #open(peer: SipPeer, key: string): Opening | undefined {
    if (this.#closed || this.connectionCount >= maxConnections) return undefined;
    const { clock, timers } = this.#options;
    const socket = this.#connect(peer);
    const opening: Opening = {
      ...{ socket, queue: [], queuedBytes: 0, waiting: [] },
      ...{ timer: undefined, error: undefined },
    };
    this.#openings.set(key, opening);
    opening.timer = clock.setTimer(
      () => socket.destroy(new HandshakeTimeoutError()),
      timers.tlsHandshakeMs,
    );
    const onError = (error: Error): void => {
      opening.error = error;
    };
    const onClose = (): void => this.#onFailed(peer, key, opening);
    socket.on('error', onError);
    socket.on('close', onClose);
    socket.once('secureConnect', () => {
      socket.off('error', onError);
      socket.off('close', onClose);
      this.#onSecured(peer, key, opening);
    });
    return opening;
  }

  #connect(peer: SipPeer): TLSSocket {
    const name = peer.tls?.name ?? peer.address;
    return connect({
      host: peer.address,
      port: peer.port,
      ...(peer.local !== undefined && { localAddress: peer.local }),
      secureContext: this.#options.directory.contextOf(peer.tls?.trunk ?? ''),
      // SNI carries names only, never an address (RFC 6066 section 3).
      servername: isIP(name) === 0 ? name : '',
      rejectUnauthorized: true,
      checkServerIdentity: (_host, certificate) => checkSipIdentity(name, certificate),
    });
  }

  #onSecured(peer: SipPeer, key: string, opening: Opening): void {
    const { socket } = opening;
    this.#options.clock.clearTimer(opening.timer);
    this.#openings.delete(key);
    // The far end has no reason to renegotiate, and could keep us busy with it.
    socket.disableRenegotiation();
    // Keeps a NAT binding open, because the far end can reach us over this connection only.
    socket.setKeepAlive(true, this.#options.timers.tlsKeepAliveMs);
    const connection = this.#connections.adopt(socket, peer, true);
    for (const text of opening.queue) this.#connections.sendRequest(connection, peer, text);
    const localPort = socket.localPort ?? 0;
    for (const done of opening.waiting) done({ ok: true, localPort });
  }

  #onFailed(peer: SipPeer, key: string, opening: Opening): void {
    if (this.#closed) return;
    this.#options.clock.clearTimer(opening.timer);
    this.#openings.delete(key);
    const reason = tlsReason(opening.error);
    this.#options.logger.debug({ err: opening.error }, 'sip tls connection failed');
    for (const done of opening.waiting) done({ ok: false, reason });
    if (opening.queue.length > 0) this.#handlers.onFailure(peer, reason);
  }
}
