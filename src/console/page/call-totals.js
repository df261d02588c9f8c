// The line of totals above the list of calls.

import { api, gatewayNowMs } from './api.js';
import { addressOf, daysOfPeriod, hasDays, summaryQueryOf } from './calls-view.js';
import { html } from './dom.js';
import { whileVisible } from './events-watch.js';
import { ownTimeZone } from './local-days.js';
import { useReading } from './reading.js';

/** The totals change with each call, but nobody reads them each second. */
const pauseMs = 3_000;

/** Reads the totals of a view: `{ value, error, missing }`. */
export function useTotals(view) {
  const { missing, botId, query } = summaryQueryOf(view, gatewayNowMs());
  const reading = useReading({
    key: JSON.stringify([missing, botId, query]),
    load: async () => (missing === undefined ? await api.summary(query, botId) : undefined),
    pauseMs,
    again: ({ error }) => (error === undefined ? undefined : 10_000),
    watch: whileVisible,
  });
  return { ...reading, missing };
}

/** All others are failures. */
const otherOutcomes = new Set([
  ...['completed', 'transferred', 'machine', 'voicemail-left'],
  ...['cancelled', 'not-permitted'],
]);

function failedOf({ outcomes }) {
  const failures = Object.entries(outcomes).filter(([name]) => !otherOutcomes.has(name));
  return failures.reduce((sum, [, count]) => sum + count, 0);
}

/** The totals of a view without days are those of today. */
const withDays = ({ cursor: _cursor, ...view }) =>
  hasDays(view)
    ? view
    : { ...view, ...daysOfPeriod('today', ownTimeZone, gatewayNowMs()), zone: ownTimeZone };

export function CallTotals({ view, totals: { value, missing } }) {
  if (missing !== undefined) return html`<p class="totals faint">${missing}</p>`;
  if (value === undefined) return html`<p class="totals faint" aria-busy="true">…</p>`;
  const { accepted, answered, people, machines, minutes } = value.total;
  const share = accepted === 0 ? '' : ` (${Math.round((answered / accepted) * 100)} %)`;
  const facts = [
    [accepted, 'call', 'calls'],
    [answered, `answered${share}`],
    [people, 'person', 'people', 'amd_human_detected'],
    [machines, 'machine', 'machines', 'amd_machine_detected'],
    [failedOf(value.total), 'failed'],
    [minutes < 10 ? Math.round(minutes * 10) / 10 : Math.round(minutes), 'minute', 'minutes'],
  ];
  const word = ([count, one, many = one, verdict]) => {
    const name = count === 1 ? one : many;
    return verdict === undefined || count === 0
      ? name
      : html`<a href=${addressOf({ ...withDays(view), verdict })}>${name}</a>`;
  };
  return html`<div class="totals">
    ${!hasDays(view) && html`<span class="faint">Today:</span>`}
    <dl aria-label="Totals">${facts.map((fact) => html`<div><dt>${word(fact)}</dt><dd>${fact[0].toLocaleString()}</dd></div>`)}</dl>
  </div>`;
}
