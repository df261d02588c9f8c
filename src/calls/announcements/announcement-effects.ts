// Announcement effects: silence everybody else, play the announcement, and hang up after it.

import { endAfterAnswer } from '../life/call-outcome.ts';
import { type CallMachineEvent, callSetup, sendToMedia } from '../life/call-setup.ts';
import { endStream } from '../stream/stream-effects.ts';
import type { AnnouncementKind } from './announcements.ts';

/**
 * Plays an announcement as the last thing that the person hears. Nobody may talk over it, so the
 * bot leaves, and a transfer that hasn't been answered is withdrawn.
 */
export function announce(announcement: AnnouncementKind) {
  return callSetup.enqueueActions(({ context, enqueue }) => {
    if (context.announcing !== undefined || context.end !== undefined) return;
    enqueue.assign({ announcing: announcement });
    enqueue(endStream('announcement'));
    enqueue({ type: 'sendToLine', params: { type: 'withdrawTransfer' } });
    enqueue(sendToMedia({ kind: 'stopPlayback', isEnd: true }));
    enqueue({ type: 'sendToLine', params: { type: 'announce', announcement } });
  });
}

/** Whether the event is the end of the announcement, and therefore ends the call. */
export function endsAnnouncement(
  event: Extract<CallMachineEvent, { readonly type: 'media.playback' }>,
): boolean {
  return event.report.kind === 'finished' && event.report.source === 'announcement';
}

export const hangUpAfterAnnouncement = callSetup.enqueueActions(({ context, enqueue }) => {
  enqueue.assign({ end: endAfterAnswer({ by: 'application' }, context.clock.now()) });
  enqueue({ type: 'sendToLine', params: { type: 'hangUp', reason: 'announcement' } });
});
