// The UDP sockets of one call: RTP on the even port, RTCP on the odd one. RTCP is only received, as
// a sign of life, and never sent. The port is held so that the far end's reports cause no ICMP
// error, and no other program uses it.

import { createSocket, type Socket, type SocketOptions } from 'node:dgram';
import { isIPv6 } from 'node:net';

export type RtpSocketHandlers = {
  onPacket(packet: Uint8Array, address: string, port: number): void;
  onRtcp(packet: Uint8Array, address: string, port: number): void;
  /** The far end, or a router before it, refuses our packets. This is not a fault of the socket. */
  onUnreachable(): void;
  onError(reason: string): void;
};

export type OpenResult =
  | { readonly kind: 'open'; readonly sockets: RtpSockets }
  | { readonly kind: 'failed'; readonly reason: string };

/**
 * Errors of a connected socket that ICMP and ICMPv6 cause (Linux: icmp_err_convert,
 * icmpv6_err_convert).
 */
const pathErrors: ReadonlySet<string | undefined> = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EHOSTDOWN',
  'ENONET',
  'ENOPROTOOPT',
  'EOPNOTSUPP',
  'ENOTSUP',
  'EMSGSIZE',
  'EACCES',
  'EPROTO',
]);

export class RtpSockets {
  readonly #rtp: Socket;
  readonly #rtcp: Socket;
  readonly #mayConnect: boolean;
  #connected = false;

  private constructor(host: string, rtp: Socket, rtcp: Socket) {
    // Connecting would bind a wildcard socket to the one address of the route back. On a host with
    // several addresses, packets of the far end may be sent to another one, and would be lost.
    this.#mayConnect = host !== '0.0.0.0' && host !== '::';
    this.#rtp = rtp;
    this.#rtcp = rtcp;
  }

  static async open(host: string, port: number, handlers: RtpSocketHandlers): Promise<OpenResult> {
    const rtp = createUdpSocket(host);
    const rtcp = createUdpSocket(host);
    try {
      await bind(rtp, host, port);
      await bind(rtcp, host, port + 1);
    } catch (error) {
      closeQuietly(rtp);
      closeQuietly(rtcp);
      return { kind: 'failed', reason: reasonOf(error) };
    }
    rtp.on('message', (packet, from) => handlers.onPacket(packet, from.address, from.port));
    rtp.on('error', (error: NodeJS.ErrnoException) => {
      if (pathErrors.has(error.code)) handlers.onUnreachable();
      else handlers.onError(reasonOf(error));
    });
    rtcp.on('message', (packet, from) => handlers.onRtcp(packet, from.address, from.port));
    // Errors do not matter here: the call does not depend on RTCP.
    rtcp.on('error', () => {});
    return { kind: 'open', sockets: new RtpSockets(host, rtp, rtcp) };
  }

  /** Sends a packet without a callback: a packet that cannot be sent is lost, as on any network. */
  send(packet: Uint8Array, port: number, address: string): void {
    if (this.#connected) this.#rtp.send(packet);
    else this.#rtp.send(packet, port, address);
  }

  /**
   * Connects the RTP socket until `disconnect`. Sending then needs no route look-up, which saves 30
   * % of its cost. The kernel drops packets of other senders.
   */
  connect(port: number, address: string): void {
    if (!this.#mayConnect) return;
    this.disconnect();
    // The connection is in force on return, because the address is a literal. If it is refused (no
    // route), the socket stays as it was, and the callback prevents an error.
    this.#rtp.connect(port, address, () => {});
    this.#connected = hasPeer(this.#rtp);
  }

  disconnect(): void {
    if (!this.#connected) return;
    this.#connected = false;
    this.#rtp.disconnect();
  }

  close(): void {
    closeQuietly(this.#rtp);
    closeQuietly(this.#rtcp);
  }
}

/** @returns why nothing can be received at this address, or undefined if it can */
export async function addressProblem(host: string): Promise<string | undefined> {
  const socket = createUdpSocket(host);
  try {
    await bind(socket, host, 0);
    return undefined;
  } catch (error) {
    return reasonOf(error);
  } finally {
    closeQuietly(socket);
  }
}

function createUdpSocket(host: string): Socket {
  const family = isIPv6(host) ? 6 : 4;
  // Only literals of this family get here. The default look-up would cost each packet a turn of the
  // event loop.
  const lookup: SocketOptions['lookup'] = (address, _options, callback) =>
    callback(null, address, family);
  return createSocket({ type: family === 6 ? 'udp6' : 'udp4', lookup });
}

function bind(socket: Socket, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.once('listening', () => {
      socket.off('error', reject);
      resolve();
    });
    socket.bind({ address: host, port, exclusive: true });
  });
}

function hasPeer(socket: Socket): boolean {
  try {
    socket.remoteAddress();
    return true;
  } catch {
    return false;
  }
}

function closeQuietly(socket: Socket): void {
  try {
    socket.close();
  } catch {
    // The socket was never bound, or is closed already: nothing is left to do.
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
