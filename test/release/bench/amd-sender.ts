// The far ends of the bench's calls, in a process of their own. Sends a packet from the recordings
// every 20 ms to each port that the parent names.

import { createSocket, type Socket } from 'node:dgram';
import { encode } from '../../../src/media/g711.ts';
import { rtpHeaderBytes, writeRtpHeader } from '../../../src/media/rtp/rtp-packet.ts';
import { readRecordings } from './amd-audio.ts';
import { FarEndMedia, type KeyTexts } from './far-end-media.ts';

/** The gateway's port of each further call, and the keys if it uses SRTP. */
export type ToSender = {
  readonly calls: readonly { readonly port: number; readonly keys?: KeyTexts }[];
};

const frameMs = 20;
const frameBytes = 160;
/** Spreads the calls over the 20 ms, as the worker does. */
const phases = 8;
/** A packet that is later than this is skipped, because a burst would measure something else. */
const latestMs = 60;

type FarEnd = {
  readonly port: number;
  readonly packet: Uint8Array;
  readonly media: FarEndMedia;
  readonly ssrc: number;
  recording: number;
  at: number;
  sequence: number;
};

const recordings = (await readRecordings()).map((samples) => encode('PCMU', samples));
const farEnds: FarEnd[][] = Array.from({ length: phases }, () => []);
let count = 0;
const socket = createSocket({ type: 'udp4', recvBufferSize: 4_096 });
socket.bind(0, '127.0.0.1', () => {
  stopReceiving(socket);
  process.send?.({ port: socket.address().port });
  run(performance.now(), 0);
});

process.on('message', ({ calls }: ToSender) => {
  for (const { port, keys } of calls) {
    farEnds[count % phases]?.push({
      port,
      packet: new Uint8Array(rtpHeaderBytes + frameBytes),
      media: new FarEndMedia(keys),
      ssrc: 1_000 + count,
      recording: count % recordings.length,
      at: 0,
      sequence: count & 0xffff,
    });
    count += 1;
  }
});
process.on('disconnect', () => process.exit(0));

/**
 * Stops reading from the socket, so that the kernel drops the packets of the worker. In practice
 * the far end is on another machine, so its wake-up costs this machine nothing. Here the kernel
 * would charge the wake-up to the worker. Node has no API for this, so the function uses internals.
 * Without it the figures are slightly worse.
 */
function stopReceiving(socket: Socket): void {
  const [key] = Object.getOwnPropertySymbols(socket).filter(
    ({ description }) => description === 'state symbol',
  );
  if (key === undefined) return;
  const state = Reflect.get(socket, key) as { handle?: { recvStop?(): number } } | undefined;
  state?.handle?.recvStop?.();
}

function run(startMs: number, firstStep: number): void {
  const stepMs = frameMs / phases;
  let step = firstStep;
  for (; startMs + step * stepMs <= performance.now(); step += 1) {
    const lateMs = performance.now() - startMs - step * stepMs;
    for (const farEnd of farEnds[step % phases] ?? []) sendNext(farEnd, lateMs < latestMs);
  }
  setTimeout(() => run(startMs, step), Math.max(1, startMs + step * stepMs - performance.now()));
}

function sendNext(farEnd: FarEnd, inTime: boolean): void {
  const { packet, port, ssrc } = farEnd;
  let recording = recordings[farEnd.recording] ?? new Uint8Array(frameBytes);
  if (farEnd.at + frameBytes > recording.length) {
    farEnd.recording = (farEnd.recording + 1) % recordings.length;
    farEnd.at = 0;
    recording = recordings[farEnd.recording] ?? recording;
  }
  writeRtpHeader(packet, {
    payloadType: 0,
    marker: false,
    sequence: farEnd.sequence & 0xffff,
    timestamp: (farEnd.sequence * frameBytes) >>> 0,
    ssrc,
  });
  packet.set(recording.subarray(farEnd.at, farEnd.at + frameBytes), rtpHeaderBytes);
  farEnd.at += frameBytes;
  farEnd.sequence += 1;
  if (inTime) socket.send(farEnd.media.protect(packet), port, '127.0.0.1');
}
