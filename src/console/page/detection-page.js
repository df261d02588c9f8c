// Statistics of detection: first and final verdicts, reasons, and how long and how sure. Each bar
// leads to its calls: to the list of calls where that has such a filter, and otherwise to a list on
// this page.

import { api, gatewayNowMs } from './api.js';
import { addressOf } from './calls-view.js';
import { amdReasonWords } from './code-words.js';
import { html } from './dom.js';
import { amdWord, capitalised, duration, plural, timeOf } from './format.js';
import { dayAt, daysLater, ownTimeZone } from './local-days.js';
import { Empty, Title, Trouble } from './parts.js';
import { useReading } from './reading.js';
import { resultName } from './words.js';

const secondsBin = (ms) =>
  ms >= 10_000 ? '10 s and more' : `${Math.floor(ms / 1_000)} to ${Math.floor(ms / 1_000) + 1} s`;
const confidenceBin = (value) => {
  const low = Math.min(9, Math.floor(value * 10)) * 10;
  return `${low} to ${low + 10} %`;
};
/** E.g. `Short greeting`. */
const reasonName = (reason = '') => capitalised(reason.replaceAll('-', ' '));
const outcomeName = (outcome) => (outcome === undefined ? 'Not ended yet' : resultName(outcome));

/**
 * The charts, by their names in the address. `of` returns the bar to which a verdict belongs, or
 * undefined if it belongs to none. `name` returns the bar's name. Default: the bar. `explain` says
 * what a bar means. `filter` returns the filter of the list of calls, if it has one.
 */
const charts = {
  first: {
    title: 'First verdict',
    of: ({ event }) => event,
    name: ({ event }) => amdWord(event),
  },
  final: {
    title: 'Final verdict',
    of: ({ final }) => final,
    name: ({ final }) => amdWord(final),
    filter: ({ final }) => ({ verdict: final }),
  },
  changed: {
    title: 'Corrected verdicts',
    of: ({ event, final }) => (event === final ? undefined : `${event} ${final}`),
    name: ({ event, final }) => `${amdWord(event)}, then ${amdWord(final)}`,
  },
  reason: {
    title: 'Reason of the first verdict',
    of: ({ reason }) => reason,
    name: ({ reason }) => reasonName(reason),
    explain: amdReasonWords,
  },
  time: {
    title: 'Time to the first verdict',
    of: ({ elapsedMs }) => (elapsedMs === undefined ? undefined : secondsBin(elapsedMs)),
    isOrdered: true,
  },
  confidence: {
    title: 'Confidence of the first verdict',
    of: ({ confidence }) => (confidence === undefined ? undefined : confidenceBin(confidence)),
    isOrdered: true,
  },
  outcome: {
    title: 'Outcomes of these calls',
    of: ({ outcome }) => outcome ?? 'none',
    name: ({ outcome }) => outcomeName(outcome),
    filter: ({ outcome }) => outcome && { result: outcome },
  },
};

export function DetectionPage({ query }) {
  const { value, error, again } = useReading({
    key: 'detection',
    load: api.detection,
    again: () => 10_000,
  });
  const verdicts = value?.verdicts ?? [];
  const [[name, bar] = []] = new URLSearchParams(query);
  // The address may have any name.
  const chart = Object.hasOwn(charts, name ?? '') ? charts[name] : undefined;
  return html`<div class="bar"><${Title}>Detection</${Title}>
      ${value && html`<span class="faint">${plural(value.calls, 'answered call')} with detection since ${timeOf(value.since)}</span>`}</div>
    ${error && html`<${Trouble} error=${error} again=${again} />`}
    ${value?.calls === 0 && html`<${Empty} title="No call with detection was answered in the last day."><p>Dial with <code>machineDetection</code> <code>detect</code> or <code>disconnect</code>.</p></${Empty}>`}
    ${value && chart && html`<${CallsOfBar} chart=${chart} bar=${bar} verdicts=${verdicts} />`}
    ${verdicts.length > 0 && chart === undefined && html`<div class="charts">${Object.entries(charts).map(([of, one]) => html`<${Bars} key=${of} name=${of} chart=${one} verdicts=${verdicts} />`)}</div>`}`;
}

