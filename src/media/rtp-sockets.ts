// The UDP sockets of one call: RTP on the even port, RTCP on the odd one. RTCP is received as a sign of life only, and
// none is sent: the port is held so that the far end's reports meet no ICMP error, and nobody else takes it.

import { createSocket, type Socket, type SocketOptions } from 'node:dgram';
import { isIPv6 } from 'node:net';

export type RtpSocketHandlers = {
  onPacket(packet: Uint8Array, address: string, port: number): void;
  onRtcp(packet: Uint8Array, address: string): void;
  onError(reason: string): void;
};

export type OpenResult =
  | { readonly kind: 'open'; readonly sockets: RtpSockets }
  | { readonly kind: 'failed'; readonly reason: string };

export class RtpSockets {
  readonly #rtp: Socket;
  readonly #rtcp: Socket;

  private constructor(rtp: Socket, rtcp: Socket) {
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
    rtp.on('error', (error) => handlers.onError(reasonOf(error)));
    rtcp.on('message', (packet, from) => handlers.onRtcp(packet, from.address));
    // Nothing to lose here: the call does not depend on RTCP.
    rtcp.on('error', () => {});
    return { kind: 'open', sockets: new RtpSockets(rtp, rtcp) };
  }

  /** Without a callback: a packet that cannot be sent is lost, as on any network. */
  send(packet: Uint8Array, port: number, address: string): void {
    this.#rtp.send(packet, port, address);
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
  // Only literals get here; the default look-up would cost every packet a turn of the event loop.
  const lookup: SocketOptions['lookup'] = (address, _options, callback) =>
    callback(null, address, isIPv6(address) ? 6 : 4);
  return createSocket({ type: isIPv6(host) ? 'udp6' : 'udp4', lookup });
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
