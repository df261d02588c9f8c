// Measures what an audio stream to a bot costs and how much it delays a conversation: from RTP in
// to the socket, from the socket to RTP out, from a clear to silence, and the CPU time for 20 ms in
// both directions. In the same run it measures the minimum cost of the same bytes: a loop over `ws`
// and a loop over UDP that only move them. `--busy 0.9` keeps the main thread busy for 90% of the
// time. `--alone 1` (as root) makes a busy machine quiet for the gateway. `--media srtp` measures
// SRTP beside RTP, in turn.

import { type ChildProcess, fork } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { WebSocket } from 'ws';
import type { CallId } from '../../../src/calls/contract/identity.ts';
import type { MediaObserver, MediaSession } from '../../../src/calls/media.ts';
import type { StreamSettings } from '../../../src/calls/stream/stream.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { createMediaPort, type MediaGateway } from '../../../src/media/media-port.ts';
import { streamIdsOf } from '../../../src/streams/stream-ids.ts';
import { Alone } from './alone.ts';
import { BareTicker } from './bare-ticker.ts';
import { BusyMainThread } from './busy-main-thread.ts';
import {
  answerTo,
  encryptionOf,
  type KeyTexts,
  type Media,
  printRatio,
  turnsOf,
} from './far-end-media.ts';
import { optionsOf } from './options.ts';
import { SentPackets } from './sent-packets.ts';
import { latenessBetween, printLateness } from './streams-lateness.ts';
import type { FromPeer, ToPeer } from './streams-peer.ts';
import { printTickCost, readTickCost, tickCostModule } from './tick-cost.ts';

const frameMs = 20;
/** The delay of an ordinary packet in the jitter buffer: two frames. */
const jitterMs = 40;
/** The gateway locks sources and connects sockets 3 s after the first packet. */
const settleMs = 4_000;
const [portMin, portMax] = [30_000, 39_999];

export async function benchStreams(args: readonly string[]): Promise<void> {
  const defaults = { streams: [1, 100, 300], seconds: 4, busy: 0, alone: 0 };
  const options = optionsOf(args, { ...defaults, media: 'rtp', rounds: 3 });
  const { streams, seconds, busy, alone } = options;
  const ms = seconds * 1_000;
  const bare = 100;
  console.log(`bare loops over ${bare} sockets, CPU time in µs for 20 ms in both directions`);
  print(
    'ws, one text message per frame and direction',
    (await bareWebSockets(bare, ms)).toFixed(1),
  );
  print('UDP, one packet per frame and direction', (await bareRtp(bare, ms)).toFixed(1));
  for (const count of streams) {
    const costsUs = { rtp: [] as number[], srtp: [] as number[] };
    for (const media of turnsOf(options.media, options.rounds)) {
      costsUs[media].push(await streamsAtOnce(count, ms, { busy, alone, media }));
    }
    printRatio(costsUs);
  }
}

