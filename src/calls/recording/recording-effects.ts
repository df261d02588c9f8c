// Effects for the recording of a call: when it begins, what commands do to it, which events it
// emits, and whether its failure ends the call.
//
// With `from: answer` and without an announcement, the line itself starts the recording with the
// 200 OK, so that the first word is on it. Everything else begins here. A recording that begins
// with a person begins with the first verdict `amd_human_detected`. If detection corrects that
// verdict later, the recording continues: whatever was heard until then is on it anyway.

import { assertEvent } from 'xstate';
import { assertNever } from '../call-types.ts';
import type { CallEvent } from '../contract/call-event.ts';
import { type NextEvent, nextEvent, noLaterThanEnd } from '../life/call-events.ts';
import { endAfterAnswer } from '../life/call-outcome.ts';
import {
  type CallMachineContext,
  type CallMachineEvent,
  callSetup,
  changing,
  sendToMedia,
} from '../life/call-setup.ts';
import { evidenceAfter } from '../rules/evidence.ts';
import { recordObstacle } from './record-obstacles.ts';
import {
  defaultRecording,
  type RecordingBegin,
  type RecordingReport,
  type RequestedRecording,
} from './recording.ts';
import type { RecordAction } from './recording-contract.ts';
import { afterRecording, type RecordingProgress } from './recording-progress.ts';

function settingsOf({ progress }: CallMachineContext): RequestedRecording {
  return progress.call.request.recording || defaultRecording;
}

/** Notes that the line has started the recording, or plays the announcement before it. */
export const beginRecordingAtAnswer = callSetup.enqueueActions(({ context, enqueue }) => {
  if (settingsOf(context).from === 'answer') enqueue(begin('answer'));
});

export const beginRecordingForPerson = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'media.amd');
  const isPerson = event.amd.event === 'amd_human_detected';
  if (isPerson && settingsOf(context).from === 'person') enqueue(begin('person'));
});

function begin(from: RecordingBegin, commandId?: string) {
  return callSetup.enqueueActions(({ context, enqueue }) => {
    const { progress, end, announcing } = context;
    if (progress.recording.phase !== 'none' || end !== undefined || announcing !== undefined)
      return;
    const begun = begunRecording(context, from, commandId);
    enqueue.assign(changing('progress', { recording: begun }));
    if (begun.phase === 'announcing') {
      enqueue({ type: 'sendToLine', params: { type: 'announceRecording' } });
    } else if (from !== 'answer') {
      enqueue({ type: 'sendToLine', params: { type: 'startRecording', from } });
    }
  });
}

function begunRecording(
  context: CallMachineContext,
  from: RecordingBegin,
  commandId: string | undefined,
): RecordingProgress {
  const { announce, pauseOnKeys, key } = settingsOf(context);
  return {
    ...context.progress.recording,
    ...{ from, pauseOnKeys },
    ...(key === undefined ? {} : { key }),
    ...(commandId === undefined ? {} : { commandIds: { start: commandId } }),
    phase: announce === undefined ? 'running' : 'announcing',
  };
}

type PlaybackEvent = Extract<CallMachineEvent, { readonly type: 'media.playback' }>;

/** Whether the event is the end of the announcement before a recording. */
function endsNotice({ progress, announcing }: CallMachineContext, { report }: PlaybackEvent) {
  const isNotice = report.kind === 'finished' && report.source === 'recording';
  // An announcement that ends the call replaces the one before the recording.
  return isNotice && progress.recording.phase === 'announcing' && announcing === undefined;
}

/** Begins the recording once its announcement has been played to the end. */
export const recordAfterNotice = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'media.playback');
  const { report } = event;
  if (!endsNotice(context, event) || report.kind !== 'finished') return;
  const { recording } = context.progress;
  const { from = 'command' } = recording;
  if (report.reason !== 'done') return enqueue(fail('announcement', 0));
  const begun: RecordingProgress = { ...recording, phase: 'running', announcedAt: event.at };
  enqueue.assign(changing('progress', { recording: begun }));
  enqueue({ type: 'sendToLine', params: { type: 'startRecording', from } });
});

/** Checks for obstacles again, because they may have changed since the handler's check. */
export const recordByCommand = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'command.record');
  const { action, commandId } = event;
  if (recordObstacle(context, action) !== undefined) return;
  if (action === 'start') return enqueue(begin('command', commandId));
  const { recording } = context.progress;
  const commandIds = { ...recording.commandIds, [action]: commandId };
  if (action === 'stop') return enqueue(stopByCommand(commandIds));
  const held = { ...recording, commandIds, isHeld: action === 'pause' };
  enqueue.assign(changing('progress', { recording: held }));
  enqueue(sendToMedia({ kind: 'record', action }));
  // The media is already paused because of keys, so it has nothing to report.
  const { pausedSinceMs } = recording;
  if (action === 'pause' && pausedSinceMs !== undefined) {
    enqueue(emitReport({ kind: 'paused', offsetMs: pausedSinceMs, by: 'command' }));
  }
});

