// Messages between the main thread and a media worker. Each call causes only a handful of them, and
// packets don't cause any.

import type { MessagePort } from 'node:worker_threads';
import type { MediaCommand, MediaEvent } from '../calls/media.ts';
import type { BridgePhase } from '../calls/transfer/transfer.ts';
import type { RestMemory } from '../lib/threads/thread-rest.ts';
import type { LateFramesReport } from './playout/late-frames.ts';
import type { SendLatenessCounts } from './playout/send-lateness.ts';
import type { RemoteMedia } from './sdp.ts';
import type { StreamStatistics } from './stream-port.ts';

export type MediaWorkerData = {
  readonly host: string;
  readonly portMin: number;
  readonly portMax: number;
  readonly portDrainMs: number;
  readonly workerIndex: number;
  readonly workerCount: number;
  readonly startAfterPort?: number;
  readonly inactivityTimeoutMs: number;
  readonly silenceIntervalMs: number;
  /** Memory through which a message wakes the worker from its rest. */
  readonly rest: RestMemory;
  readonly streams: StreamWorkerData;
  /** URL of a module that exports `createDetector`. Default: src/amd's own module. */
  readonly detectorModule?: string;
  /**
   * Data for src/app/media-worker.ts and the detector. It's copied to the worker, and the code in
   * this folder doesn't look inside it.
   */
  readonly detectorData?: unknown;
};

export type StreamWorkerData = {
  /** Limits the audio that all of this worker's bots together can have queued. */
  readonly bufferBytes: number;
  /** Networks (CIDR) with non-public addresses in which bots are allowed. */
  readonly allowedNetworks: readonly string[];
};

/** `id` identifies the session within its worker. */
export type ToMediaWorker =
  | { readonly kind: 'open'; readonly id: number }
  | {
      readonly kind: 'remote';
      readonly id: number;
      readonly remote: RemoteMedia;
      readonly phase: 'early' | 'answer';
    }
  | { readonly kind: 'session'; readonly id: number; readonly command: MediaCommand }
  /**
   * Connects `id` to `partner`, which is the second leg's session. Depending on `phase`, `id` hears
   * ringback, hears early media, or talks to the agent.
   */
  | {
      readonly kind: 'bridge';
      readonly id: number;
      readonly partner: number;
      readonly phase: BridgePhase;
    }
  /** Connects the worker to the thread that writes recordings. */
  | { readonly kind: 'recordingThread'; readonly port: MessagePort }
  | { readonly kind: 'close'; readonly id: number }
  | { readonly kind: 'statistics'; readonly request: number };

export type FromMediaWorker =
  | { readonly kind: 'ready' }
  | { readonly kind: 'opened'; readonly id: number; readonly port: number }
  | { readonly kind: 'refused'; readonly id: number; readonly reason: string }
  | { readonly kind: 'session'; readonly id: number; readonly event: MediaEvent }
  | { readonly kind: 'closed'; readonly id: number }
  | WorkerWarning
  | {
      readonly kind: 'statistics';
      readonly request: number;
      readonly statistics: MediaStatistics;
    };

/** A worker's warning, which the main thread logs. */
export type WorkerWarning =
  /** The worker stalled. */
  | { readonly kind: 'framesLate'; readonly report: LateFramesReport }
  /** A detector threw, so its call gets `amd_error`. Sent at most once per round of detection. */
  | { readonly kind: 'detectorError'; readonly reason: string }
  /** The recorder of a call threw, so its recording failed. */
  | { readonly kind: 'recorderError'; readonly reason: string }
  /**
   * Speech-to-text failed, so the detector now estimates the number of words from the audio alone,
   * and its events say so. `failures` counts the failures since the last message.
   */
  | {
      readonly kind: 'transcriptionFailed';
      readonly provider: string;
      readonly reason: string;
      readonly failures: number;
    }
  /** A bot violated the wire format. Sent once per call for each kind of violation. */
  | { readonly kind: 'streamWarning'; readonly id: number; readonly warning: string };

/**
 * Statistics for one worker, or the totals for all workers. The counters are 0 when a worker
 * starts.
 */
export type MediaStatistics = {
  readonly sessions: number;
  readonly idlePorts: number;
  readonly packetsReceived: number;
  /**
   * Packets that aren't RTP or RTCP, have a payload type that we haven't negotiated, or come from
   * someone other than the far end.
   */
  readonly packetsDiscarded: number;
  /** Discarded packets of encrypted calls whose authentication tag was wrong. */
  readonly packetsForged: number;
  readonly packetsSent: number;
  /** Packets that we couldn't send because their tick ran over 60 ms late. */
  readonly packetsUnsent: number;
  /** Packets that arrived too late to be heard. */
  readonly packetsLate: number;
  /** 20 ms ticks that ran over 60 ms late. */
  readonly ticksLate: number;
  /** Frames that reached detection or a bot over 60 ms late, or not at all. */
  readonly framesLate: number;
  /** Frames that detection or a bot never heard because the worker was late. */
  readonly framesUnheard: number;
  /**
   * The longest delay of the playout clock so far. If a worker is overloaded, this statistic is the
   * first to rise.
   */
  readonly maxLateMs: number;
  /** How long after its tick was due each packet left. Relayed packets aren't due at a tick. */
  readonly sendLateness: SendLatenessCounts;
  readonly streams: Readonly<StreamStatistics> & {
    readonly bytesPlayed: number;
    readonly bytesDropped: number;
    readonly underruns: number;
    readonly heldBytes: number;
  };
};
