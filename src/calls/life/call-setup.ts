// The machine's vocabulary: its events, its commands to the line and to its journal, its context,
// delays and guards. `call-machine.ts` is the statechart; what its transitions do is in
// `call-effects.ts` and in the effects of each feature.

import { fromCallback, sendTo, setup } from 'xstate';
import type { AcceptedCall } from '../call-types.ts';
import type { CallEvent, TerminalEvent } from '../contract/call-event.ts';
import type { StoredLeg } from '../contract/stored-leg.ts';
import type { MediaCommand, MediaEvent } from '../media.ts';
import type { PlanName } from '../plans/plans.ts';
import type { Clock, LegEvent, StepResult } from '../ports.ts';
import type { NumberedStream, RequestedStream } from '../stream/stream.ts';
import type { Transfer, TransferFallback, TransferRequest } from '../transfer/transfer.ts';
import type { TransferReport } from '../transfer/transfer-report.ts';
import type { CallProgress, Sequences } from './call-events.ts';
import type { CallEnd, EndCommand } from './call-outcome.ts';
import type { CallStep } from './call-step.ts';

/** An event of a port as the machine takes it: unchanged, named for XState, with the instant at which it happened. */
type FromPort<Port extends string, Event extends { readonly kind: string }> = Event extends unknown
  ? Event & { readonly type: `${Port}.${Event['kind']}`; readonly at: Date }
  : never;

/** The line passes on what its media tells, except what concerns others: the capture, the bridge, the line itself. */
export type PassedEvent = Exclude<MediaEvent, { kind: 'envelope' | 'connected' | 'inactive' }>;
export type PassedEventType = `media.${PassedEvent['kind']}`;

/** What the line (SIP leg and media session together) tells the machine. */
export type LineEvent =
  | FromPort<'leg', LegEvent>
  | FromPort<'media', PassedEvent>
  | FromPort<'transfer', TransferReport>
  /** Whether the far end takes keys, by RTP events or by SIP INFO. Told at the answer and after each re-offer. */
  | { readonly type: 'line.takesKeys'; readonly takesKeys: boolean };

/** @param now when the line heard of it; an event with an instant of its own keeps that */
export function fromPort<Port extends string, Event extends { readonly kind: string }>(
  port: Port,
  event: Event,
  now: Date,
): FromPort<Port, Event> {
  return { at: now, ...event, type: `${port}.${event.kind}` } as unknown as FromPort<Port, Event>;
}

/** What the machine asks of the line. */
export type LineCommand =
  | { readonly type: 'cancel'; readonly reason: string }
  | { readonly type: 'acknowledge' }
  | { readonly type: 'hangUp'; readonly reason: string }
  | { readonly type: 'media'; readonly command: MediaCommand }
  | { readonly type: 'startStream'; readonly stream: NumberedStream }
  | { readonly type: 'stopStream'; readonly reason: string }
  | { readonly type: 'transfer'; readonly transfer: Transfer }
  /** The person is a machine after all. */
  | { readonly type: 'withdrawTransfer' }
  /** Leaves nothing open, whatever state the line is in. */
  | { readonly type: 'close' };

/** An action that has the media do something. */
export function commandMedia(command: MediaCommand) {
  const params: LineCommand = { type: 'media', command };
  return { type: 'commandLine' as const, params };
}

export type CallMachineEvent =
  | LineEvent
  /** The result of storing the answer, or the end. */
  | { readonly type: 'journal.answered' | 'journal.ended'; readonly result: StoreResult }
  | { readonly type: 'command.end'; readonly command: EndCommand }
  /** A command that the media obeys. Before the answer this event and the next ones do nothing. */
  | { readonly type: 'command.media'; readonly command: MediaCommand }
  /** Without `stream` it ends the stream that the call has. */
  | {
      readonly type: 'command.stream';
      readonly commandId: string;
      readonly stream?: RequestedStream;
    }
  | {
      readonly type: 'command.transfer';
      readonly commandId: string;
      readonly transfer: TransferRequest;
    };

export type StoreResult = StepResult | 'unknown';

export type CallLimits = {
  readonly maxDurationMs: number;
  /** SQL must take the answer within this; well below the 32 s for which a callee repeats its 200. */
  readonly storeAnswerTimeoutMs: number;
  /** The media worker must flush `amd_stopped` within this. */
  readonly closingTimeoutMs: number;
  /** SQL must take the end within this. */
  readonly storeEndTimeoutMs: number;
  /** Digits that one call states; later ones are ignored. */
  readonly maxDigits: number;
  /** Connections to bots, made or lost, that one call states. The beginning and the end of a stream are always stated. */
  readonly maxStreamEvents: number;
  /** Streams that commands may begin in one call, one after the other. */
  readonly maxStreams: number;
  /** Transfers that one call may try, one after the other: an application that tries for ever rings phones for ever. */
  readonly maxTransfers: number;
};

export const defaultCallLimits: CallLimits = {
  maxDurationMs: 7_200_000,
  storeAnswerTimeoutMs: 4_000,
  closingTimeoutMs: 1_000,
  storeEndTimeoutMs: 60_000,
  // Far above what a person presses in two hours. Each is an event on the stream, and a flood must not crowd out other calls.
  maxDigits: 2_000,
  // A bot that takes the stream and drops it again and again is tried for as long as the call lasts.
  maxStreamEvents: 200,
  // A call is handed from bot to bot a few times; an application that goes round and round is at fault.
  maxStreams: 50,
  maxTransfers: 20,
};

