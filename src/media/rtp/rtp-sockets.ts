// The UDP sockets of one call: RTP on the even port, RTCP on the odd port above it. We never send
// RTCP. We keep the port open to receive reports as a sign of life, to cause no ICMP errors at the
// far end, and to keep other programs off the port.

import { createSocket, type Socket, type SocketOptions } from 'node:dgram';
import { isIPv6 } from 'node:net';

export type RtpSocketHandlers = {
  onPacket(packet: Uint8Array, address: string, port: number): void;
  onRtcp(packet: Uint8Array, address: string, port: number): void;
  /** The far end, or a router on the way, refuses our packets. The socket itself still works. */
  onUnreachable(): void;
  onError(reason: string): void;
};

export type OpenResult =
  | { readonly kind: 'open'; readonly sockets: RtpSockets }
  | { readonly kind: 'failed'; readonly reason: string };

/**
 * Errors that ICMP and ICMPv6 cause on a connected socket (Linux: icmp_err_convert,
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
    // Connecting would bind a wildcard socket to the local address of the route to the far end. On
    // a host with several addresses, the far end may send to another one, and its packets would be
    // lost.
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
    // Ignore errors: the call does not depend on RTCP.
    rtcp.on('error', () => {});
    return { kind: 'open', sockets: new RtpSockets(host, rtp, rtcp) };
  }

  /** Sends a packet. If that fails, the packet is lost, as on any network. */
  send(packet: Uint8Array, port: number, address: string): void {
    if (this.#connected) this.#rtp.send(packet);
    else this.#rtp.send(packet, port, address);
  }

  /**
   * Connects the RTP socket until `disconnect`. Sending then needs no route look-up, which makes it
   * 30 % cheaper, and the kernel drops packets of other senders.
   */
  connect(port: number, address: string): void {
    if (!this.#mayConnect) return;
    this.disconnect();
    // `connect` takes effect immediately, because the address is a literal. If it fails (no route),
    // the socket stays unconnected. The callback prevents an error event.
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

/** @returns why we cannot bind to this address, or undefined if we can */
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
  // Only literals of this family get here. The default look-up would delay each packet by a turn of
  // the event loop.
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
    // The socket is already closed.
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
