// Effects for bot streams, i.e. the request's own stream and any streams with which commands
// replace it. No I/O.

import { assertEvent } from 'xstate';
import { assertNever } from '../call-types.ts';
import { type NextEvent, nextEvent, noLaterThanEnd } from '../life/call-events.ts';
import { endAfterAnswer, endOfBotFailure } from '../life/call-outcome.ts';
import {
  type CallMachineContext,
  type CallMachineEvent,
  callSetup,
  changing,
  type StreamingState,
  type StreamProgress,
} from '../life/call-setup.ts';
import { evidenceAfter } from '../rules/evidence.ts';
import type { RequestedStream, StreamReport } from './stream.ts';
import type { StreamStop } from './stream-reasons.ts';

export type StreamObstacles = {
  /** Why a stream can't start now. Undefined if it can. */
  readonly toBegin: string | undefined;
  /** Why there is no stream to end. Undefined if the call has one. */
  readonly toEnd: string | undefined;
};

export function streamingOfRequest(stream: RequestedStream | undefined): StreamingState {
  const streams = stream === undefined ? [] : [{ ordinal: 0, isOpen: false }];
  return { streams, streamsBegun: 0, streamEvents: 0 };
}

/** Returns the stream that isn't being stopped. It may still be connecting. */
export function currentStream({ streaming }: CallMachineContext): StreamProgress | undefined {
  return streaming.streams.findLast(({ stopping }) => stopping === undefined);
}

/**
 * Whether a bot has the call or may still get it. If the bot waits for a person and detection ended
 * without finding one, the bot never joins.
 */
export function mayHaveBot(context: CallMachineContext): boolean {
  const stream = currentStream(context);
  if (stream === undefined) return false;
  const waitsForPerson =
    stream.ordinal === 0 && context.progress.call.request.stream?.connect === 'person';
  if (stream.isOpen || !waitsForPerson || context.detection === 'running') return true;
  return context.progress.amdEvents.some(({ event }) => event === 'amd_human_detected');
}

export function streamObstacles(context: CallMachineContext): StreamObstacles {
  const hasStream = currentStream(context) !== undefined;
  return {
    toBegin: obstacleToBegin(context),
    toEnd: hasStream ? undefined : 'The call has no stream.',
  };
}

function obstacleToBegin(context: CallMachineContext): string | undefined {
  const { end, announcing, ongoing, limits } = context;
  const { heldBy } = context.plans;
  if (end !== undefined || announcing !== undefined) return 'The call is ending.';
  if (ongoing?.isAnswered === true)
    return 'The call was transferred: the person is talking to the agent.';
  if (ongoing !== undefined) return 'The call is being transferred.';
  if (heldBy === 'voicemail') return 'The call is leaving a message.';
  if (heldBy === 'screening') return 'The call is answering a call screening.';
  if (context.streaming.streamsBegun < limits.maxStreams) return undefined;
  return `The call has used up the ${limits.maxStreams} streams that commands may begin.`;
}

/**
 * Starts or ends a stream. Checks for obstacles to a new stream again, because they may have
 * changed since the command handler's check.
 */
export const applyStreamCommand = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'command.stream');
  const { commandId, stream } = event;
  const { toBegin } = streamObstacles(context);
  if (stream !== undefined && toBegin !== undefined) return;
  // From here on, it's up to the application who talks to the person.
  enqueue.assign({ fallback: undefined });
  enqueue(endStream(stream === undefined ? 'command' : 'replaced', commandId));
  if (stream === undefined) return;
  const ordinal = context.streaming.streamsBegun + 1;
  enqueue.assign(({ context: { streaming } }) => ({
    streaming: {
      ...streaming,
      streams: [...streaming.streams, { ordinal, commandId, isOpen: false }],
      streamsBegun: ordinal,
    },
  }));
  enqueue({ type: 'sendToLine', params: { type: 'startStream', stream: { ...stream, ordinal } } });
});

/**
 * Makes an action that ends the current stream. `stoppedBy` is the id of the command that asked for
 * it, if any.
 */
export function endStream(reason: StreamStop, stoppedBy?: string) {
  return callSetup.enqueueActions(({ context, enqueue }) => {
    const stream = currentStream(context);
    if (stream === undefined) return;
    enqueue({ type: 'sendToLine', params: { type: 'stopStream', reason } });
    const stopping = stoppedBy === undefined ? {} : { stoppedBy };
    const stopped: StreamProgress = { ...stream, stopping };
    const streams = context.streaming.streams.map((one) => (one === stream ? stopped : one));
    enqueue.assign(changing('streaming', { streams }));
    // A command's sender always gets an event. If no bot accepted the stream, the media doesn't
    // report an end, so the machine emits one.
    const isCommanded = stream.commandId !== undefined || stoppedBy !== undefined;
    if (!stream.isOpen && isCommanded) enqueue(emitStreamEnd(stopped, reason));
  });
}

