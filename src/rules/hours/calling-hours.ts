// When a person may be called: weekly windows and closed days in local time, in one or several time
// zones at once. Each minute is judged by what the clock on the wall shows. When clocks are put
// back, a window within the repeated hour therefore opens twice. When they are put forward, a
// window within the skipped hour doesn't open at all that day.

import { LRUCache } from 'lru-cache';
import { offsetPeriodAt } from './zone-offsets.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** How far ahead an opening is looked for. Every yearly date occurs within it. */
const horizonMs = 370 * dayMs;
/** How long the answer that there is no opening is kept. */
const neverOpenMs = hourMs;

/** A window of one day, in minutes since midnight. `untilMinute` lies outside. */
export type DailyWindow = { readonly fromMinute: number; readonly untilMinute: number };

export type WeeklyHours = {
  /** The windows of each day of the week, from Sunday. They may overlap. */
  readonly windows: readonly (readonly DailyWindow[])[];
  /** Local dates (`YYYY-MM-DD`) without any window. */
  readonly closed: readonly string[];
};

export type CallingHours = {
  /**
   * Returns the first moment, from `nowMs` on, at which all the zones are within the hours. That's
   * `nowMs` itself if they are within them now.
   *
   * @param zones IANA names, at least one
   * @returns undefined if there is no such moment within 370 days
   */
  opening(zones: readonly string[], nowMs: number): number | undefined;
  /**
   * Returns the first moment after `nowMs` at which one of the zones is outside the hours.
   *
   * @param zones IANA names, all within the hours at `nowMs`
   * @returns undefined if there is no such moment within a day
   */
  closing(zones: readonly string[], nowMs: number): number | undefined;
};

/** An answer that is the same for every moment from `fromMs` until before `untilMs`. */
type KnownAnswer = {
  readonly fromMs: number;
  readonly untilMs: number;
  /** Undefined if there is no opening. */
  readonly openingMs: number | 'now' | undefined;
};

type KnownClosing = {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly closingMs: number | undefined;
};

/** About as many lists of zones as numbers have. */
const maxKnownAnswers = 400;

export function createCallingHours(hours: WeeklyHours): CallingHours {
  const week = hours.windows.map(mergedIntervals);
  const closedDays = new Set(hours.closed.map((date) => Date.parse(`${date}T00:00:00Z`) / dayMs));
  const intervalsOf = (localDay: number): readonly Interval[] =>
    // 1970 began on a Thursday, the fifth day of the week.
    closedDays.has(localDay) ? [] : (week[(((localDay + 4) % 7) + 7) % 7] ?? []);
  // Most calls of a list are to the same few zones, and at night all of them wait for one moment.
  const known = new LRUCache<string, KnownAnswer>({ max: maxKnownAnswers });
  const closings = new LRUCache<string, KnownClosing>({ max: maxKnownAnswers });
  return {
    opening(zones, nowMs) {
      const key = zones.join();
      let answer = known.get(key);
      if (answer === undefined || nowMs < answer.fromMs || nowMs >= answer.untilMs) {
        answer = answerAt(intervalsOf, zones, nowMs);
        known.set(key, answer);
      }
      return answer.openingMs === 'now' ? nowMs : answer.openingMs;
    },
    closing(zones, nowMs) {
      const key = zones.join();
      let closing = closings.get(key);
      if (closing === undefined || nowMs < closing.fromMs || nowMs >= closing.untilMs) {
        closing = closingAt(intervalsOf, zones, nowMs);
        closings.set(key, closing);
      }
      return closing.closingMs;
    },
  };
}

/** Milliseconds since local midnight. */
type Interval = { readonly fromMs: number; readonly untilMs: number };
type IntervalsOf = (localDay: number) => readonly Interval[];

function mergedIntervals(windows: readonly DailyWindow[]): readonly Interval[] {
  const merged: Interval[] = [];
  for (const window of windows.toSorted((a, b) => a.fromMinute - b.fromMinute)) {
    const [fromMs, untilMs] = [window.fromMinute * minuteMs, window.untilMinute * minuteMs];
    const last = merged.at(-1);
    if (last === undefined || last.untilMs < fromMs) merged.push({ fromMs, untilMs });
    else merged[merged.length - 1] = { ...last, untilMs: Math.max(last.untilMs, untilMs) };
  }
  return merged;
}

function answerAt(intervalsOf: IntervalsOf, zones: readonly string[], nowMs: number): KnownAnswer {
  const limitMs = nowMs + horizonMs;
  let openingMs = nowMs;
  let untilMs = limitMs;
  // Each zone in turn moves the moment to its own next opening, until a round leaves it in place.
  for (let settled = 0, index = 0; settled < zones.length; index += 1) {
    const zone = zones[index % zones.length] ?? 'UTC';
    const open = nextOpen(intervalsOf, zone, openingMs, limitMs);
    if (open === undefined) {
      return { fromMs: nowMs, untilMs: nowMs + neverOpenMs, openingMs: undefined };
    }
    settled = open.fromMs === openingMs ? settled + 1 : 1;
    untilMs = open.fromMs === openingMs ? Math.min(untilMs, open.untilMs) : open.untilMs;
    openingMs = open.fromMs;
  }
  return openingMs === nowMs
    ? { fromMs: nowMs, untilMs, openingMs: 'now' }
    : { fromMs: nowMs, untilMs: openingMs, openingMs };
}

/** Hours that last until midnight may continue after it, so each end is looked at once more. */
function closingAt(
  intervalsOf: IntervalsOf,
  zones: readonly string[],
  fromMs: number,
): KnownClosing {
  for (let atMs = fromMs; atMs < fromMs + dayMs; ) {
    const { openingMs, untilMs } = answerAt(intervalsOf, zones, atMs);
    if (openingMs !== 'now') return { fromMs, untilMs: atMs, closingMs: atMs };
    atMs = untilMs;
  }
  return { fromMs, untilMs: fromMs + neverOpenMs, closingMs: undefined };
}

/**
 * Returns the zone's first open stretch that ends after `fromMs`, from `fromMs` on. It's cut off
 * where the zone's offset changes.
 */
function nextOpen(
  intervalsOf: IntervalsOf,
  zone: string,
  fromMs: number,
  limitMs: number,
): Interval | undefined {
  let atMs = fromMs;
  while (atMs < limitMs) {
    const { offsetMs, untilMs } = offsetPeriodAt(zone, atMs);
    const open = firstLocal(intervalsOf, atMs + offsetMs, untilMs + offsetMs);
    if (open !== undefined) {
      if (open.fromMs - offsetMs >= limitMs) return undefined;
      return {
        fromMs: open.fromMs - offsetMs,
        untilMs: Math.min(open.untilMs - offsetMs, untilMs),
      };
    }
    atMs = untilMs;
  }
  return undefined;
}

/** Like `nextOpen`, in local time, while the offset stays the same. */
function firstLocal(
  intervalsOf: IntervalsOf,
  fromMs: number,
  limitMs: number,
): Interval | undefined {
  for (let day = Math.floor(fromMs / dayMs); day * dayMs < limitMs; day += 1) {
    for (const interval of intervalsOf(day)) {
      const start = Math.max(fromMs, day * dayMs + interval.fromMs);
      const end = day * dayMs + interval.untilMs;
      if (start < end) return start < limitMs ? { fromMs: start, untilMs: end } : undefined;
    }
  }
  return undefined;
}
