// The account's caller IDs: how their calls have fared in the last 24 hours, and a week before. The
// share of blocked calls shows a number's reputation.

import { api, gatewayNowMs } from './api.js';
import { ShareCells, shareHeads } from './call-shares.js';
import { html } from './dom.js';
import { endOfQuarter, written } from './hours.js';
import { Empty, Title, Trouble } from './parts.js';
import { useReading } from './reading.js';

const everyMs = 60_000;
const dayMs = 86_400_000;

export function CallersPage() {
  return html`<p class="back"><a href="#/today">← Today</a></p>
    <div class="bar"><${Title}>Caller IDs</${Title}></div>
    <${CallerIds} />`;
}

const periodBefore = (endMs, days) => ({
  from: new Date(endMs - (days + 1) * dayMs).toISOString(),
  to: new Date(endMs - days * dayMs).toISOString(),
});

async function load() {
  const endMs = endOfQuarter(gatewayNowMs());
  const [now, before] = await Promise.all([
    api.callers(periodBefore(endMs, 0)),
    api.callers(periodBefore(endMs, 7)),
  ]);
  return { ...now, before: new Map(before.callers.map((one) => [one.caller, one])) };
}

export function CallerIds({ heading }) {
  const { value, error, again } = useReading({ key: 'callers', load, again: () => everyMs });
  if (value === undefined) return error ? html`<${Trouble} error=${error} again=${again} />` : null;
  return html`<section aria-label="Caller IDs">
    ${heading && html`<h2>${heading}</h2>`}
    ${value.callers.length === 0 ? html`<${Empty} title="No call in the last 24 hours." />` : html`<${CallerTable} value=${value} />`}
  </section>`;
}

function CallerTable({ value: { callers, before, more } }) {
  return html`<table class="stack" aria-label="Caller IDs">
    <thead><tr><th scope="col">Caller ID</th><th scope="col" class="number">Calls</th><th scope="col" class="number">A week before</th>${shareHeads()}</tr></thead>
    <tbody>${callers.map((counts) => {
      const earlier = before.get(counts.caller);
      return html`<tr key=${counts.caller}>
        <th scope="row" class="broken">${counts.caller}</th>
        <td class="number" data-name="Calls">${written(counts.accepted)}</td>
        <td class="number faint" data-name="A week before">${written(earlier?.accepted ?? 0)}</td>
        <${ShareCells} counts=${counts} before=${earlier} /></tr>`;
    })}</tbody></table>
    <p class="faint">The last 24 hours, the caller IDs with the most blocked calls first. The differences are to the same hours a week before.${more ? ' More caller IDs have calls.' : ''}</p>`;
}
