// What the machine's transitions do with streams to bots: that of the request, and those that commands begin in its place. No I/O.

import { assertEvent } from 'xstate';
import { assertNever } from '../call-types.ts';
import { type NextEvent, nextEvent, noLaterThanEnd } from '../life/call-events.ts';
import { endAfterAnswer, endOfBotFailure } from '../life/call-outcome.ts';
import {
  type CallMachineContext,
  type CallMachineEvent,
  callSetup,
  type StreamProgress,
} from '../life/call-setup.ts';
import type { RequestedStream, StreamReport } from './stream.ts';

export type StreamObstacles = {
  /** Why none may begin now. Undefined: one may. */
  readonly toBegin: string | undefined;
  /** Why there is none that could end. */
  readonly toEnd: string | undefined;
};

export function streamsOfRequest(
  stream: RequestedStream | undefined,
): Pick<CallMachineContext, 'streams' | 'streamsBegun'> {
  const streams = stream === undefined ? [] : [{ ordinal: 0, isOpen: false }];
  return { streams, streamsBegun: 0 };
}

/** The one that is wanted; it may still be on its way. */
export function currentStream({
  streams,
}: Pick<CallMachineContext, 'streams'>): StreamProgress | undefined {
  return streams.findLast(({ stopping }) => stopping === undefined);
}

/** Has the call, or may still have it: a bot that waits for a person does not come where detection is over without one. */
export function mayHaveBot(context: CallMachineContext): boolean {
  const stream = currentStream(context);
  if (stream === undefined) return false;
  const waitsForPerson = stream.ordinal === 0 && context.call.request.stream?.connect === 'person';
  if (stream.isOpen || !waitsForPerson || context.detection === 'running') return true;
  return context.amdEvents.some(({ event }) => event === 'amd_human_detected');
}

export function streamObstacles(context: CallMachineContext): StreamObstacles {
  const hasNone = currentStream(context) === undefined;
  return {
    toBegin: obstacleToBegin(context),
    toEnd: hasNone ? 'The call has no stream.' : undefined,
  };
}

function obstacleToBegin(context: CallMachineContext): string | undefined {
  const { end, ongoing, heldBy, streamsBegun, limits } = context;
  if (end !== undefined) return 'The call is ending.';
  if (ongoing?.isAnswered === true) return 'The call is transferred: two people talk.';
  if (ongoing !== undefined) return 'The call is being transferred.';
  if (heldBy === 'voicemail') return 'The call is leaving a message.';
  if (heldBy === 'screening') return 'The call is answering a screening.';
  if (streamsBegun < limits.maxStreams) return undefined;
  return `The call has had its ${limits.maxStreams} streams by command.`;
}

/** It has come after its obstacles were asked for, and nothing between. */
export const commandStream = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'command.stream');
  const { commandId, stream } = event;
  const { toBegin } = streamObstacles(context);
  if (stream !== undefined && toBegin !== undefined) return;
  // Who is to have the person from here on is the application's to say.
  enqueue.assign({ fallback: undefined });
  enqueue(endStream(stream === undefined ? 'command' : 'replaced', commandId));
  if (stream === undefined) return;
  const ordinal = context.streamsBegun + 1;
  enqueue.assign(({ context: { streams } }) => ({
    streams: [...streams, { ordinal, commandId, isOpen: false }],
    streamsBegun: ordinal,
  }));
  enqueue({ type: 'commandLine', params: { type: 'startStream', stream: { ...stream, ordinal } } });
});

/** Of the stream that is wanted. `stoppedBy`: the command that wants it to end. */
export function endStream(reason: string, stoppedBy?: string) {
  return callSetup.enqueueActions(({ context, enqueue }) => {
    const stream = currentStream(context);
    if (stream === undefined) return;
    enqueue({ type: 'commandLine', params: { type: 'stopStream', reason } });
    const stopping = stoppedBy === undefined ? {} : { stoppedBy };
    const stopped: StreamProgress = { ...stream, stopping };
    enqueue.assign({ streams: context.streams.map((one) => (one === stream ? stopped : one)) });
    // The sender of the command is told of it, also where no bot has taken the stream and so none says that it is over.
    const isCommanded = stream.commandId !== undefined || stoppedBy !== undefined;
    if (!stream.isOpen && isCommanded) enqueue(emitStreamEnd(stopped, reason));
  });
}

