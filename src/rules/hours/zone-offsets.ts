// UTC offsets of time zones, from the runtime's own time zone data (`Intl`). A formatter takes
// 0.1 ms to create and 1 µs for each question, so the offsets of two months are found at once and
// kept. Everything else about local time is then arithmetic.

import { LRUCache } from 'lru-cache';

/** A period in which a zone's clock runs `offsetMs` ahead of UTC. */
export type OffsetPeriod = {
  readonly offsetMs: number;
  /** The first moment that this period may not contain. */
  readonly untilMs: number;
};

const secondMs = 1_000;
const dayMs = 86_400_000;
const spanMs = 64 * dayMs;

/** Every zone that numbers lie in, for one span, or a few zones for the year ahead. */
const maxSpans = 2_000;
const spans = new LRUCache<string, readonly OffsetPeriod[]>({ max: maxSpans });

/**
 * Returns the period at a time. At the end of a span, a period may end although the offset doesn't
 * change.
 *
 * @throws RangeError if there is no such zone
 */
export function offsetPeriodAt(zone: string, atMs: number): OffsetPeriod {
  const span = Math.floor(atMs / spanMs);
  const key = `${zone} ${span}`;
  let periods = spans.get(key);
  if (periods === undefined) {
    periods = periodsOf(zone, span * spanMs);
    spans.set(key, periods);
  }
  const period = periods.find(({ untilMs }) => atMs < untilMs);
  if (period === undefined) throw new Error('a span ends before its last moment');
  return period;
}

/** The clock changes at most once a day: no zone has ever changed it back within a month. */
function periodsOf(zone: string, fromMs: number): readonly OffsetPeriod[] {
  const offsetAt = offsetReader(zone);
  const periods: OffsetPeriod[] = [];
  let offsetMs = offsetAt(fromMs);
  for (let day = fromMs + dayMs; day <= fromMs + spanMs; day += dayMs) {
    const next = offsetAt(day);
    if (next === offsetMs) continue;
    periods.push({ offsetMs, untilMs: changeBetween(day - dayMs, day, offsetMs, offsetAt) });
    offsetMs = next;
  }
  return [...periods, { offsetMs, untilMs: fromMs + spanMs }];
}

/** Returns the first second after `beforeMs` at which the offset is no longer `offsetMs`. */
function changeBetween(
  beforeMs: number,
  afterMs: number,
  offsetMs: number,
  offsetAt: (atMs: number) => number,
): number {
  let [before, after] = [beforeMs / secondMs, afterMs / secondMs];
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (offsetAt(middle * secondMs) === offsetMs) before = middle;
    else after = middle;
  }
  return after * secondMs;
}

function offsetReader(timeZone: string): (atMs: number) => number {
  const format = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' });
  return (atMs) => {
    // E.g. `11/24/2026, GMT-03:30`, or only `GMT` for an offset of zero.
    const [, sign, hours, minutes, seconds = '0'] =
      /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/.exec(format.format(atMs)) ?? [];
    if (hours === undefined) return 0;
    const offsetS = Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds);
    return offsetS * secondMs * (sign === '-' ? -1 : 1);
  };
}
