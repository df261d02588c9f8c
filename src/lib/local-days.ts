// Days in a time zone. A day begins at the first moment at which the zone's calendar shows it. That
// isn't always midnight: in some zones the clock skips midnight when daylight saving time begins.

/** `YYYY-MM-DD` */
export type LocalDay = string;

const dayMs = 86_400_000;
const secondMs = 1_000;
/** Zones are at most 14 hours ahead of UTC, or 12 behind it. */
const maxOffsetMs = 15 * 3_600_000;

/** Whether the text is an IANA time zone, e.g. `Europe/Berlin`. */
export function isTimeZone(text: string): boolean {
  // Newer runtimes also accept offsets such as `+01:00`, which have no daylight saving time.
  if (!/^[A-Za-z]/.test(text)) return false;
  try {
    calendarOf(text);
    return true;
  } catch {
    return false;
  }
}

/** Returns the day that a zone's calendar shows at a time. */
export function dayAt(time: Date, timeZone: string): LocalDay {
  return dayShown(calendarOf(timeZone), time);
}

/** Returns the moment at which a day begins. */
export function beginningOfDay(day: LocalDay, timeZone: string): Date {
  const calendar = calendarOf(timeZone);
  const midnightMs = Date.parse(`${day}T00:00:00.000Z`);
  // The day has begun at `after`, but not yet at `before`.
  let before = (midnightMs - maxOffsetMs) / secondMs;
  let after = (midnightMs + maxOffsetMs) / secondMs;
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (dayShown(calendar, new Date(middle * secondMs)) >= day) after = middle;
    else before = middle;
  }
  return new Date(after * secondMs);
}

export function dayAfter(day: LocalDay): LocalDay {
  return new Date(Date.parse(`${day}T00:00:00.000Z`) + dayMs).toISOString().slice(0, 10);
}

/** Returns the days that a zone's calendar shows from `from` until before `to`. */
export function daysIn(from: Date, to: Date, timeZone: string): readonly LocalDay[] {
  const days: LocalDay[] = [];
  const last = dayAt(new Date(to.getTime() - 1), timeZone);
  for (let day = dayAt(from, timeZone); day <= last; day = dayAfter(day)) days.push(day);
  return days;
}

/** @throws RangeError if there is no such zone */
function calendarOf(timeZone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('en-US', {
    ...{ timeZone, calendar: 'gregory', numberingSystem: 'latn' },
    ...{ year: 'numeric', month: '2-digit', day: '2-digit' },
  });
}

function dayShown(calendar: Intl.DateTimeFormat, time: Date): LocalDay {
  const parts = calendar.formatToParts(time);
  const shown = (type: 'year' | 'month' | 'day'): string =>
    parts.find((part) => part.type === type)?.value ?? '';
  return `${shown('year')}-${shown('month')}-${shown('day')}`;
}
