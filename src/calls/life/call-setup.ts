// The call machine's types and building blocks: its events, its commands to the line, its journal,
// context, delays and guards. `call-machine.ts` contains the statechart. The effects of its
// transitions are in `call-effects.ts` and in each feature.

import { fromCallback, sendTo, setup } from 'xstate';
import type { ReachProgress } from '../abandonment/abandonment.ts';
import type { AnnouncementKind } from '../announcements/announcements.ts';
import type { AcceptedCall } from '../call-types.ts';
import type { CallEvent, TerminalEvent } from '../contract/call-event.ts';
import type { StoredLeg } from '../contract/stored-leg.ts';
import type { MediaCommand, MediaEvent } from '../media.ts';
import type { PlanName } from '../plans/plans.ts';
import type { Clock, LegEvent, StepResult } from '../ports.ts';
import type { RecordingBegin } from '../recording/recording.ts';
import type { RecordAction } from '../recording/recording-contract.ts';
import type { RuleRefusal } from '../rules/refusal.ts';
import type { NumberedStream, RequestedStream } from '../stream/stream.ts';
import type { StreamStop } from '../stream/stream-reasons.ts';
import type { Transfer, TransferFallback, TransferRequest } from '../transfer/transfer.ts';
import type { TransferReport } from '../transfer/transfer-report.ts';
import type { CallProgress, Sequences } from './call-events.ts';
import type { CallEnd, EndCommand } from './call-outcome.ts';
import type { CallQuality } from './call-quality.ts';
import type { CallStep } from './call-step.ts';

/**
 * A port's event as the machine receives it: unchanged, except for an XState `type` and the instant
 * at which it happened.
 */
type FromPort<Port extends string, Event extends { readonly kind: string }> = Event extends unknown
  ? Event & { readonly type: `${Port}.${Event['kind']}`; readonly at: Date }
  : never;

/**
 * The media events that the line passes on to the machine. All other media events only concern the
 * capture, the bridge or the line itself.
 */
export type PassedEvent = Exclude<MediaEvent, { kind: 'envelope' | 'connected' }>;
export type PassedEventType = `media.${PassedEvent['kind']}`;

type AcceptsKeys = {
  /** Whether the far end accepts key presses, either as RTP events or by SIP INFO. */
  readonly acceptsKeys: boolean;
};

/** Events from the line (SIP leg plus media session) to the machine. */
export type LineEvent =
  | FromPort<'leg', Exclude<LegEvent, { kind: 'answered' }>>
  | (FromPort<'leg', Extract<LegEvent, { kind: 'answered' }>> & AcceptsKeys)
  | FromPort<'media', PassedEvent>
  | FromPort<'transfer', TransferReport>
  /** Sent after every re-offer. */
  | ({ readonly type: 'line.acceptsKeys' } & AcceptsKeys)
  /** The line passes the INVITE to the SIP port, which may send it at any time from now on. */
  | { readonly type: 'line.placing' };

/**
 * @param now time at which the line received the event, used unless the event already has a time
 */
export function fromPort<Port extends string, Event extends { readonly kind: string }>(
  port: Port,
  event: Event,
  now: Date,
): FromPort<Port, Event> {
  return { at: now, ...event, type: `${port}.${event.kind}` } as unknown as FromPort<Port, Event>;
}

/** Commands from the machine to the line. */
export type LineCommand =
  | { readonly type: 'cancel'; readonly reason: string }
  | { readonly type: 'acknowledge' }
  | { readonly type: 'hangUp'; readonly reason: string }
  | { readonly type: 'media'; readonly command: MediaCommand }
  | { readonly type: 'startStream'; readonly stream: NumberedStream }
  | { readonly type: 'stopStream'; readonly reason: StreamStop }
  | { readonly type: 'transfer'; readonly transfer: Transfer }
  /** Calls off the transfer, because a machine answered rather than a person. */
  | { readonly type: 'withdrawTransfer' }
  /** Plays a sound of the request that was loaded before the call was dialled. */
  | { readonly type: 'announce'; readonly announcement: AnnouncementKind }
  /** Plays the announcement before the recording. */
  | { readonly type: 'announceRecording' }
  | { readonly type: 'startRecording'; readonly from: RecordingBegin }
  /** Ends a recording that the line started, because the answer couldn't be stored. */
  | { readonly type: 'stopRecording' }
  /** Closes everything that is open, in any state of the line. */
  | { readonly type: 'close' };

