// Puts a growing timeline's events into order. This is necessary because a call's answer and end
// are written to the database immediately, but other events reach the timeline through the stream,
// a moment later.

import type { TimelineEntry } from '../../interactions/call-queries.ts';

/**
 * A missing event holds back later events for this long. If the event is still missing by then, a
 * fault has delayed it, or the event was lost along with its node.
 */
const maxGapMs = 5_000;

export type CallTimeline = {
  /**
   * Returns the new entries that can be shown now. `timeline` is the complete timeline so far,
   * ordered by sequence number.
   */
  take(timeline: readonly TimelineEntry[], nowMs: number): readonly TimelineEntry[];
  /**
   * True while known entries are waiting for an earlier event that is missing. Lasts at most
   * `maxGapMs`.
   */
  readonly waiting: boolean;
};

export function createCallTimeline(): CallTimeline {
  const shown = new Set<string>();
  let nextSequence = 1;
  let gapSinceMs: number | undefined;

  /** Counts the new entries that can be shown now. */
  function countReady(fresh: readonly TimelineEntry[], nowMs: number): number {
    const count = countInOrder(fresh, nextSequence);
    gapSinceMs = count === fresh.length ? undefined : (gapSinceMs ?? nowMs);
    if (gapSinceMs === undefined || nowMs - gapSinceMs < maxGapMs) return count;
    gapSinceMs = undefined;
    return fresh.length;
  }

  return {
    get waiting() {
      return gapSinceMs !== undefined;
    },
    take(timeline, nowMs) {
      const fresh = timeline.filter(({ eventId }) => !shown.has(eventId));
      const ready = fresh.slice(0, countReady(fresh, nowMs));
      for (const { eventId, eventSequence } of ready) {
        shown.add(eventId);
        nextSequence = Math.max(nextSequence, eventSequence + 1);
      }
      return ready;
    },
  };
}

/**
 * Counts the entries before the first gap. An entry below `nextSequence` isn't a gap but a late
 * event, i.e. one that arrived after we had already shown later events.
 */
function countInOrder(fresh: readonly TimelineEntry[], nextSequence: number): number {
  let next = nextSequence;
  for (const [index, { eventSequence }] of fresh.entries()) {
    if (eventSequence > next) return index;
    next = Math.max(next, eventSequence + 1);
  }
  return fresh.length;
}
