// Implements `MediaPort` with RTP sessions in worker threads. The workers own the sockets, the
// jitter buffers and the detectors, so all that remains for the main thread is to read and write
// SDP.

import { isIP, isIPv6 } from 'node:net';
import type { MediaOffer, MediaPort } from '../calls/media.ts';
import type { Logger } from '../lib/logger.ts';
import { siblingModule } from '../lib/threads/worker-threads.ts';
import type { MediaStatistics, StreamWorkerData } from './media-messages.ts';
import { createMediaSession } from './media-session.ts';
import { MediaWorkerHandle, type MediaWorkerListener } from './media-worker-handle.ts';
import { createLateFramesLog } from './playout/late-frames.ts';
import { addLateness } from './playout/send-lateness.ts';
import type { RecordingPorts } from './recorder-port.ts';
import { createStreamStatistics } from './stream-port.ts';
import { createTranscriptionLog } from './transcription-log.ts';

/**
 * This is long enough for the last packets of a call that has ended. If our BYE is lost and has to
 * be retransmitted, packets keep arriving for some seconds.
 */
const defaultPortDrainMs = 5_000;

const noStreams: StreamWorkerData = { bufferBytes: 0, allowedNetworks: [] };

const defaultOffer: MediaOffer = { codecs: ['PCMU', 'PCMA'], encryption: 'rtp' };

export type MediaPortOptions = {
  /** IP literal to which we bind the sockets. */
  readonly host: string;
  /** Address at which the far end can reach us, as written into our SDP. */
  readonly publicHost: string;
  readonly portMin: number;
  readonly portMax: number;
  readonly workers: number;
  readonly inactivityTimeoutMs: number;
  /**
   * Interval between silence packets, at least 20 ms. It applies once we've sent nothing but
   * silence for a second.
   */
  readonly silenceIntervalMs: number;
  /**
   * Limits for bots' streams. The workers share `bufferBytes` equally. Default: one second of audio
   * per worker, and no bots at non-public addresses.
   */
  readonly streams?: StreamWorkerData;
  /** The thread that writes recordings. Default: calls can't be recorded. */
  readonly recording?: RecordingPorts | undefined;
  readonly logger: Logger;
  /** An ended call's port isn't reused until this time has passed. Default: 5,000. */
  readonly portDrainMs?: number;
  /** URL of a module that exports `createDetector`, for tests. Default: the detector in src/amd. */
  readonly detectorModule?: string;
  /**
   * Data that src/app/media-worker.ts passes to the detector, in addition to the call's settings.
   */
  readonly detectorData?: unknown;
};

export type MediaGateway = MediaPort &
  AsyncDisposable & {
    /**
     * Waits for the workers to start. Resolves to false if any of them still isn't ready after the
     * time-out.
     */
    ready(): Promise<boolean>;
    statistics(): Promise<MediaStatistics>;
  };

/** @throws Error if `host` isn't an IP address, or `publicHost` is a wildcard address */
export function createMediaPort(options: MediaPortOptions): MediaGateway {
  const { host, publicHost, logger } = options;
  if (isIP(host) === 0) throw new Error(`MEDIA_HOST must be an IP address, not ${host}`);
  if (publicHost === '0.0.0.0' || publicHost === '::') {
    throw new Error(`MEDIA_PUBLIC_HOST is required: a far end cannot send to ${publicHost}`);
  }
  const workers = startWorkers(options);
  const ipVersion = isIPv6(host) ? 6 : 4;
  return {
    async open(callId, observer, offer = defaultOffer) {
      const worker = leastLoaded(workers);
      const opened = await worker?.open(observer);
      if (worker === undefined || opened === undefined) {
        logger.warn({ callId }, 'no media session for the call');
        return undefined;
      }
      return createMediaSession({ ...opened, worker, publicHost, ipVersion, offer });
    },
    async ready() {
      const started = await Promise.all(workers.map((worker) => worker.whenReady()));
      return started.every(Boolean);
    },
    async statistics() {
      return sum(await Promise.all(workers.map((worker) => worker.statistics())));
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(workers.map((worker) => worker[Symbol.asyncDispose]()));
    },
  };
}

function startWorkers(options: MediaPortOptions): readonly MediaWorkerHandle[] {
  const { host, portMin, portMax, inactivityTimeoutMs, silenceIntervalMs, logger } = options;
  const { detectorModule, detectorData, streams = noStreams } = options;
  const listener: MediaWorkerListener = {
    onTranscriptionFailed: createTranscriptionLog(logger),
    onFramesLate: createLateFramesLog(logger),
  };
  const entryUrl = siblingModule('../app/media-worker', import.meta.url);
  return Array.from(
    { length: options.workers },
    (_, workerIndex) =>
      new MediaWorkerHandle(
        entryUrl,
        {
          host,
          portMin,
          portMax,
          portDrainMs: options.portDrainMs ?? defaultPortDrainMs,
          workerIndex,
          workerCount: options.workers,
          inactivityTimeoutMs,
          silenceIntervalMs,
          streams: { ...streams, bufferBytes: streams.bufferBytes / options.workers },
          ...(detectorModule === undefined ? {} : { detectorModule }),
          ...(detectorData === undefined ? {} : { detectorData }),
        },
        logger.child({ mediaWorker: workerIndex }),
        listener,
        options.recording,
      ),
  );
}

/**
 * Returns the worker with the fewest sessions. We prefer workers that are ready, so while one of
 * them restarts, the others handle its calls.
 */
function leastLoaded(workers: readonly MediaWorkerHandle[]): MediaWorkerHandle | undefined {
  const ready = workers.filter((worker) => worker.ready);
  const candidates = ready.length > 0 ? ready : workers;
  return candidates.reduce<MediaWorkerHandle | undefined>(
    (best, worker) => (best === undefined || worker.load < best.load ? worker : best),
    undefined,
  );
}

function sum(all: readonly (MediaStatistics | undefined)[]): MediaStatistics {
  const known = all.filter((one) => one !== undefined);
  const { streams: _streams, sendLateness: _sendLateness, ...zero } = zeroStatistics;
  return {
    ...addUp<typeof zero>(known, zero),
    maxLateMs: Math.max(0, ...known.map((one) => one.maxLateMs)),
    sendLateness: addLateness(known.map((one) => one.sendLateness)),
    streams: addUp(
      known.map((one) => one.streams),
      zeroStatistics.streams,
    ),
  };
}

function addUp<Counts extends Readonly<Record<string, number>>>(
  all: readonly Counts[],
  zero: Counts,
): Counts {
  const entries = Object.keys(zero).map((name) => [
    name,
    all.reduce((total, one) => total + (one[name] ?? 0), 0),
  ]);
  return Object.fromEntries(entries) as Counts;
}

const zeroStatistics: MediaStatistics = {
  sessions: 0,
  idlePorts: 0,
  packetsReceived: 0,
  packetsDiscarded: 0,
  packetsForged: 0,
  packetsSent: 0,
  packetsUnsent: 0,
  packetsLate: 0,
  ticksLate: 0,
  framesLate: 0,
  framesUnheard: 0,
  maxLateMs: 0,
  sendLateness: addLateness([]),
  streams: {
    ...createStreamStatistics(),
    bytesPlayed: 0,
    bytesDropped: 0,
    underruns: 0,
    heldBytes: 0,
  },
};