/** Makes an action that sends a command to the media. */
export function sendToMedia(command: MediaCommand) {
  const params: LineCommand = { type: 'media', command };
  return { type: 'sendToLine' as const, params };
}

export type CallMachineEvent =
  | LineEvent
  /** Two seconds after a clock of `src/calls/abandonment` began. */
  | { readonly type: 'reach.due' }
  /** Just before the clock of the rule set ends, if there's an announcement to play. */
  | { readonly type: 'reach.giveUp' }
  /** The result of storing the answer or the end. */
  | { readonly type: 'journal.answered' | 'journal.ended'; readonly result: StoreResult }
  | { readonly type: 'command.end'; readonly command: EndCommand }
  /** A calling rule forbids the call. Ignored once the far end has answered. */
  | { readonly type: 'command.refuse'; readonly refusal: RuleRefusal }
  /**
   * A command to the media. The machine only handles this event and the next four while the call is
   * answered.
   */
  | { readonly type: 'command.media'; readonly command: MediaCommand }
  /**
   * Replaces the current stream with `stream`. Without `stream`, this only ends the current one.
   */
  | {
      readonly type: 'command.stream';
      readonly commandId: string;
      readonly stream?: RequestedStream;
    }
  | {
      readonly type: 'command.transfer';
      readonly commandId: string;
      readonly transfer: TransferRequest;
    }
  /** The person has said that they don't want to be called any more. */
  | { readonly type: 'command.optOut'; readonly commandId: string }
  | {
      readonly type: 'command.record';
      readonly action: RecordAction;
      readonly commandId: string;
    };

export type StoreResult = StepResult | 'unknown';

export type CallLimits = {
  readonly maxDurationMs: number;
  /**
   * The database must store the answer within this time, which is well below the 32 s for which a
   * callee retransmits its 200 OK.
   */
  readonly storeAnswerTimeoutMs: number;
  /**
   * Time for the media worker to report `amd_stopped` and the ends of streams, sounds, keys and the
   * recording.
   */
  readonly closingTimeoutMs: number;
  /** The database must store the end within this time. */
  readonly storeEndTimeoutMs: number;
  /** Digits beyond this number aren't emitted as events. */
  readonly maxDigits: number;
  /**
   * Bot connections, made or lost, are no longer emitted as events beyond this number. The start
   * and the end of a stream are always emitted.
   */
  readonly maxStreamEvents: number;
  /** Limits the number of streams that commands may start in one call. */
  readonly maxStreams: number;
  /**
   * Maximum number of transfers in one call. Otherwise an application that keeps trying would ring
   * phones forever.
   */
  readonly maxTransfers: number;
};

export const defaultCallLimits: CallLimits = {
  maxDurationMs: 7_200_000,
  storeAnswerTimeoutMs: 4_000,
  closingTimeoutMs: 1_000,
  storeEndTimeoutMs: 60_000,
  // Nobody presses anywhere near this many keys in two hours. Each digit is an event on the NATS
  // stream, and a flood must not crowd out other calls.
  maxDigits: 2_000,
  // A bot may accept and drop the stream over and over, and the media keeps reconnecting.
  maxStreamEvents: 200,
  // A call is rarely passed from bot to bot more than a few times. An application that never stops
  // doing so is broken.
  maxStreams: 50,
  maxTransfers: 20,
};

/** Stores a call's steps. */
export type Journal = {
  /** Stores the step as soon as possible, without making the machine wait. */
  append(step: CallStep): void;
  store(step: CallStep): Promise<StepResult>;
};

