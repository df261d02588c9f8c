// Playback effects: emit the start and the end of each sound.

import { assertEvent } from 'xstate';
import type { CallEvent } from '../contract/call-event.ts';
import {
  type CallProgress,
  type NextEvent,
  nextEvent,
  noLaterThanEnd,
} from '../life/call-events.ts';
import { callSetup, changing } from '../life/call-setup.ts';
import { evidenceAfter } from '../rules/evidence.ts';
import { afterPlayback, type PlaybackReport } from './playback.ts';

export const emitPlayback = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'media.playback');
  const at = noLaterThanEnd(context, event.at);
  const { event: emitted, ...sequences } = playbackEvent(context.progress, at, event.report);
  const sha256 = event.report.kind === 'started' ? event.report.sha256 : undefined;
  enqueue.assign(
    changing('progress', {
      playback: afterPlayback(context.progress.playback, emitted),
      evidence: evidenceAfter(context.progress.evidence, emitted, sha256),
      ...sequences,
    }),
  );
  enqueue({ type: 'append', params: { events: [emitted] } });
});

/** Emits the end of each sound whose end the media worker didn't report in time. */
export const emitPlaybackFailed = callSetup.enqueueActions(({ context, enqueue }) => {
  const at = context.end?.at ?? context.clock.now();
  const events: CallEvent[] = [];
  let { progress } = context;
  for (const started of progress.playback.playing) {
    const { playbackId, source, sound } = started;
    const end = { kind: 'finished', reason: 'failed', playedMs: 0 } as const;
    const report: PlaybackReport = { playbackId, source, sound, ...end };
    const { event, ...sequences } = playbackEvent(progress, at, report);
    progress = { ...progress, ...sequences, playback: afterPlayback(progress.playback, event) };
    events.push(event);
  }
  enqueue.assign({ progress });
  if (events.length > 0) enqueue({ type: 'append', params: { events } });
});

function playbackEvent(progress: CallProgress, at: Date, report: PlaybackReport): NextEvent {
  const members = membersOf(report);
  // Events that result from a command always carry its id.
  const command = members.source === 'command' ? { commandId: members.playbackId } : {};
  return nextEvent(progress, `playback-${report.kind}`, at, { ...command, ...members });
}

/** Returns the report's members, apart from the hash, which only the call's record needs. */
function membersOf(report: PlaybackReport) {
  const { kind: _kind, ...members } = report;
  if (!('sha256' in members)) return members;
  const { sha256: _sha256, ...others } = members;
  return others;
}
