// What closes a call's detection that does not close itself: its worker died, its call was lost, it threw. The process that finds that
// out states the same two events, so that the grammar holds: an error, and the stop that ends every detection.

import type { AmdEvent } from './amd-event.ts';

/** Where detection did not fail, but its call ended or was lost, only the stop is owed. */
export function closingAmdEvents(
  reason: string,
  elapsedMs: number,
  round = 1,
): readonly [error: AmdEvent, stopped: AmdEvent] {
  // Two clocks may have been read: the second never says that it was before the answer.
  const evidence = {
    reason,
    elapsedMs: Math.max(0, Math.round(elapsedMs)),
    ...(round === 1 ? {} : { round }),
  };
  return [
    { event: 'amd_error', ...evidence },
    { event: 'amd_stopped', ...evidence },
  ];
}