function barsOf({ of, isOrdered }, verdicts) {
  const bars = new Map();
  for (const verdict of verdicts) {
    const bar = of(verdict);
    if (bar !== undefined) bars.set(bar, [...(bars.get(bar) ?? []), verdict]);
  }
  const entries = [...bars];
  return isOrdered
    ? entries.sort(([a], [b]) => Number.parseFloat(a) - Number.parseFloat(b))
    : entries.sort(([, a], [, b]) => b.length - a.length);
}

const nameOf = ({ name }, bar, [call]) => (name && call ? name(call) : bar);

/** Screen readers read this as a table, but it's drawn as bars. */
function Bars({ name, chart, verdicts }) {
  const bars = barsOf(chart, verdicts);
  if (bars.length === 0) return null;
  const most = Math.max(...bars.map(([, calls]) => calls.length));
  const all = bars.reduce((sum, [, calls]) => sum + calls.length, 0);
  return html`<table class="bars"><caption>${chart.title}</caption><tbody>
    ${bars.map(([bar, calls]) => {
      const address = addressOfBar(name, chart, bar, calls[0]);
      return html`<tr key=${bar} onClick=${() => {
        location.hash = address;
      }}><th scope="row"><a href=${address} title=${chart.explain?.(calls[0])} onClick=${(event) => event.stopPropagation()}>${nameOf(chart, bar, calls)}</a></th><td class="number">${calls.length}</td><td class="number faint">${Math.round((calls.length / all) * 100)} %</td>
        <td class="drawn" aria-hidden="true"><span style=${{ width: `${(calls.length / most) * 100}%` }}></span></td></tr>`;
    })}</tbody></table>`;
}

/** The list of calls has whole days, so it may begin some hours before the chart. */
function addressOfBar(name, { filter }, bar, verdict) {
  const wanted = filter?.(verdict);
  if (wanted === undefined) return `#/detection?${new URLSearchParams([[name, bar]])}`;
  const today = dayAt(gatewayNowMs(), ownTimeZone);
  return addressOf({ from: daysLater(today, -1), to: today, zone: ownTimeZone, ...wanted });
}

/** More rows than anybody reads. */
const mostRows = 200;

function CallsOfBar({ chart, bar, verdicts }) {
  const calls = verdicts.filter((verdict) => chart.of(verdict) === bar);
  return html`<p class="back"><a href="#/detection">← All of detection</a></p>
    <h2 class="of-bar">${chart.title}: ${nameOf(chart, bar, calls)}, ${plural(calls.length, 'call')}${calls.length > mostRows ? `, of which these are ${mostRows}` : ''}</h2>
    ${calls.length === 0 ? html`<${Empty} title="No such call in the last day." />` : html`<${VerdictTable} verdicts=${calls.slice(0, mostRows)} />`}`;
}

function VerdictTable({ verdicts }) {
  return html`<table class="stack" aria-label="Calls">
    <thead><tr><th scope="col">Call</th><th scope="col">First verdict</th><th scope="col">Final verdict</th><th scope="col">Reason</th><th scope="col" class="number">After</th><th scope="col" class="number">Confidence</th><th scope="col">Outcome</th></tr></thead>
    <tbody>${verdicts.map(
      ({
        callId,
        isOwn,
        event,
        final,
        reason,
        elapsedMs,
        confidence,
        outcome,
      }) => html`<tr key=${callId}>
        <td data-name="Call">${isOwn ? html`<a href=${`#/calls/${callId}`}>${callId.slice(5, 13)}</a>` : html`<span class="faint">of another account</span>`}</td>
        <td data-name="First verdict">${amdWord(event)}</td>
        <td data-name="Final verdict">${final === event ? html`<span class="faint">the same</span>` : html`<b>${amdWord(final)}</b>`}</td>
        <td data-name="Reason" title=${amdReasonWords({ event, reason, elapsedMs })}>${reasonName(reason)}</td>
        <td class="number" data-name="After">${duration(elapsedMs)}</td>
        <td class="number" data-name="Confidence">${confidence === undefined ? '' : `${Math.round(confidence * 100)} %`}</td>
        <td data-name="Outcome">${outcomeName(outcome)}</td></tr>`,
    )}</tbody></table>`;
}
