// Effects of plan reports: record which plan has the call, and hang up when a plan ends it.

import { assertEvent } from 'xstate';
import { endOfMachine, endOfVoicemail } from '../life/call-outcome.ts';
import { callSetup } from '../life/call-setup.ts';

export const notePlan = callSetup.assign(({ context: { plans }, event }) => {
  assertEvent(event, 'media.plan');
  const { report } = event;
  if (report.kind === 'held') return { plans: { ...plans, heldBy: report.by } };
  if (report.kind === 'done') return { plans: { ...plans, hasPlans: false } };
  // `armed`: a new round of detection listens to the person or machine behind the call screening.
  if (report.kind !== 'armed') return {};
  return { detection: 'running' as const, plans: { ...plans, round: report.round } };
});

/** Hangs up after a plan left its message, or found that it can't leave one on this machine. */
export const hangUpByPlan = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'media.plan');
  const at = context.clock.now();
  const hasLeftMessage = event.report.kind === 'over' && event.report.outcome === 'voicemail-left';
  enqueue.assign({ end: hasLeftMessage ? endOfVoicemail(at) : endOfMachine(at) });
  enqueue({ type: 'sendToLine', params: { type: 'hangUp', reason: 'voicemail' } });
});
