// The account's caller IDs: how their calls have fared in the last 7 days, and in the 7 days
// before. The share of blocked calls shows a number's reputation.

import { useState } from 'preact/hooks';
import { api, gatewayNowMs } from './api.js';
import { ShareCells, shareHeads, shares } from './call-shares.js';
import { html } from './dom.js';
import { HourChart } from './hour-chart.js';
import { written } from './hours.js';
import { beginningOfDay, dayAt, daysLater, ownTimeZone } from './local-days.js';
import { Empty, Title, Trouble } from './parts.js';
import { callerNumber } from './phone-numbers.js';
import { useReading } from './reading.js';

const everyMs = 60_000;
const week = 7;
/** More rows than these only on request, because each has a chart. */
const firstRows = 50;
const dayName = new Intl.DateTimeFormat(undefined, {
  ...{ day: 'numeric', month: 'short', timeZone: 'UTC' },
});

export function CallersPage() {
  return html`<p class="back"><a href="#/today">← Today</a></p>
    <div class="bar"><${Title}>Caller IDs</${Title}></div>
    <${CallerIds} />`;
}

/** Reads two weeks up to today. */
async function load() {
  const today = dayAt(gatewayNowMs(), ownTimeZone);
  const instant = (days) =>
    new Date(beginningOfDay(daysLater(today, days), ownTimeZone)).toISOString();
  const period = { from: instant(1 - 2 * week), to: instant(1), timeZone: ownTimeZone };
  const answer = await api.callers({ ...period, days: true });
  const days = Array.from({ length: 2 * week }, (_, index) =>
    daysLater(today, index + 1 - 2 * week),
  );
  return { ...answer, days };
}

export function CallerIds({ heading }) {
  const { value, error, again } = useReading({ key: 'callers', load, again: () => everyMs });
  if (value === undefined) return error ? html`<${Trouble} error=${error} again=${again} />` : null;
  return html`<section aria-label="Caller IDs">
    ${heading && html`<h2>${heading}</h2>`}
    ${value.callers.length === 0 ? html`<${Empty} title="No call in the last two weeks." />` : html`<${CallerTable} value=${value} />`}
  </section>`;
}

const none = { accepted: 0, answered: 0, short: 0, blocked: 0 };

function sumOf(list) {
  const sum = { ...none };
  for (const counts of list) for (const name of Object.keys(sum)) sum[name] += counts[name];
  return sum;
}

function CallerTable({ value: { callers, days, more } }) {
  const [isWhole, setWhole] = useState(false);
  const rows = isWhole ? callers : callers.slice(0, firstRows);
  return html`<table class="stack trends" aria-label="Caller IDs">
    <thead><tr><th scope="col">Caller ID</th><th scope="col" class="number">Calls</th><th scope="col" class="number">Week before</th>${shareHeads()}<th scope="col">Blocked by day</th></tr></thead>
    <tbody>${rows.map((row) => html`<${CallerRow} key=${row.caller} row=${row} days=${days} />`)}</tbody></table>
    ${rows.length < callers.length && html`<p><button type="button" onClick=${() => setWhole(true)}>Show all ${callers.length}</button></p>`}
    <p class="faint">The last 7 days, with the differences to the 7 days before. The caller IDs with the most blocked calls come first.${more ? ' More caller IDs have calls.' : ''}</p>`;
}

const [, , blocked] = shares;

function CallerRow({ row: { caller, days: known }, days }) {
  const byDay = new Map(known.map((counts) => [counts.day, counts]));
  const counts = days.map((day) => byDay.get(day) ?? none);
  const [before, now] = [sumOf(counts.slice(0, week)), sumOf(counts.slice(week))];
  return html`<tr>
    <th scope="row" class="broken">${callerNumber(caller)}</th>
    <td class="number" data-name="Calls">${written(now.accepted)}</td>
    <td class="number faint" data-name="Week before">${written(before.accepted)}</td>
    <${ShareCells} counts=${now} before=${before} />
    <${BlockedByDay} caller=${caller} counts=${counts} days=${days} />
  </tr>`;
}

function BlockedByDay({ caller, counts, days }) {
  const names = days.map((day) => dayName.format(Date.parse(day)));
  const values = counts.map(blocked.of);
  const stated = names
    .map((name, index) => `${name} ${written(values[index], true)}`)
    .filter((_, index) => values[index] !== undefined);
  return html`<td class="trend" data-name="Blocked by day"><${HourChart} values=${values} names=${names} isShare=${true} isClose=${true} label=${`Blocked calls of ${callerNumber(caller)} by day: ${stated.join(', ')}`} /></td>`;
}