export type CallMachineInput = {
  readonly call: AcceptedCall;
  readonly limits: CallLimits;
  readonly clock: Clock;
  readonly journal: Journal;
};

/**
 * XState copies the context with `Object.assign` whenever a member changes. If the copy has more
 * than 19 members, V8 makes it a hash table: the next copy then takes 12 µs instead of 0.3 µs, and
 * the context 1,600 bytes instead of 250. So the members are in groups, none of them that large.
 */
export type CallMachineContext = {
  readonly progress: CallProgress;
  readonly limits: CallLimits;
  readonly clock: Clock;
  readonly journal: Journal;
  readonly detection: 'off' | 'running' | 'stopped';
  readonly plans: PlansState;
  readonly streaming: StreamingState;
  readonly keys: KeysState;
  /** Number of transfers started so far, including the current one. */
  readonly transfers: number;
  /** The transfer that is in progress. */
  readonly ongoing?: Ongoing | undefined;
  /** Applies if the last transfer failed and nobody else will talk to the person. */
  readonly fallback?: TransferFallback | undefined;
  /** The announcement that ends the call. Undefined unless it is playing. */
  readonly announcing?: AnnouncementKind;
  /** Whether a person who answered was connected in time. */
  readonly reach: ReachProgress;
  readonly end?: CallEnd;
  readonly ending: EndingState;
  /** State that another process would need in order to end the leg. Set from the 200 OK on. */
  readonly leg?: StoredLeg;
  /** True once an INVITE may have left, although `leg.sent` has not said so yet. */
  readonly mayHaveSent?: boolean;
  /** Set by the 200 OK. */
  readonly answer?: AnswerState;
};

type PlansState = {
  /**
   * The plan that's in control of the call. No bot can join until that plan has released the call.
   */
  readonly heldBy?: PlanName | undefined;
  /** True while any of the request's plans may still act. */
  readonly hasPlans: boolean;
  /** The current detection round. A new round starts after a call screener has been answered. */
  readonly round: number;
};

export type StreamingState = {
  /**
   * Streams that haven't ended, oldest first. Any that are being stopped precede the current
   * stream.
   */
  readonly streams: readonly StreamProgress[];
  readonly streamsBegun: number;
  readonly streamEvents: number;
};

type KeysState = {
  readonly digits: number;
  readonly acceptsKeys: boolean;
  /** Number of `press` commands for which we're still waiting for the media to report the end. */
  readonly pressing: number;
  /** The `press` commands that arrived while digits were hidden. */
  readonly hiddenPresses: readonly string[];
};

type EndingState = {
  /** True from the end of an answered call until the media has said how it sounded. */
  readonly awaitsQuality?: boolean;
  /**
   * Set if the far end hung up or refused the call, which means that there's no leg left to end.
   */
  readonly legIsOver?: true;
  readonly event?: TerminalEvent;
  /** True if another process or recovery ends the call instead, because this end isn't stored. */
  readonly isRefused?: boolean;
};

type AnswerState = {
  readonly event: CallEvent;
  /**
   * The sequence numbers before the answer. The machine falls back to these numbers if the answer
   * couldn't be stored.
   */
  readonly before: Sequences;
  /** Set if the machine gave up on the answer, although the database may have stored it. */
  readonly uncertain?: Sequences & { readonly answeredAt: Date };
};

/** The groups of the context of which an effect changes single members. */
type Group = 'progress' | 'plans' | 'streaming' | 'keys' | 'ending';

/**
 * Makes an assignment that changes members of one group. The group's other members keep the values
 * that they have when the assignment is executed, so an effect may change a group several times.
 */
export function changing<Name extends Group>(
  name: Name,
  changes: Partial<CallMachineContext[Name]>,
): (args: { readonly context: CallMachineContext }) => Pick<CallMachineContext, Name> {
  return ({ context }) => {
    const changed = { [name]: { ...context[name], ...changes } };
    // TypeScript widens the type of a computed member's name to string.
    return changed as unknown as Pick<CallMachineContext, Name>;
  };
}