/** Returns the CPU time for one stream and 20 ms, in µs. */
async function streamsAtOnce(
  count: number,
  ms: number,
  { busy, alone, media }: { readonly busy: number; readonly alone: number; readonly media: Media },
): Promise<number> {
  const peer = new Peer();
  const { webSocketPort, rtpPorts } = await peer.ask('open', { kind: 'open', count });
  const port = createMediaPort({
    ...{ host: '127.0.0.1', publicHost: '127.0.0.1', portMin, portMax },
    ...{ workers: 1, inactivityTimeoutMs: 600_000, silenceIntervalMs: 200, logger: silentLogger },
    streams: { bufferBytes: 256_000_000, allowedNetworks: ['127.0.0.0/8'] },
    detectorModule: tickCostModule,
  });
  await port.ready();
  const ticker = new BareTicker();
  using _alone = alone === 0 ? undefined : new Alone();
  const sessions: MediaSession[] = [];
  const answeredAtMs: number[] = [];
  for (const [index, rtpPort] of rtpPorts.entries()) {
    const opened = await openStream(port, index, { rtpPort, webSocketPort, media });
    if (opened.keys !== undefined) peer.tell({ kind: 'keys', index, keys: opened.keys });
    sessions.push(opened.session);
    answeredAtMs.push(opened.answeredAtMs);
  }
  const ports = sessions.map(({ offerSdp }) => Number(/^m=audio (\d+)/m.exec(offerSdp)?.[1]));
  await peer.ask('talked', { kind: 'talk', ports, ms: settleMs });
  // The code is compiled now, and the queues hold nothing of the warm-up.
  const { clearMs } = await peer.ask('cleared', { kind: 'clear' });
  const { atMs } = await peer.ask('greeted', { kind: 'greetings' });
  const packets = await SentPackets.record(ports);
  await readTickCost();
  const latenessBefore = (await port.statistics()).sendLateness;
  const tickedBefore = await ticker.read();
  const busyThread = new BusyMainThread(busy);
  const before = process.cpuUsage();
  const { toBotMs, toPhoneMs } = await peer.ask('talked', { kind: 'talk', ports, ms });
  const { user, system } = process.cpuUsage(before);
  busyThread[Symbol.dispose]();
  const tickCost = await readTickCost();
  const tickedAfter = await ticker.read();
  const { maxLateMs, streams, sendLateness } = await port.statistics();
  const sent = await packets?.stop();

  const stepUs = (user + system) / (count * (ms / frameMs));
  console.log(`${count} streams, ${media.toUpperCase()}`);
  const greetingMs = atMs.map((at, index) => at - (answeredAtMs[index] ?? 0));
  print('200 OK to first audio of the bot, ms', p50and99(greetingMs));
  print('RTP in to socket, without the jitter buffer, ms', p50and99(toBotMs, jitterMs));
  print('socket to RTP out, ms', p50and99(toPhoneMs));
  print('clear to silence, ms', p50and99(clearMs));
  print('CPU time for 20 ms in both directions, µs', stepUs.toFixed(1));
  print('streams per core at that cost', String(Math.floor((frameMs * 1_000) / stepUs)));
  print('latest tick, ms; dropped frames', `${maxLateMs}; ${streams.framesDropped}`);
  printTickCost(tickCost);
  printLateness({
    worker: latenessBetween(latenessBefore, sendLateness),
    ticker: latenessBetween(tickedBefore.lateness, tickedAfter.lateness),
    sent,
  });
  await ticker.stop();
  for (const session of sessions) session.close();
  peer.stop();
  await port[Symbol.asyncDispose]();
  return stepUs;
}

async function openStream(
  port: MediaGateway,
  index: number,
  {
    rtpPort,
    webSocketPort,
    media,
  }: { readonly rtpPort: number; readonly webSocketPort: number; readonly media: Media },
): Promise<{
  readonly session: MediaSession;
  readonly answeredAtMs: number;
  readonly keys?: KeyTexts;
}> {
  let opened = (): void => undefined;
  const isOpen = new Promise<void>((resolve) => {
    opened = resolve;
  });
  const observer: MediaObserver = {
    observe: (event) => {
      if (event.kind === 'failed') console.error(`a session failed: ${event.reason}`);
      if (event.kind !== 'stream') return;
      if (event.report.kind === 'opened') opened();
      else console.error(`a stream reports ${event.report.kind}`);
    },
  };
  const callId = `call-${index}` as CallId;
  const encryption = encryptionOf[media];
  const session = await port.open(callId, observer, { codecs: ['PCMU'], encryption });
  if (session === undefined) throw new Error('no media session');
  const settings: StreamSettings = {
    ...streamIdsOf({ appId: 'app-bench', callId, request: {} }),
    ...{ url: `ws://127.0.0.1:${webSocketPort}/${index}`, secret: 'bench', customParameters: {} },
    ...{ connect: 'answered', ordinal: 0 },
  };
  session.send({ kind: 'stream', settings, phase: 'ringing' });
  // The phone rings.
  await new Promise((resolve) => setTimeout(resolve, 20));
  const answeredAtMs = performance.timeOrigin + performance.now();
  const { sdp, ...answer } = answerTo(session.offerSdp, rtpPort);
  session.applyAnswer(sdp, 'answer');
  session.send({ kind: 'stream', settings, phase: 'answered' });
  await isOpen;
  return { session, answeredAtMs, ...answer };
}