function emitStreamEnd(stream: StreamProgress, reason: string) {
  return callSetup.enqueueActions(({ context, enqueue }) => {
    const at = context.end?.at ?? context.clock.now();
    const report: StreamReport = { kind: 'stopped', reason };
    const { event: emitted, ...sequences } = streamEvent(context, at, report, stream);
    enqueue.assign({
      streams: context.streams.filter(({ ordinal }) => ordinal !== stream.ordinal),
      ...sequences,
    });
    enqueue({ type: 'append', params: { events: [emitted] } });
  });
}

export const emitStream = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'media.stream');
  const { report, ordinal } = event;
  const stream = context.streams.find((one) => one.ordinal === ordinal);
  // It was said to be over already.
  if (stream === undefined) return;
  const goesOn = report.kind === 'opened' || report.kind === 'broken';
  const known = { ...stream, isOpen: stream.isOpen || report.kind === 'opened' };
  enqueue.assign({
    streams: context.streams.flatMap((one) => (one !== stream ? [one] : goesOn ? [known] : [])),
  });
  const streamEvents = context.streamEvents + 1;
  const isBeginning = report.kind === 'opened' && report.connection === 1;
  if (goesOn && !isBeginning && streamEvents > context.limits.maxStreamEvents) return;
  const at = noLaterThanEnd(context, event.at);
  const { event: emitted, ...sequences } = streamEvent(context, at, report, stream);
  enqueue.assign({ streamEvents, ...sequences });
  enqueue({ type: 'append', params: { events: [emitted] } });
});

/** What becomes of a stream to a bot, and the commands that began and stopped it. */
function streamEvent(
  context: CallMachineContext,
  at: Date,
  report: StreamReport,
  { commandId, stopping }: Pick<StreamProgress, 'commandId' | 'stopping'>,
): NextEvent {
  const command = commandId === undefined ? {} : { commandId };
  switch (report.kind) {
    case 'opened': {
      const { connection, openMs } = report;
      return nextEvent(context, 'stream-started', at, { ...command, connection, openMs });
    }
    case 'broken':
    case 'lost': {
      const data = { ...command, reason: report.reason, willRetry: report.kind === 'broken' };
      return nextEvent(context, 'stream-failed', at, data);
    }
    case 'stopped':
    case 'botLeft': {
      const reason = report.kind === 'botLeft' ? 'bot-closed' : report.reason;
      const data = { ...command, ...stopping, reason, ...report.counts };
      return nextEvent(context, 'stream-stopped', at, data);
    }
    default:
      return assertNever(report);
  }
}

/** The media worker did not say it in time. */
export const emitStreamStopped = callSetup.enqueueActions(({ context, enqueue }) => {
  for (const stream of context.streams) {
    if (stream.isOpen) enqueue(emitStreamEnd(stream, 'call-ended'));
  }
});

/** How a stream ends its call: the bot has hung up, or the one that the request wanted is not there. */
export function endsByStream(
  context: CallMachineContext,
  event: Extract<CallMachineEvent, { readonly type: 'media.stream' }>,
): 'bot-left' | 'bot-lost' | undefined {
  const { report, ordinal } = event;
  if (currentStream(context)?.ordinal !== ordinal) return undefined;
  if (report.kind === 'botLeft') return 'bot-left';
  // The sender of the command is told, and still has the call.
  return report.kind === 'lost' && ordinal === 0 ? 'bot-lost' : undefined;
}

/** It has closed its stream in good order: what an application does that hangs up. */
export const hangUpByBot = callSetup.enqueueActions(({ context, enqueue }) => {
  enqueue.assign({ end: endAfterAnswer({ by: 'application' }, context.clock.now()) });
  enqueue({ type: 'commandLine', params: { type: 'hangUp', reason: 'bot closed its stream' } });
});

export const hangUpOnBotFailure = callSetup.enqueueActions(({ context, enqueue }) => {
  enqueue.assign({ end: endOfBotFailure(context.clock.now()) });
  enqueue({ type: 'commandLine', params: { type: 'hangUp', reason: 'bot unreachable' } });
});