function emitStreamEnd(stream: StreamProgress, reason: StreamStop) {
  return callSetup.enqueueActions(({ context, enqueue }) => {
    const at = context.end?.at ?? context.clock.now();
    const report: StreamReport = { kind: 'stopped', reason };
    const { event: emitted, ...sequences } = streamEvent(context, at, report, stream);
    enqueue.assign(changing('progress', sequences));
    const streams = context.streaming.streams.filter(({ ordinal }) => ordinal !== stream.ordinal);
    enqueue.assign(changing('streaming', { streams }));
    enqueue({ type: 'append', params: { events: [emitted] } });
  });
}

export const emitStream = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'media.stream');
  const { report, ordinal } = event;
  const stream = context.streaming.streams.find((one) => one.ordinal === ordinal);
  // The stream's end has already been emitted.
  if (stream === undefined) return;
  const continues = report.kind === 'opened' || report.kind === 'broken';
  const known = { ...stream, isOpen: stream.isOpen || report.kind === 'opened' };
  const streams = context.streaming.streams.flatMap((one) =>
    one !== stream ? [one] : continues ? [known] : [],
  );
  enqueue.assign(changing('streaming', { streams }));
  const streamEvents = context.streaming.streamEvents + 1;
  const isBeginning = report.kind === 'opened' && report.connection === 1;
  if (continues && !isBeginning && streamEvents > context.limits.maxStreamEvents) return;
  const at = noLaterThanEnd(context, event.at);
  const { event: emitted, ...sequences } = streamEvent(context, at, report, stream);
  const evidence = evidenceAfter(context.progress.evidence, emitted);
  enqueue.assign(changing('progress', { evidence, ...sequences }));
  enqueue.assign(changing('streaming', { streamEvents }));
  enqueue({ type: 'append', params: { events: [emitted] } });
});

/**
 * Builds the event for a report. The event names the commands that started and stopped the stream.
 */
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
      return nextEvent(context.progress, 'stream-started', at, { ...command, connection, openMs });
    }
    case 'broken':
    case 'lost': {
      const data = { ...command, reason: report.reason, willRetry: report.kind === 'broken' };
      return nextEvent(context.progress, 'stream-failed', at, data);
    }
    case 'stopped':
    case 'botLeft': {
      const reason = report.kind === 'botLeft' ? 'bot-closed' : report.reason;
      const data = { ...command, ...stopping, reason, ...report.counts };
      return nextEvent(context.progress, 'stream-stopped', at, data);
    }
    default:
      return assertNever(report);
  }
}

/** Emits the end of each stream whose end the media worker didn't report in time. */
export const emitStreamStopped = callSetup.enqueueActions(({ context, enqueue }) => {
  for (const stream of context.streaming.streams) {
    if (stream.isOpen) enqueue(emitStreamEnd(stream, 'call-ended'));
  }
});

/**
 * Returns why a stream report ends the call: either the bot hung up, or the request's own bot can't
 * be reached. Undefined if the call continues.
 */
export function streamEndReason(
  context: CallMachineContext,
  event: Extract<CallMachineEvent, { readonly type: 'media.stream' }>,
): 'bot-left' | 'bot-lost' | undefined {
  const { report, ordinal } = event;
  if (currentStream(context)?.ordinal !== ordinal) return undefined;
  if (report.kind === 'botLeft') return 'bot-left';
  // If a command started the stream, the command's sender gets an event and still controls the
  // call.
  return report.kind === 'lost' && ordinal === 0 ? 'bot-lost' : undefined;
}

/**
 * Hangs up because the bot closed its stream properly, which we treat as a hang-up by the
 * application.
 */
export const hangUpByBot = callSetup.enqueueActions(({ context, enqueue }) => {
  enqueue.assign({ end: endAfterAnswer({ by: 'application' }, context.clock.now()) });
  enqueue({ type: 'sendToLine', params: { type: 'hangUp', reason: 'bot closed its stream' } });
});

export const hangUpOnBotFailure = callSetup.enqueueActions(({ context, enqueue }) => {
  enqueue.assign({ end: endOfBotFailure(context.clock.now()) });
  enqueue({ type: 'sendToLine', params: { type: 'hangUp', reason: 'bot unreachable' } });
});
