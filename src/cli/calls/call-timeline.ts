// A call's events in their order, as they become known: SQL has the answer and the end at once, the events between them come
// through the stream, a moment later.

import type { TimelineEntry } from '../../interactions/call-queries.ts';

/** An event that is missing for longer is late by a fault, or lost with its node: what follows it is shown without it. */
const longestGapMs = 5_000;

export type CallTimeline = {
  /** What can be shown now. The timeline is in order of its sequence, and grows. */
  take(timeline: readonly TimelineEntry[], nowMs: number): readonly TimelineEntry[];
  /** For an event that comes before others which are known. Never for long. */
  readonly waiting: boolean;
};

export function createCallTimeline(): CallTimeline {
  const shown = new Set<string>();
  let nextSequence = 1;
  let gapSinceMs: number | undefined;

  /** How many of these can be shown. */
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

/** Those that follow without a gap; a late one, which was waited for in vain, leaves none. */
function countInOrder(fresh: readonly TimelineEntry[], nextSequence: number): number {
  let next = nextSequence;
  for (const [index, { eventSequence }] of fresh.entries()) {
    if (eventSequence > next) return index;
    next = Math.max(next, eventSequence + 1);
  }
  return fresh.length;
}
