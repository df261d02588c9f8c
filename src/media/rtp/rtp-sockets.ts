// The UDP sockets of one call: RTP on the even port, RTCP on the odd one. RTCP is received as a sign of life only, and
// none is sent: the port is held so that the far end's reports meet no ICMP error, and no other program takes it.

import { createSocket, type Socket, type SocketOptions } from 'node:dgram';
import { isIPv6 } from 'node:net';

export type RtpSocketHandlers = {
  onPacket(packet: Uint8Array, address: string, port: number): void;
  onRtcp(packet: Uint8Array, address: string, port: number): void;
  /** The far end, or a router before it, refuses what is sent: no fault of the socket. */
  onUnreachable(): void;
  onError(reason: string): void;
};

export type OpenResult =
  | { readonly kind: 'open'; readonly sockets: RtpSockets }
  | { readonly kind: 'failed'; readonly reason: string };

/** What ICMP and ICMPv6 errors become on a connected socket (Linux: icmp_err_convert, icmpv6_err_convert). */
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
    // Connecting would bind a wildcard to the one address that the route back has. On a host of several the far end's packets
    // may be for another, and would be lost.
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
    // Nothing to lose here: the call does not depend on RTCP.
    rtcp.on('error', () => {});
    return { kind: 'open', sockets: new RtpSockets(host, rtp, rtcp) };
  }

  /** Without a callback: a packet that cannot be sent is lost, as on any network. */
  send(packet: Uint8Array, port: number, address: string): void {
    if (this.#connected) this.#rtp.send(packet);
    else this.#rtp.send(packet, port, address);
  }

  /** Sends go there until `disconnect`, without a look at the route: 30 % less for each. The kernel drops what others send. */
  connect(port: number, address: string): void {
    if (!this.#mayConnect) return;
    this.disconnect();
    // In force on return, as the look-up of a literal is. Refused (no route), the socket stays as it was; the callback keeps
    // that from being an error.
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

/** Why nothing can be received at this address; undefined where it can. */
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
  // Only literals of this family get here; the default look-up would cost every packet a turn of the event loop.
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
    // Never bound or closed already: what was wanted.
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
