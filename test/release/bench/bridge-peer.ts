// The phones of the bridge bench, in a process of their own. Each phone of a pair sends a packet
// with the current time every 20 ms. The other phone measures how long the packet took.

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { writeRtpHeader } from '../../../src/media/rtp/rtp-packet.ts';

export type ToBridgePeer =
  | { readonly kind: 'open'; readonly count: number }
  /**
   * Sends packets to `ports`, the gateway's ports in the order of the phones, for `ms`
   * milliseconds.
   */
  | { readonly kind: 'talk'; readonly ports: readonly number[]; readonly ms: number };
export type FromBridgePeer =
  | { readonly kind: 'opened'; readonly ports: readonly number[] }
  | { readonly kind: 'talked'; readonly delaysMs: readonly number[] };

const sockets: ReturnType<typeof createSocket>[] = [];
let delaysMs: number[] = [];
const instantAt = 12;

async function open(count: number): Promise<readonly number[]> {
  for (let index = 0; index < count; index += 1) {
    const socket = createSocket({ type: 'udp4', recvBufferSize: 1 << 20 });
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    socket.on('message', (packet) => {
      const sentMs = packet.length < instantAt + 8 ? 0 : packet.readDoubleBE(instantAt);
      // The silence that the gateway sends holds no time.
      if (sentMs > 0 && sentMs < 1e12) delaysMs.push(performance.now() - sentMs);
    });
    sockets.push(socket);
  }
  return sockets.map((socket) => socket.address().port);
}

async function talk(ports: readonly number[], ms: number): Promise<readonly number[]> {
  delaysMs = [];
  const startMs = performance.now();
  for (let frame = 0; frame * 20 < ms; frame += 1) {
    for (const [index, socket] of sockets.entries()) {
      const packet = Buffer.alloc(172, 0x7f);
      const [sequence, timestamp] = [frame & 0xffff, frame * 160];
      writeRtpHeader(packet, {
        payloadType: 0,
        marker: false,
        sequence,
        timestamp,
        ssrc: index + 1,
      });
      packet.writeDoubleBE(performance.now(), instantAt);
      socket.send(packet, ports[index] ?? 0, '127.0.0.1');
    }
    const waitMs = startMs + (frame + 1) * 20 - performance.now();
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, waitMs)));
  }
  return delaysMs;
}

process.on('message', (message: ToBridgePeer) => {
  if (message.kind === 'open') {
    void open(message.count).then((ports) => process.send?.({ kind: 'opened', ports }));
  } else {
    void talk(message.ports, message.ms).then((delays) =>
      process.send?.({ kind: 'talked', delaysMs: delays }),
    );
  }
});
