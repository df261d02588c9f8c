// Sums up a day by the hours of the browser's clock, and compares it with another day. The gateway
// counts by quarters of an hour, and in every time zone an hour begins on one. Pure.

const quarterMs = 900_000;

/** The number of calls with an outcome. */
const withOutcome = (name) => (counts) => counts.outcomes[name] ?? 0;

/** These calls never reached a carrier, so nobody could answer them. */
const undialled = ['not-permitted', 'expired'];

/** Calls that somebody could have answered: those that have ended, or were answered. */
export function attemptsOf({ answered, outcomes }) {
  const ended = Object.entries(outcomes).filter(([name]) => !undialled.includes(name));
  return Math.max(
    answered,
    ended.reduce((sum, [, calls]) => sum + calls, 0),
  );
}

export const shareOf = (part, whole) => (whole === 0 ? undefined : part / whole);

/** What the page shows of a day: a value of the counts, which is undefined if it means nothing. */
export const figures = [
  { id: 'calls', name: 'Calls', of: ({ accepted }) => accepted, view: {} },
  {
    id: 'rate',
    name: 'Answer rate',
    isShare: true,
    of: (counts) => shareOf(counts.answered, attemptsOf(counts)),
  },
  {
    id: 'people',
    name: 'People',
    of: ({ people }) => people,
    view: { verdict: 'amd_human_detected' },
  },
  {
    id: 'machines',
    name: 'Machines',
    of: ({ machines }) => machines,
    view: { verdict: 'amd_machine_detected' },
  },
  {
    id: 'messages',
    name: 'Messages left',
    of: withOutcome('voicemail-left'),
    view: { result: 'voicemail-left' },
  },
  {
    id: 'transfers',
    name: 'Transfers',
    of: withOutcome('transferred'),
    view: { result: 'transferred' },
  },
];

/** Adds up counts. Only of the members that the figures need. */
export function sumOf(list) {
  const sum = { accepted: 0, answered: 0, people: 0, machines: 0, outcomes: {} };
  for (const counts of list) {
    for (const name of ['accepted', 'answered', 'people', 'machines']) sum[name] += counts[name];
    for (const [name, calls] of Object.entries(counts.outcomes))
      sum.outcomes[name] = (sum.outcomes[name] ?? 0) + calls;
  }
  return sum;
}

/**
 * Returns the counts of the 24 hours that a clock shows. An hour that the clock shows twice has the
 * calls of both, and one that it skips has none.
 */
export function hoursOf(quarters) {
  const byHour = Array.from({ length: 24 }, () => []);
  for (const quarter of quarters) byHour[new Date(quarter.from).getHours()].push(quarter);
  return byHour.map(sumOf);
}

const minuteOfDay = (date) => date.getHours() * 60 + date.getMinutes();

/** Returns the quarters of another day up to the time that the clock shows now. */
export const untilNow = (quarters, nowMs) =>
  quarters.filter(({ from }) => minuteOfDay(new Date(from)) <= minuteOfDay(new Date(nowMs)));

/** The end of the current quarter of an hour. */
export const endOfQuarter = (nowMs) => (Math.floor(nowMs / quarterMs) + 1) * quarterMs;

/** The period of the day that the clock shows, or of the same day `weeks` before. */
export function dayOf(nowMs, weeks = 0) {
  const now = new Date(nowMs);
  const midnight = (days) =>
    new Date(now.getFullYear(), now.getMonth(), now.getDate() - 7 * weeks + days).toISOString();
  return { from: midnight(0), to: midnight(1) };
}

/**
 * Says how much a value differs from an earlier one, e.g. `+12 %`. Shares differ by percentage
 * points.
 *
 * @returns undefined if nothing can be said
 */
export function change(value, before, isShare = false) {
  if (value === undefined || before === undefined) return undefined;
  if (!isShare && before === 0) return undefined;
  const percent = (isShare ? value - before : value / before - 1) * 100;
  const size = isShare ? Math.abs(percent).toFixed(1) : String(Math.round(Math.abs(percent)));
  if (Number(size) === 0) return 'no change';
  return `${percent > 0 ? '+' : '−'}${size} ${isShare ? 'points' : '%'}`;
}

export const written = (value, isShare = false) => {
  if (value === undefined) return '–';
  return isShare ? `${Math.round(value * 100)} %` : value.toLocaleString();
};
