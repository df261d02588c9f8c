// Days in a time zone, as `src/lib/local-days.ts` has them on the gateway. A day begins at the
// first moment at which the zone's calendar shows it. That isn't always midnight: in some zones the
// clock skips midnight when daylight saving time begins.

const dayMs = 86_400_000;
const secondMs = 1_000;
/** Zones are at most 14 hours ahead of UTC, or 12 behind it. */
const maxOffsetMs = 15 * 3_600_000;

export const ownTimeZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

export function isTimeZone(text) {
  try {
    return /^[A-Za-z]/.test(text) && calendarOf(text) !== undefined;
  } catch {
    return false;
  }
}

/** Whether the text is a day as `YYYY-MM-DD`. */
export function isDay(text) {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return false;
  const ms = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text);
}

/** Returns the day that a zone's calendar shows at a time. */
export const dayAt = (ms, timeZone) => dayShown(calendarOf(timeZone), ms);

export const daysLater = (day, days) =>
  new Date(Date.parse(`${day}T00:00:00Z`) + days * dayMs).toISOString().slice(0, 10);

/** Returns the moment at which a day begins, in milliseconds. */
export function beginningOfDay(day, timeZone) {
  const calendar = calendarOf(timeZone);
  const midnightMs = Date.parse(`${day}T00:00:00Z`);
  // The day has begun at `after`, but not yet at `before`.
  let before = (midnightMs - maxOffsetMs) / secondMs;
  let after = (midnightMs + maxOffsetMs) / secondMs;
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (dayShown(calendar, middle * secondMs) >= day) after = middle;
    else before = middle;
  }
  return after * secondMs;
}

/** @throws RangeError if there is no such zone */
function calendarOf(timeZone) {
  return new Intl.DateTimeFormat('en-US', {
    ...{ timeZone, calendar: 'gregory', numberingSystem: 'latn' },
    ...{ year: 'numeric', month: '2-digit', day: '2-digit' },
  });
}

function dayShown(calendar, ms) {
  const parts = calendar.formatToParts(ms);
  const shown = (type) => parts.find((part) => part.type === type)?.value ?? '';
  return `${shown('year')}-${shown('month')}-${shown('day')}`;
}
