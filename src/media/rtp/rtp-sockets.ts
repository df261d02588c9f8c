// One call's UDP sockets: RTP on the even port, and RTCP on the odd port above it.

import { createSocket, type Socket, type SocketOptions } from 'node:dgram';
import { isIPv6 } from 'node:net';

export type RtpSocketHandlers = {
  onPacket(packet: Uint8Array, address: string, port: number): void;
  onRtcp(packet: Uint8Array, address: string, port: number): void;
  /**
   * The far end, or a router on the way to it, is rejecting our packets. The socket itself still
   * works.
   */
  onUnreachable(): void;
  onError(reason: string): void;
};

export type OpenResult =
  | { readonly kind: 'open'; readonly sockets: RtpSockets }
  | { readonly kind: 'failed'; readonly reason: string };

/**
 * Errors on a connected socket that result from ICMP or ICMPv6 messages (Linux: icmp_err_convert,
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
    // Connecting a wildcard socket would bind it to the local address on the route to the far end.
    // If the host has several addresses, the far end may be sending to a different one, and we'd
    // lose its packets.
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
      return { kind: 'failed', reason: errorMessage(error) };
    }
    rtp.on('message', (packet, from) => {
      if (isAnswerable(from)) handlers.onPacket(packet, from.address, from.port);
    });
    rtp.on('error', (error: NodeJS.ErrnoException) => {
      if (pathErrors.has(error.code)) handlers.onUnreachable();
      else handlers.onError(errorMessage(error));
    });
    rtcp.on('message', (packet, from) => {
      if (isAnswerable(from)) handlers.onRtcp(packet, from.address, from.port);
    });
    // Ignore errors, because calls don't depend on RTCP.
    rtcp.on('error', () => {});
    return { kind: 'open', sockets: new RtpSockets(host, rtp, rtcp) };
  }

  /** Sends a packet. If sending fails, the packet is lost, as it might be on any network. */
  send(packet: Uint8Array, port: number, address: string): void {
    if (this.#connected) this.#rtp.send(packet);
    else this.#rtp.send(packet, port, address);
  }

  /** Sends a report. `isMultiplexed`: from the port of RTP. */
  sendRtcp(packet: Uint8Array, port: number, address: string, isMultiplexed: boolean): void {
    if (isMultiplexed) this.send(packet, port, address);
    else this.#rtcp.send(packet, port, address);
  }

  /**
   * Connects the RTP socket until `disconnect`. The kernel then drops packets from other senders,
   * and no longer has to look up a route for each packet we send, which makes sending 30% cheaper.
   */
  connect(port: number, address: string): void {
    if (!this.#mayConnect) return;
    this.disconnect();
    // The address is a literal, so `connect` takes effect immediately. If it fails because there's
    // no route, the socket remains unconnected. We pass a callback only to prevent an error event.
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

/**
 * Tries to bind to the address.
 * @returns the reason if we can't, or undefined if we can
 */
export async function addressProblem(host: string): Promise<string | undefined> {
  const socket = createUdpSocket(host);
  try {
    await bind(socket, host, 0);
    return undefined;
  } catch (error) {
    return errorMessage(error);
  } finally {
    closeQuietly(socket);
  }
}

function createUdpSocket(host: string): Socket {
  const family = isIPv6(host) ? 6 : 4;
  // This function only ever gets literals of this family. The default look-up would delay each
  // packet by one turn of the event loop.
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

/** UDP allows packets from port 0 (RFC 768), but Node refuses to send to it, and throws. */
function isAnswerable({ port }: { readonly port: number }): boolean {
  return port !== 0;
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

function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