export type StreamProgress = Pick<NumberedStream, 'ordinal'> & {
  /** The command that started the stream. Undefined for the request's own stream. */
  readonly commandId?: string;
  /** True once a bot has accepted the stream. The media will then report the stream's end. */
  readonly isOpen: boolean;
  /** Set once the stream is being stopped. `stoppedBy` is the command that stopped it, if any. */
  readonly stopping?: { readonly stoppedBy?: string };
};

export type Ongoing = {
  /** The command that started the transfer. Undefined for the request's planned transfer. */
  readonly commandId?: string;
  readonly transfer: Transfer;
  /** True once the person and the agent are connected. */
  readonly isAnswered: boolean;
  readonly hasRung: boolean;
  /**
   * True if the transfer was started because detection found a person. If detection corrects that
   * verdict, the transfer is withdrawn.
   */
  readonly dependsOnVerdict: boolean;
};

const notProvided = (name: string) => (): never => {
  throw new Error(`${name} is not provided`);
};

export const callSetup = setup({
  types: {} as {
    context: CallMachineContext;
    events: CallMachineEvent;
    input: CallMachineInput;
    children: { line: 'line' };
    output: { readonly end: CallEnd | undefined; readonly quality: CallQuality | undefined };
  },
  actors: {
    line: fromCallback<LineCommand, AcceptedCall>(notProvided('line')),
  },
  actions: {
    append: ({ context }, step: CallStep) => context.journal.append(step),
    // The machine receives the results as events, because one actor per store took up a sixth of
    // its CPU time.
    storeAnswer: ({ context, self }, step: CallStep) =>
      sendResult(context.journal.store(step), (result) =>
        self.send({ type: 'journal.answered', result }),
      ),
    storeEnd: ({ context, self }, step: CallStep) =>
      sendResult(context.journal.store(step), (result) =>
        self.send({ type: 'journal.ended', result }),
      ),
    sendToLine: sendTo('line', (_, command: LineCommand) => command),
  },
  delays: {
    /** Remainder of the queue time-out, part of which the call has already spent in the queue. */
    queueTimeout: ({ context }) => {
      const { request, acceptedAt } = context.progress.call;
      const waitedMs = context.clock.now().getTime() - acceptedAt.getTime();
      return Math.max(0, request.queueTimeoutMs - waitedMs);
    },
    ringTimeout: ({ context }) => context.progress.call.request.ringTimeoutMs,
    storeAnswerTimeout: ({ context }) => context.limits.storeAnswerTimeoutMs,
    /**
     * Remainder of the maximum duration, which counts from the answer. Storing the answer has
     * already used up some of it.
     */
    maxDuration: ({ context: { progress, limits, clock } }) => {
      const { call, answeredAt } = progress;
      const maxMs = Math.min(limits.maxDurationMs, call.request.maxDurationMs ?? Infinity);
      const now = clock.now().getTime();
      return Math.max(0, maxMs - (now - (answeredAt?.getTime() ?? now)));
    },
    closingTimeout: ({ context }) => context.limits.closingTimeoutMs,
    storeEndTimeout: ({ context }) => context.limits.storeEndTimeoutMs,
  },
  guards: {
    hasEnded: ({ context }) => context.end !== undefined,
    mediaIsOver: ({ context }) =>
      context.detection !== 'running' &&
      !context.streaming.streams.some(({ isOpen }) => isOpen) &&
      context.keys.pressing === 0 &&
      context.ending.awaitsQuality !== true &&
      context.progress.recording.phase !== 'running' &&
      context.progress.playback.playing.length === 0,
    isTransferring: ({ context }) => context.ongoing !== undefined,
  },
});

function sendResult(stored: Promise<StepResult>, send: (result: StoreResult) => void): void {
  stored.then(send, () => send('unknown'));
}
