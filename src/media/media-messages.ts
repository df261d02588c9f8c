// What the main thread and a media worker say to each other. A handful of messages per call, none per packet.

import type { AmdSettings } from '../calls/call-types.ts';
import type { AudioEnvelope } from '../calls/capture/capture.ts';
import type { AmdEvent } from '../calls/detection/amd-event.ts';
import type { Keys, KeysSent } from '../calls/keys/keys.ts';
import type { CallPlans, PlanReport } from '../calls/plans/plans.ts';
import type { Playback, PlaybackReport } from '../calls/playback/playback.ts';
import type { StreamReport, StreamSettings } from '../calls/stream/stream.ts';
import type { BridgePhase, TransferFailure } from '../calls/transfer/transfer.ts';
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
  /** A message ends the worker's rest, unless it can wait. */
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
  | {
      readonly kind: 'detect';
      readonly id: number;
      readonly settings: AmdSettings;
      readonly plans?: CallPlans;
    }
  | { readonly kind: 'stop'; readonly id: number; readonly reason: string }
  /** The phone rings, or is answered. The first of the two has the settings, and makes the stream. */
  | {
      readonly kind: 'stream';
      readonly id: number;
      readonly settings: StreamSettings;
      readonly phase: 'ringing' | 'answered';
    }
  | { readonly kind: 'stopStream'; readonly id: number; readonly reason: string }
  | { readonly kind: 'play'; readonly id: number; readonly playback: Playback }
  | { readonly kind: 'press'; readonly id: number; readonly keys: Keys }
  | { readonly kind: 'stopPlayback'; readonly id: number }
  | { readonly kind: 'envelope'; readonly id: number }
  /** Of a SIP INFO. */
  | { readonly kind: 'digit'; readonly id: number; readonly digit: string }
  /** `partner` is the session of a second leg: `id` hears it ring, hears it, or talks with it. */
  | {
      readonly kind: 'bridge';
      readonly id: number;
      readonly partner: number;
      readonly phase: BridgePhase;
    }
  /** Whether the bot of `id` hears only silence. */
  | { readonly kind: 'gate'; readonly id: number; readonly isClosed: boolean }
  /** The second leg came to nothing: the bot is told. */
  | { readonly kind: 'transferFailed'; readonly id: number; readonly failure: TransferFailure }
  | { readonly kind: 'close'; readonly id: number }
  | { readonly kind: 'statistics'; readonly request: number };

/** Those that end a thread's rest for nothing: a call that is over can wait for the others' next step. */
export const canWait: ReadonlySet<ToMediaWorker['kind']> = new Set(['stop', 'close']);

export type FromMediaWorker =
  | { readonly kind: 'ready' }
  | { readonly kind: 'opened'; readonly id: number; readonly port: number }
  | { readonly kind: 'refused'; readonly id: number; readonly reason: string }
  | { readonly kind: 'amd'; readonly id: number; readonly events: readonly AmdEvent[] }
  /** For the log, when the worker stood still. */
  | { readonly kind: 'framesLate'; readonly report: LateFramesReport }
  /** For the log; the observer is told `amd_error`. At most once per session. */
  | { readonly kind: 'detectorError'; readonly reason: string }
  /**
   * For the log; the events say that words were counted by ear. Not for each failure: `failures` says for how many. For each
   * call whose provider is `unconfigured`.
   */
  | {
      readonly kind: 'transcriptionFailed';
      readonly provider: string;
      readonly reason: string;
      readonly failures: number;
    }
  | {
      readonly kind: 'dtmf';
      readonly id: number;
      readonly digit: string;
      readonly durationMs: number;
    }
  | {
      readonly kind: 'stream';
      readonly id: number;
      /** Of the call's streams. */
      readonly ordinal: number;
      readonly report: StreamReport;
    }
  | { readonly kind: 'playback'; readonly id: number; readonly report: PlaybackReport }
  | { readonly kind: 'keysSent'; readonly id: number; readonly report: KeysSent }
  | { readonly kind: 'plan'; readonly id: number; readonly report: PlanReport }
  /** When it was asked for, and before `closed`. Undefined: it was not answered. */
  | {
      readonly kind: 'envelope';
      readonly id: number;
      readonly envelope: AudioEnvelope | undefined;
    }
  /** For the log, once for each kind of thing and call. */
  | { readonly kind: 'streamWarning'; readonly id: number; readonly warning: string }
  | { readonly kind: 'inactive'; readonly id: number }
  /** Of the second leg: each of the two has been sent audio of the other. */
  | { readonly kind: 'connected'; readonly id: number }
  | { readonly kind: 'failed'; readonly id: number; readonly reason: string }
  | { readonly kind: 'closed'; readonly id: number }
  | {
      readonly kind: 'statistics';
      readonly request: number;
      readonly statistics: MediaStatistics;
    };

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