function stopByCommand(commandIds: NonNullable<RecordingProgress['commandIds']>) {
  return callSetup.enqueueActions(({ context, enqueue }) => {
    const { recording } = context.progress;
    const stopping = { ...recording, commandIds, isStopping: true };
    enqueue.assign(changing('progress', { recording: stopping }));
    const reason = 'command' as const;
    if (recording.phase === 'running') {
      enqueue(sendToMedia({ kind: 'record', action: 'stop', reason }));
      // The recording was called off before it began.
    } else enqueue(emitReport({ kind: 'stopped', reason, durationMs: 0, pausedMs: 0 }));
  });
}

export const emitRecording = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'media.recording');
  const { report } = event;
  const { phase, pausedSinceMs } = context.progress.recording;
  if (phase !== 'running') return;
  // A pause that changes its reason is still one pause.
  if (report.kind === 'paused' && pausedSinceMs !== undefined) return;
  if (report.kind === 'resumed' && pausedSinceMs === undefined) return;
  enqueue(emitReport(report, event.at));
});

function emitReport(report: RecordingReport, now?: Date) {
  return callSetup.enqueueActions(({ context, enqueue }) => {
    const at = noLaterThanEnd(context, now ?? context.clock.now());
    enqueue(emit(recordingEvent(context, at, report)));
  });
}

function emit({ event, ...sequences }: NextEvent<CallEvent>) {
  return callSetup.enqueueActions(({ context, enqueue }) => {
    enqueue.assign(
      changing('progress', {
        recording: afterRecording(context.progress.recording, event),
        evidence: evidenceAfter(context.progress.evidence, event),
        ...sequences,
      }),
    );
    enqueue({ type: 'append', params: { events: [event] } });
  });
}

function recordingEvent(
  context: CallMachineContext,
  at: Date,
  report: RecordingReport,
): NextEvent<CallEvent> {
  const { commandIds, from = 'command', announcedAt } = context.progress.recording;
  const by = (action: RecordAction) => {
    const commandId = commandIds?.[action];
    return commandId === undefined ? {} : { commandId };
  };
  switch (report.kind) {
    case 'started': {
      const { fill, pauseOnKeys, key } = settingsOf(context);
      return nextEvent(context.progress, 'recording-started', at, {
        from,
        startedAt: new Date(report.at).toISOString(),
        ...(announcedAt === undefined ? {} : { announcedAt: announcedAt.toISOString() }),
        ...{ fill, pauseOnKeys },
        ...(key === undefined ? {} : { key }),
        ...by('start'),
      });
    }
    case 'paused': {
      const { by: why, offsetMs } = report;
      const command = why === 'command' ? by('pause') : {};
      return nextEvent(context.progress, 'recording-paused', at, { by: why, offsetMs, ...command });
    }
    case 'resumed': {
      const { offsetMs } = report;
      return nextEvent(context.progress, 'recording-resumed', at, { offsetMs, ...by('resume') });
    }
    case 'stopped': {
      const { kind: _kind, ...data } = report;
      const command = report.reason === 'command' ? by('stop') : {};
      return nextEvent(context.progress, 'recording-stopped', at, { ...data, ...command });
    }
    case 'failed': {
      const { reason, durationMs } = report;
      return nextEvent(context.progress, 'recording-failed', at, { reason, durationMs });
    }
    default:
      return assertNever(report);
  }
}

function fail(reason: 'announcement' | 'media-failed', durationMs: number) {
  return callSetup.enqueueActions(({ context, enqueue }) => {
    const at = noLaterThanEnd(context, context.clock.now());
    enqueue(emit(nextEvent(context.progress, 'recording-failed', at, { reason, durationMs })));
  });
}

/** Ends the recording with the call. The media then reports its end. */
export const stopRecording = callSetup.enqueueActions(({ context, enqueue }) => {
  const { phase, isStopping } = context.progress.recording;
  if (phase !== 'running' || isStopping === true) return;
  enqueue(sendToMedia({ kind: 'record', action: 'stop', reason: 'call-ended' }));
});

/** Emits the end of a recording whose end the media didn't report in time. */
export const emitRecordingLost = callSetup.enqueueActions(({ context, enqueue }) => {
  const { progress, end, clock } = context;
  const { recording, answeredAt } = progress;
  if (recording.phase !== 'running') return;
  const until = end?.at ?? clock.now();
  const durationMs = Math.max(0, until.getTime() - (answeredAt ?? until).getTime());
  enqueue(fail('media-failed', recording.hasStarted === true ? durationMs : 0));
});

/** Whether the event means that a call which must be recorded can't be recorded. */
export function failsRequiredRecording(
  context: CallMachineContext,
  event: Extract<CallMachineEvent, { readonly type: 'media.playback' | 'media.recording' }>,
): boolean {
  if (!settingsOf(context).required) return false;
  if (event.type === 'media.recording') {
    return event.report.kind === 'failed' && context.progress.recording.phase === 'running';
  }
  const { report } = event;
  return endsNotice(context, event) && report.kind === 'finished' && report.reason !== 'done';
}

export const hangUpUnrecorded = callSetup.enqueueActions(({ context, enqueue }) => {
  const reason = 'The call could not be recorded';
  enqueue.assign({ end: endAfterAnswer({ by: 'gateway', reason }, context.clock.now()) });
  enqueue({ type: 'sendToLine', params: { type: 'hangUp', reason } });
});
