// Messages between the main thread and a media worker. They are sent a handful of times per call,
// never per packet.

import type { MediaCommand, MediaEvent } from '../calls/media.ts';
import type { BridgePhase } from '../calls/transfer/transfer.ts';
import type { RestMemory } from '../lib/threads/thread-rest.ts';
import type { LateFramesReport } from './playout/late-frames.ts';
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
  /** Memory through which a message ends the worker's rest. */
  readonly rest: RestMemory;
  readonly streams: StreamWorkerData;
  /** URL of a module that exports `createDetector`. Default: the module of src/amd. */
  readonly detectorModule?: string;
  /**
   * Data for src/app/media-worker.ts and the detector, opaque to the code of this folder. Copied to
   * the worker.
   */
  readonly detectorData?: unknown;
};

export type StreamWorkerData = {
  /** Limit on the audio that all bots of this worker together have queued. */
  readonly bufferBytes: number;
  /** Networks (CIDR) with non-public addresses at which bots are allowed. */
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
   * Connects `id` to `partner`, the session of a second leg. Depending on `phase`, `id` hears
   * ringback, hears early media, or talks with the agent.
   */
  | {
      readonly kind: 'bridge';
      readonly id: number;
      readonly partner: number;
      readonly phase: BridgePhase;
    }
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

/** A warning from a worker, for the main thread to log. */
export type WorkerWarning =
  /** The worker stalled. */
  | { readonly kind: 'framesLate'; readonly report: LateFramesReport }
  /** A detector threw. Its call gets `amd_error`. Sent once per round of detection at most. */
  | { readonly kind: 'detectorError'; readonly reason: string }
  /**
   * Speech-to-text failed, so the detector estimates the number of words from the audio alone. Its
   * events say so. `failures` is the number of failures since the last message.
   */
  | {
      readonly kind: 'transcriptionFailed';
      readonly provider: string;
      readonly reason: string;
      readonly failures: number;
    }
  /** A bot violated the wire format. Sent once per call for each kind of violation. */
  | { readonly kind: 'streamWarning'; readonly id: number; readonly warning: string };

/** Statistics of one worker, or of all workers together. Counters start at 0 with the worker. */
export type MediaStatistics = {
  readonly sessions: number;
  readonly idlePorts: number;
  readonly packetsReceived: number;
  /**
   * Packets that are not RTP or RTCP, have a payload type that was not negotiated, or come from
   * another source than the far end.
   */
  readonly packetsDiscarded: number;
  readonly packetsSent: number;
  /** Packets not sent because their tick ran over 60 ms late. */
  readonly packetsUnsent: number;
  /** Packets received too late to be heard. */
  readonly packetsLate: number;
  /** Ticks of 20 ms that ran over 60 ms late. */
  readonly ticksLate: number;
  /** Frames that reached detection or a bot over 60 ms late, or not at all. */
  readonly framesLate: number;
  /**
   * The longest delay of the playout clock so far. It is the first statistic to rise when a worker
   * is overloaded.
   */
  readonly maxLateMs: number;
  readonly streams: Readonly<StreamStatistics> & {
    readonly bytesPlayed: number;
    readonly bytesDropped: number;
    readonly underruns: number;
    readonly heldBytes: number;
  };
};