async function bareWebSockets(count: number, ms: number): Promise<number> {
  const peer = new Peer();
  const { webSocketPort } = await peer.ask('open', { kind: 'open', count: 0 });
  const sockets = await Promise.all(
    Array.from({ length: count }, async () => {
      const socket = new WebSocket(`ws://127.0.0.1:${webSocketPort}/echo`, {
        perMessageDeflate: false,
      });
      await once(socket, 'open');
      socket.on('message', () => undefined);
      return socket;
    }),
  );
  const text = JSON.stringify({ event: 'media', payload: 'x'.repeat(320) });
  const stepUs = await eachFrame(count, ms, (index) => sockets[index]?.send(text));
  for (const socket of sockets) socket.terminate();
  peer.stop();
  return stepUs;
}

async function bareRtp(count: number, ms: number): Promise<number> {
  const sockets = await Promise.all(
    Array.from({ length: count }, async () => {
      const socket = createSocket('udp4');
      socket.bind(0, '127.0.0.1');
      await once(socket, 'listening');
      // The socket sends to itself. Receiving these packets costs as much as receiving the packets
      // of a far end.
      socket.connect(socket.address().port, '127.0.0.1');
      await once(socket, 'connect');
      socket.on('message', () => undefined);
      return socket;
    }),
  );
  const packet = new Uint8Array(172);
  const stepUs = await eachFrame(count, ms, (index) => sockets[index]?.send(packet));
  for (const socket of sockets) socket.close();
  return stepUs;
}

/** Returns the CPU time for one socket and 20 ms, in µs. */
async function eachFrame(
  count: number,
  ms: number,
  send: (index: number) => void,
): Promise<number> {
  const startMs = performance.now();
  const before = process.cpuUsage();
  for (let frame = 0; frame * frameMs < ms; frame += 1) {
    for (let index = 0; index < count; index += 1) send(index);
    const waitMs = startMs + (frame + 1) * frameMs - performance.now();
    await new Promise((resolve) => setTimeout(resolve, Math.max(1, waitMs)));
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / (count * (ms / frameMs));
}

class Peer {
  readonly #child: ChildProcess = fork(
    fileURLToPath(new URL('./streams-peer.ts', import.meta.url)),
    { execArgv: ['--import', 'tsx'] },
  );

  ask<Kind extends FromPeer['kind']>(
    kind: Kind,
    message: ToPeer,
  ): Promise<Extract<FromPeer, { kind: Kind }>> {
    return new Promise((resolve) => {
      const listen = (answer: FromPeer) => {
        if (answer.kind !== kind) return;
        this.#child.off('message', listen);
        resolve(answer as Extract<FromPeer, { kind: Kind }>);
      };
      this.#child.on('message', listen);
      this.#child.send(message);
    });
  }

  tell(message: ToPeer): void {
    this.#child.send(message);
  }

  stop(): void {
    this.#child.disconnect();
  }
}

function p50and99(values: readonly number[], less = 0): string {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (part: number) =>
    ((sorted[Math.floor(sorted.length * part)] ?? Number.NaN) - less).toFixed(1);
  return `p50 ${at(0.5)}, p99 ${at(0.99)} of ${values.length}`;
}

function print(what: string, figure: string): void {
  console.log(`  ${what.padEnd(50)} ${figure}`);
}