/** Stores the steps of one call. */
export type Journal = {
  /** Stores the step as soon as possible. The machine does not wait for it. */
  append(step: CallStep): void;
  store(step: CallStep): Promise<StepResult>;
};

export type CallMachineInput = {
  readonly call: AcceptedCall;
  readonly limits: CallLimits;
  readonly clock: Clock;
  readonly journal: Journal;
};

export type CallMachineContext = CallProgress & {
  readonly limits: CallLimits;
  readonly clock: Clock;
  readonly journal: Journal;
  readonly detection: 'off' | 'running' | 'stopped';
  /** The round of detection: a new one begins after a call screening. */
  readonly round: number;
  /** The plan that has the call: until it is over, no bot takes the call. */
  readonly heldBy?: PlanName | undefined;
  /** A plan of the request may still act. */
  readonly hasPlans: boolean;
  /** Streams that are not over, oldest first: those that were told to stop, then at most one that is wanted. */
  readonly streams: readonly StreamProgress[];
  /** Streams that commands began so far. */
  readonly streamsBegun: number;
  /** Digits stated so far. */
  readonly digits: number;
  /** Connections to bots, made or lost, stated so far. */
  readonly streamEvents: number;
  readonly takesKeys: boolean;
  /** Commands that press keys and whose end the media has yet to report. */
  readonly pressing: number;
  /** Transfers begun so far. */
  readonly transfers: number;
  /** The transfer under way. */
  readonly ongoing?: Ongoing | undefined;
  /** What to do after the last transfer failed and nobody else will talk to the person. */
  readonly fallback?: TransferFallback | undefined;
  readonly end?: CallEnd;
  readonly endEvent?: TerminalEvent;
  /** Where the far end can be ended: known from the 200 on. */
  readonly leg?: StoredLeg;
  /** The far end has hung up or refused, so there is no leg to end. */
  readonly legIsOver?: true;
  readonly answeredEvent?: CallEvent;
  /** Kept until the answer is known to be stored: the numbers that stand if it is not. */
  readonly beforeAnswer?: Sequences;
  /** An answer that the machine gave up, and that SQL may hold all the same. */
  readonly doubtfulAnswer?: Sequences & { readonly answeredAt: Date };
};

export type StreamProgress = Pick<NumberedStream, 'ordinal'> & {
  /** The command that asked for the stream. */
  readonly commandId?: string;
  /** The bot has taken the stream, and the media will report its end. */
  readonly isOpen: boolean;
  /** Set once the stream was told to stop. `stoppedBy` is the command that did it, if any. */
  readonly stopping?: { readonly stoppedBy?: string };
};

export type Ongoing = {
  /** The command that began it. */
  readonly commandId?: string;
  readonly transfer: Transfer;
  /** The two are connected. */
  readonly isAnswered: boolean;
  readonly hasRung: boolean;
  /** It began because detection found a person, and is withdrawn if detection corrects that. */
  readonly restsOnVerdict: boolean;
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
    output: { readonly end: CallEnd | undefined };
  },
  actors: {
    line: fromCallback<LineCommand, AcceptedCall>(notProvided('line')),
  },
  actions: {
    append: ({ context }, step: CallStep) => context.journal.append(step),
    // The machine learns the results as events: an actor for each took a sixth of its CPU.
    storeAnswer: ({ context, self }, step: CallStep) =>
      whenStored(context.journal.store(step), (result) =>
        self.send({ type: 'journal.answered', result }),
      ),
    storeEnd: ({ context, self }, step: CallStep) =>
      whenStored(context.journal.store(step), (result) =>
        self.send({ type: 'journal.ended', result }),
      ),
    commandLine: sendTo('line', (_, command: LineCommand) => command),
  },
  delays: {
    /** The rest of the time-out: the call has already waited in the queue. */
    queueTimeout: ({ context: { call, clock } }) =>
      Math.max(
        0,
        call.request.queueTimeoutMs - (clock.now().getTime() - call.acceptedAt.getTime()),
      ),
    ringTimeout: ({ context: { call } }) => call.request.ringTimeoutMs,
    storeAnswerTimeout: ({ context }) => context.limits.storeAnswerTimeoutMs,
    /** Counts from the answer; storing it took a part of the time. */
    maxDuration: ({ context: { call, limits, clock, answeredAt } }) => {
      const longestMs = Math.min(limits.maxDurationMs, call.request.maxDurationMs ?? Infinity);
      const now = clock.now().getTime();
      return Math.max(0, longestMs - (now - (answeredAt?.getTime() ?? now)));
    },
    closingTimeout: ({ context }) => context.limits.closingTimeoutMs,
    storeEndTimeout: ({ context }) => context.limits.storeEndTimeoutMs,
  },
  guards: {
    hasEnded: ({ context }) => context.end !== undefined,
    mediaIsOver: ({ context }) =>
      context.detection !== 'running' &&
      !context.streams.some(({ isOpen }) => isOpen) &&
      context.pressing === 0 &&
      context.playback.playing.length === 0,
    isTransferring: ({ context }) => context.ongoing !== undefined,
  },
});

function whenStored(stored: Promise<StepResult>, send: (result: StoreResult) => void): void {
  stored.then(send, () => send('unknown'));
}
