// The transport under a bot's WebSocket: name look-up, TCP and TLS. We can set it up while the
// phone is still ringing, so that only the upgrade is left to do when the call is answered. The
// guard checks each address at the moment when we connect.

import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { AddressGuard } from '../lib/address-guard.ts';

/**
 * Starts connecting and returns the socket immediately. The socket emits the outcome later.
 * @returns undefined if the address isn't allowed
 */
export function openTransport(url: URL, guard: AddressGuard): Socket | undefined {
  if (!guard.isHostAllowed(url)) return undefined;
  const isSecure = url.protocol === 'wss:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const to = {
    host,
    port: url.port === '' ? (isSecure ? 443 : 80) : Number(url.port),
    lookup: guard.lookup,
    // Nagle's algorithm would delay each frame until the previous one has been acknowledged.
    noDelay: true,
    keepAlive: true,
  };
  return isSecure
    ? // The TLS server name must not be an IP address (RFC 6066, section 3).
      connectTls({ ...to, ALPNProtocols: ['http/1.1'], ...(isName(url) && { servername: host }) })
    : connect(to);
}

function isName(url: URL): boolean {
  return !url.hostname.startsWith('[') && !/^[\d.]+$/.test(url.hostname);
}

/**
 * A transport that we connect in advance. If the connection fails, we open a new one when it's
 * needed.
 */
export class PreparedTransport {
  readonly #socket: Socket | undefined;
  #isUsable: boolean;
  readonly #giveUp = () => {
    this.#isUsable = false;
    this.#socket?.destroy();
  };

  constructor(url: URL, guard: AddressGuard) {
    this.#socket = openTransport(url, guard);
    this.#isUsable = this.#socket !== undefined;
    for (const event of endEvents) this.#socket?.on(event, this.#giveUp);
  }

  /**
   * Hands the socket over to the caller.
   * @returns undefined if the socket is unusable
   */
  take(): Socket | undefined {
    if (!this.#isUsable) return undefined;
    for (const event of endEvents) this.#socket?.off(event, this.#giveUp);
    this.#isUsable = false;
    return this.#socket;
  }

  close(): void {
    if (this.#isUsable) this.#giveUp();
  }
}

const endEvents = ['error', 'end', 'close'] as const;
