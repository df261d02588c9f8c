// What the main thread and a media worker say to each other. A handful of messages per call, none per packet.

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
  /** A message ends the worker's rest. */
  readonly rest: RestMemory;
  readonly streams: StreamWorkerData;
  /** URL of a module that exports `createDetector`; left out: the one of src/amd. */
  readonly detectorModule?: string;
  /** For src/app/media-worker.ts and the detector; nothing of ours. Copied to the worker. */
  readonly detectorData?: unknown;
};

export type StreamWorkerData = {
  /** Of audio that bots have queued here. */
  readonly bufferBytes: number;
  /** CIDR: where bots may be although it is not public. */
  readonly allowedNetworks: readonly string[];
};

/** `id` names the session among those of its worker. */
export type ToMediaWorker =
  | { readonly kind: 'open'; readonly id: number }
  | {
      readonly kind: 'remote';
      readonly id: number;
      readonly remote: RemoteMedia;
      readonly phase: 'early' | 'answer';
    }
  | { readonly kind: 'session'; readonly id: number; readonly command: MediaCommand }
  /** `partner` is the session of a second leg: `id` hears it ring, hears it, or talks with it. */
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

/** What a worker has the main thread log. */
export type WorkerWarning =
  /** The worker stood still. */
  | { readonly kind: 'framesLate'; readonly report: LateFramesReport }
  /** The call gets `amd_error`. At most once per session. */
  | { readonly kind: 'detectorError'; readonly reason: string }
  /** The events say that words were counted by ear. `failures`: how many there were since the last message. */
  | {
      readonly kind: 'transcriptionFailed';
      readonly provider: string;
      readonly reason: string;
      readonly failures: number;
    }
  /** A bot does not keep to the wire format: once for each kind of fault and call. */
  | { readonly kind: 'streamWarning'; readonly id: number; readonly warning: string };

/** Of one worker, or the sum over all. Counters start with the worker. */
export type MediaStatistics = {
  readonly sessions: number;
  readonly idlePorts: number;
  readonly packetsReceived: number;
  /** Not RTP or RTCP, not the agreed payload, or from another source. */
  readonly packetsDiscarded: number;
  readonly packetsSent: number;
  /** Those of ticks to which the clock came over 60 ms late. */
  readonly packetsUnsent: number;
  /** Received, and too late to be heard. */
  readonly packetsLate: number;
  /** Of 20 ms, over 60 ms late. */
  readonly ticksLate: number;
  /** What detection or a bot was to hear in those ticks, call by call. */
  readonly framesLate: number;
  /** The latest that the playout clock ever was: what a worker with too much to do shows first. */
  readonly maxLateMs: number;
  readonly streams: Readonly<StreamStatistics> & {
    readonly bytesPlayed: number;
    readonly bytesDropped: number;
    readonly underruns: number;
    readonly heldBytes: number;
  };
};
