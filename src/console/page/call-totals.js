// The line of totals above the list of calls.

import { api, gatewayNowMs } from './api.js';
import { hasDays, summaryQueryOf } from './calls-view.js';
import { html } from './dom.js';
import { whileVisible } from './events-watch.js';
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

export function CallTotals({ view, totals: { value, missing } }) {
  if (missing !== undefined) return html`<p class="totals faint">${missing}</p>`;
  if (value === undefined) return html`<p class="totals faint" aria-busy="true">…</p>`;
  const { accepted, answered, people, machines, minutes } = value.total;
  const share = accepted === 0 ? '' : ` (${Math.round((answered / accepted) * 100)} %)`;
  const facts = [
    [accepted, 'call', 'calls'],
    [answered, `answered${share}`],
    [people, 'person', 'people'],
    [machines, 'machine', 'machines'],
    [failedOf(value.total), 'failed'],
    [minutes < 10 ? Math.round(minutes * 10) / 10 : Math.round(minutes), 'minute', 'minutes'],
  ];
  return html`<div class="totals">
    ${!hasDays(view) && html`<span class="faint">Today:</span>`}
    <dl aria-label="Totals">${facts.map(([count, one, many = one]) => html`<div><dt>${count === 1 ? one : many}</dt><dd>${count.toLocaleString()}</dd></div>`)}</dl>
  </div>`;
}
