// Puts the events of a growing timeline into order. SQL has the answer and the end of a call
// immediately. Other events reach the timeline through the stream, a moment later.

import type { TimelineEntry } from '../../interactions/call-queries.ts';

/**
 * How long a missing event holds back later events. If it stays missing for longer, a fault has
 * delayed it, or it was lost with its node.
 */
const longestGapMs = 5_000;

export type CallTimeline = {
  /**
   * Returns the new entries that can be shown now. `timeline` is the whole timeline so far, ordered
   * by sequence.
   */
  take(timeline: readonly TimelineEntry[], nowMs: number): readonly TimelineEntry[];
  /** True while known entries wait for a missing earlier event, at most `longestGapMs`. */
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
    if (gapSinceMs === undefined || nowMs - gapSinceMs < longestGapMs) return count;
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
 * Counts the entries before the first gap. An entry below `nextSequence` is not a gap: it is a late
 * event, and later events have already been shown.
 */
function countInOrder(fresh: readonly TimelineEntry[], nextSequence: number): number {
  let next = nextSequence;
  for (const [index, { eventSequence }] of fresh.entries()) {
    if (eventSequence > next) return index;
    next = Math.max(next, eventSequence + 1);
  }
  return fresh.length;
}
