// The way to a bot below WebSocket: its name, TCP and TLS. It can be made while the phone still rings, so that the answer waits
// for the upgrade alone. The addresses are judged where the connection is made.

import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { AddressGuard } from '../lib/address-guard.ts';

/** Not connected yet; what becomes of it the socket tells. Undefined for an address that is not allowed. */
export function openTransport(url: URL, guard: AddressGuard): Socket | undefined {
  if (!guard.isHostAllowed(url)) return undefined;
  const isSecure = url.protocol === 'wss:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const to = {
    host,
    port: url.port === '' ? (isSecure ? 443 : 80) : Number(url.port),
    lookup: guard.lookup,
    // Otherwise a frame waits for the acknowledgement of the one before it.
    noDelay: true,
    keepAlive: true,
  };
  return isSecure
    ? // An address is no name that a certificate could be asked for by (RFC 6066 3).
      connectTls({ ...to, ALPNProtocols: ['http/1.1'], ...(isName(url) && { servername: host }) })
    : connect(to);
}

function isName(url: URL): boolean {
  return !url.hostname.startsWith('[') && !/^[\d.]+$/.test(url.hostname);
}

/** A transport in advance. What goes wrong with it is no loss: another one is made when it is needed. */
export class ReadyTransport {
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

  /** For its user from now on; undefined where it is of no use. */
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
