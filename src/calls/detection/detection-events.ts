// Builds the event that closes a call's detection in its place. Pure.

import { amdEvent, type CallProgress } from '../life/call-events.ts';
import { closingAmdEvents } from './closing-amd-events.ts';

export function stoppedEvent(
  progress: CallProgress & { readonly answeredAt: Date },
  at: Date,
  round = 1,
) {
  const { answeredAt } = progress;
  const [, amd] = closingAmdEvents('call-ended', at.getTime() - answeredAt.getTime(), round);
  const amdEvents = [...progress.amdEvents, amd];
  const { event, ...sequences } = amdEvent({ ...progress, amdEvents }, at, amd);
  return { event, progress: { amdEvents, ...sequences } };
}
