// A view of the list of calls: its filters, as they stand in the page's address, and the requests
// to the API. The address has days rather than "yesterday", so that a colleague who opens it sees
// the same calls tomorrow. Pure.

import { beginningOfDay, dayAt, daysLater, isDay, isTimeZone, ownTimeZone } from './local-days.js';
import { filters } from './words.js';

/**
 * The filters, by their names in the address. `from` and `to` are days, the first and the last one;
 * `zone` is theirs. `result` is an outcome or, of a call that goes on or has failed, a status.
 * `cursor` continues an earlier page.
 */
const checks = {
  from: isDay,
  to: isDay,
  zone: isTimeZone,
  number: Boolean,
  bot: Boolean,
  campaign: Boolean,
  verdict: (value) => filters.verdict.includes(value),
  result: (value) => filters.outcome.includes(value) || filters.status.includes(value),
  cursor: Boolean,
};

/** Reads the part of the address after `?`. Drops what isn't a filter, because it was typed. */
export function readView(query) {
  const given = new URLSearchParams(query);
  const view = {};
  for (const [name, isValid] of Object.entries(checks)) {
    const value = given.get(name)?.trim() ?? '';
    if (value !== '' && isValid(value)) view[name] = value;
  }
  if (view.from > view.to) [view.from, view.to] = [view.to, view.from];
  if (hasDays(view)) view.zone ??= ownTimeZone;
  else delete view.zone;
  return view;
}

export const hasDays = ({ from, to }) => from !== undefined || to !== undefined;

/** Whether the view has filters, apart from its place in the list. */
export const isFiltered = ({ cursor, ...others }) => Object.keys(others).length > 0;

/** How many filters a phone folds: all but the number. Days are one filter. */
export const countOfFolded = ({
  from,
  to,
  zone: _zone,
  number: _number,
  cursor: _cursor,
  ...others
}) => Object.keys(others).length + (hasDays({ from, to }) ? 1 : 0);

/** Writes the address of a view. Absent and empty filters are left out. */
export function addressOf(view) {
  const names = Object.keys(checks).filter((name) => (view[name] ?? '') !== '');
  const query = new URLSearchParams(names.map((name) => [name, view[name]]));
  return `#/calls${names.length === 0 ? '' : `?${query}`}`;
}

/** The periods that are offered by name. Each gives the days `from` and `to`. */
export const periods = {
  today: ['Today', 0, 0],
  yesterday: ['Yesterday', -1, -1],
  week: ['Last 7 days', -6, 0],
  month: ['Last 30 days', -29, 0],
};

export function daysOfPeriod(name, zone, nowMs) {
  const [, first, last] = periods[name];
  const today = dayAt(nowMs, zone);
  return { from: daysLater(today, first), to: daysLater(today, last) };
}

/** The name of the period that has these days now: `any`, a name from `periods`, or `days`. */
export function periodOf(view, nowMs) {
  if (!hasDays(view)) return 'any';
  const isSame = (name) => {
    const { from, to } = daysOfPeriod(name, view.zone, nowMs);
    return from === view.from && to === view.to;
  };
  return Object.keys(periods).find(isSame) ?? 'days';
}

function instantsOf({ from, to, zone }) {
  const instant = (day) => new Date(beginningOfDay(day, zone)).toISOString();
  return {
    ...(from === undefined ? {} : { from: instant(from) }),
    ...(to === undefined ? {} : { to: instant(daysLater(to, 1)) }),
  };
}

/** Numbers are shown with blanks, and pasted as people write them. */
const digitsOf = (number) =>
  /^[+\d ().-]+$/.test(number) ? number.replace(/[ ().-]/g, '') : number;

function resultsOf({ verdict, result }) {
  const name = filters.outcome.includes(result) ? 'outcome' : 'status';
  return {
    ...(verdict === undefined ? {} : { verdict }),
    ...(result === undefined ? {} : { [name]: result }),
  };
}

/** @returns `botId` if the list is that of one bot, and the query of the list */
export function listQueryOf(view) {
  const { number, bot, campaign, cursor } = view;
  return {
    botId: bot,
    query: {
      ...instantsOf(view),
      ...(number === undefined ? {} : { number: digitsOf(number) }),
      ...(campaign === undefined ? {} : { campaign }),
      ...resultsOf(view),
      ...(cursor === undefined ? {} : { cursor }),
    },
  };
}

/** The gateway sums up at most a quarter of a year. */
const maxSummaryDays = 92;

/**
 * The query of the totals. They are of today unless the view has days.
 *
 * @returns `missing` if there are no such totals, in words
 */
export function summaryQueryOf(view, nowMs) {
  const { bot, number, campaign } = view;
  if (number !== undefined || campaign !== undefined)
    return { missing: 'The gateway keeps no totals by number or campaign.' };
  const zone = view.zone ?? ownTimeZone;
  const today = dayAt(nowMs, zone);
  const first = view.from ?? view.to ?? today;
  const last = view.to ?? (hasDays(view) && today > first ? today : first);
  if (Date.parse(last) - Date.parse(first) >= maxSummaryDays * 86_400_000)
    return { missing: `Totals cover at most ${maxSummaryDays} days.` };
  if (view.from === undefined && view.to !== undefined)
    return { missing: 'Totals need a first day.' };
  return {
    botId: bot,
    query: { ...instantsOf({ from: first, to: last, zone }), timeZone: zone, ...resultsOf(view) },
  };
}
