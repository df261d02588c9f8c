// The machine's vocabulary: its events, its commands to the line and to its journal, its context, delays and guards, and a stub for
// the line. `call-machine.ts` is the statechart. What its transitions do is in `call-effects.ts` and in the effects of each feature.

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
export type PassedMediaEvent = `media.${PassedEvent['kind']}`;

/** What the line (SIP leg and media session together) tells the machine. */
export type LineEvent =
  | FromPort<'leg', LegEvent>
  | FromPort<'media', PassedEvent>
  | FromPort<'transfer', TransferReport>
  /** Whether the far end takes keys, by RTP events or by SIP INFO. Told at the answer and after each re-offer. */
  | { readonly type: 'line.takesKeys'; readonly takesKeys: boolean };

export function fromLeg(event: LegEvent, now: Date): LineEvent {
  return { at: now, ...event, type: `leg.${event.kind}` } as LineEvent;
}

export function fromMedia(event: PassedEvent, now: Date): LineEvent {
  return { at: now, ...event, type: `media.${event.kind}` } as LineEvent;
}

export function fromTransfer(report: TransferReport, now: Date): LineEvent {
  return { at: now, ...report, type: `transfer.${report.kind}` } as LineEvent;
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
  /** What became of storing the answer, and the end. */
  | { readonly type: 'journal.answered' | 'journal.ended'; readonly result: StoreResult }
  | { readonly type: 'command.end'; readonly command: EndCommand }
  /** A command that the media obeys. Before the answer this event and the next ones do nothing. */
  | { readonly type: 'command.media'; readonly command: MediaCommand }
  /** Without a stream: the one that the call has is to end. */
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
  /** Digits that are stated; a far end that sends more is not listened to any more. */
  readonly maxDigits: number;
  /** Connections to bots that are stated, made or lost; a stream's beginning and its end always are. */
  readonly maxStreamEvents: number;
  /** By command, one after the other. */
  readonly maxStreams: number;
  /** Tried in one call, one after the other: an application that tries for ever rings phones for ever. */
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

/** Of one call. */
export type Journal = {
  /** Stored as soon as possible; not waited for. */
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
  /** Of detection: it begins anew after a call screening. */
  readonly round: number;
  /** Of detection's answers: while one has the call, no bot takes it. */
  readonly heldBy?: PlanName | undefined;
  /** Something may still come of those of the request. */
  readonly hasPlans: boolean;
  /** Those that are not over, in their order: one that is wanted, at most, after those that were told to stop. */
  readonly streams: readonly StreamProgress[];
  /** By command, so far. */
  readonly streamsBegun: number;
  /** Stated so far. */
  readonly digits: number;
  readonly streamEvents: number;
  readonly takesKeys: boolean;
  /** Commands that press keys, and of which it is not told yet what became of them. */
  readonly pressing: number;
  /** Begun so far. */
  readonly transfers: number;
  /** The one that is under way. */
  readonly ongoing?: Ongoing | undefined;
  /** Of the last one, which failed: what is done when neither a bot nor an agent has the person, or is to come. */
  readonly fallback?: TransferFallback | undefined;
  readonly end?: CallEnd;
  readonly endEvent?: TerminalEvent;
  /** Where the far end can be ended: known from the 200 on. */
  readonly leg?: StoredLeg;
  /** The far end has hung up, or refused: there is nothing to end. */
  readonly legIsOver?: true;
  readonly answeredEvent?: CallEvent;
  /** While it is not known whether the answer is stored: what stands if it is not. */
  readonly beforeAnswer?: Sequences;
  /** It was given up; SQL may hold it all the same. */
  readonly doubtfulAnswer?: Sequences & { readonly answeredAt: Date };
};

export type StreamProgress = Pick<NumberedStream, 'ordinal'> & {
  /** That asked for it. */
  readonly commandId?: string;
  /** The bot has taken it: its end is still to be told. */
  readonly isOpen: boolean;
  /** It was told to: perhaps by a command. */
  readonly stopping?: { readonly stoppedBy?: string };
};

export type Ongoing = {
  /** That began it. */
  readonly commandId?: string;
  readonly transfer: Transfer;
  /** The two are connected. */
  readonly isAnswered: boolean;
  readonly hasRung: boolean;
  /** Planned for a person: not for a machine that was taken for one. */
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
    // Events tell what became of these two: an actor for each took a sixth of the machine's CPU.
    storeAnswer: ({ context, self }, step: CallStep) =>
      tellOf(context.journal.store(step), (result) =>
        self.send({ type: 'journal.answered', result }),
      ),
    storeEnd: ({ context, self }, step: CallStep) =>
      tellOf(context.journal.store(step), (result) => self.send({ type: 'journal.ended', result })),
    commandLine: sendTo('line', (_, command: LineCommand) => command),
  },
  delays: {
    /** What is left of it: the call has waited in the queue before. */
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

function tellOf(stored: Promise<StepResult>, tell: (result: StoreResult) => void): void {
  stored.then(tell, () => tell('unknown'));
}
