// The page of the gateway's trunks: their state now, and how their calls have fared in the last 24
// hours, for all accounts. Below, the account's own caller IDs.

import { api } from './api.js';
import { ShareCells, shareHeads, shares } from './call-shares.js';
import { CallerIds } from './callers-page.js';
import { html } from './dom.js';
import { HourChart } from './hour-chart.js';
import { written } from './hours.js';
import { Empty, Title, Trouble } from './parts.js';
import { useReading } from './reading.js';

const everyMs = 3_000;
const totalsEveryMs = 60_000;
const hourMs = 3_600_000;
const clock = new Intl.DateTimeFormat(undefined, {
  ...{ hour: '2-digit', minute: '2-digit', hour12: false },
});

export function TrunksPage() {
  const { value, error, again } = useReading({
    key: 'trunks',
    load: api.trunks,
    again: () => everyMs,
  });
  return html`<div class="bar"><${Title}>Trunks</${Title}></div>
    ${error && html`<${Trouble} error=${error} again=${again} />`}
    ${value?.trunks.length === 0 && html`<${Empty} title="No trunks."><p>Define a carrier in <code>sip-config/trunks.yaml</code>.</p></${Empty}>`}
    ${
      value?.trunks.length > 0 &&
      html`<table class="stack" aria-label="Trunks">
      <thead><tr><th scope="col">Trunk</th><th scope="col">Gateways</th><th scope="col" class="number">Calls</th><th scope="col" class="number">Waiting</th><th scope="col" class="number">Calls per second</th></tr></thead>
      <tbody>${value.trunks.map(
        (trunk) => html`<tr>
          <th scope="row">${trunk.name}</th>
          <td data-name="Gateways"><ul class="plain">${trunk.gateways.map(({ name, isUp }) => html`<li><span class=${`status ${isUp ? 'good' : 'bad'}`}>${isUp ? 'up' : 'down'}</span> ${name}</li>`)}</ul></td>
          <td class="number" data-name="Calls">${isCounted(trunk) ? trunk.onIt : html`<span class="faint">not counted</span>`}${trunk.maxConcurrentCalls === undefined ? '' : html`<span class="faint"> of ${trunk.maxConcurrentCalls}</span>`}</td>
          <td class="number" data-name="Waiting">${trunk.waiting}</td>
          <td class="number" data-name="Calls per second">${trunk.callsPerSecond ?? html`<span class="faint">no limit</span>`}</td>
        </tr>`,
      )}</tbody></table>
      <p class="faint">Calls are counted across all nodes, and only on trunks that have a limit.</p>`
    }
    <${LastDay} />
    <${CallerIds} heading="Caller IDs of your account" />`;
}

/** Calls only occupy slots on trunks that have a limit. */
const isCounted = ({ callsPerSecond, maxConcurrentCalls, onIt }) =>
  callsPerSecond !== undefined || maxConcurrentCalls !== undefined || onIt > 0;

function LastDay() {
  const { value, error, again } = useReading({
    key: 'trunk totals',
    load: api.trunkTotals,
    again: () => totalsEveryMs,
  });
  if (value === undefined) return error ? html`<${Trouble} error=${error} again=${again} />` : null;
  return html`<section aria-labelledby="last-day">
    <h2 id="last-day">Last 24 hours</h2>
    ${value.trunks.length === 0 ? html`<p class="faint">No call has ended in the last 24 hours.</p>` : html`<${TotalsTable} totals=${value} />`}
  </section>`;
}

function TotalsTable({ totals: { from, trunks } }) {
  const names = Array.from({ length: 24 }, (_, hour) =>
    clock.format(Date.parse(from) + hour * hourMs),
  );
  return html`<table class="stack trends" aria-labelledby="last-day">
      <thead><tr><th scope="col">Trunk</th><th scope="col" class="number">Calls</th>${shareHeads()}<th scope="col">Calls by hour</th><th scope="col">Answer rate by hour</th></tr></thead>
      <tbody>${trunks.map(
        ({ trunk, total, before, hours }) => html`<tr key=${trunk}>
        <th scope="row" class="broken">${trunk === '' ? html`<span class="faint">no trunk</span>` : trunk}</th>
        <td class="number" data-name="Calls">${written(total.accepted)}</td>
        <${ShareCells} counts=${total} before=${before} />
        <${Trend} name="Calls" trunk=${trunk} hours=${hours} names=${names} of=${({ accepted }) => accepted} />
        <${Trend} name="Answer rate" isShare=${true} trunk=${trunk} hours=${hours} names=${names} of=${shares[0].of} />
      </tr>`,
      )}</tbody></table>
    <p class="faint">Calls of all accounts that have ended. The difference is to the same hours a week before. A short call is over within 6 s of its answer. Blocked: 603+ and 608.</p>`;
}

/** Screen readers read the values of the hours that have any. */
function Trend({ name, trunk, hours, names, of, isShare }) {
  const values = hours.map(of);
  const stated = names
    .map((hour, index) => `${hour} ${written(values[index], isShare)}`)
    .filter((_, index) => values[index]);
  const label = `${name} of ${trunk || 'calls without a trunk'} by hour: ${stated.join(', ') || 'none'}`;
  return html`<td class="trend" data-name=${`${name} by hour`}><${HourChart} values=${values} names=${names} isShare=${isShare} label=${label} /></td>`;
}
