// Pages for the gateway's operators: trunks, nodes, and detection statistics.

import { api } from './api.js';
import { html } from './dom.js';
import { amdWord, duration, fullTime, plural, timeOf } from './format.js';
import { Empty, Title, Trouble } from './parts.js';
import { useReading } from './reading.js';

const everyMs = 3_000;

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
    }`;
}

/** Calls only occupy slots on trunks that have a limit. */
const isCounted = ({ callsPerSecond, maxConcurrentCalls, onIt }) =>
  callsPerSecond !== undefined || maxConcurrentCalls !== undefined || onIt > 0;

export function NodesPage() {
  const { value, error, again } = useReading({
    key: 'nodes',
    load: api.nodes,
    again: () => everyMs,
  });
  const tones = { up: 'good', draining: 'wait', late: 'bad', lost: 'bad' };
  return html`<div class="bar"><${Title}>Nodes</${Title}></div>
    ${error && html`<${Trouble} error=${error} again=${again} />`}
    ${
      value &&
      html`<table class="stack" aria-label="Nodes">
      <thead><tr><th scope="col">Node</th><th scope="col">State</th><th scope="col" class="number">Calls</th><th scope="col" class="number">Lease renewed</th><th scope="col">Version</th><th scope="col">Started</th></tr></thead>
      <tbody>${value.nodes.map(
        (node) => html`<tr>
          <th scope="row">${node.nodeId}${node.isThis ? html` <span class="faint">this node</span>` : ''}</th>
          <td data-name="State"><span class=${`status ${tones[node.state] ?? 'still'}`}>${node.state}</span></td>
          <td class="number" data-name="Calls">${node.calls}</td><td class="number" data-name="Lease renewed">${duration(node.leaseAgeMs)} ago</td><td data-name="Version">${node.version}</td>
          <td data-name="Started" title=${fullTime(node.startedAt)}>${timeOf(node.startedAt)}</td></tr>`,
      )}</tbody></table>`
    }`;
}

export function DetectionPage() {
  const { value, error, again } = useReading({
    key: 'detection',
    load: api.detection,
    again: () => 10_000,
  });
  const verdicts = value?.verdicts ?? [];
  return html`<div class="bar"><${Title}>Detection</${Title}>
      ${value && html`<span class="faint">${plural(value.calls, 'answered call')} with detection since ${timeOf(value.since)}</span>`}</div>
    ${error && html`<${Trouble} error=${error} again=${again} />`}
    ${value?.calls === 0 && html`<${Empty} title="No call with detection was answered in the last day."><p>Dial with <code>machineDetection</code> <code>detect</code> or <code>disconnect</code>.</p></${Empty}>`}
    ${
      verdicts.length > 0 &&
      html`<div class="charts">
      <${Bars} title="Verdicts" counts=${countBy(verdicts, ({ event }) => amdWord(event))} />
      <${Bars} title="Reasons" counts=${countBy(verdicts, ({ reason }) => reason)} />
      <${Bars} title="Time to verdict" counts=${countBy(
        verdicts.filter(({ elapsedMs }) => elapsedMs !== undefined),
        ({ elapsedMs }) => secondsBin(elapsedMs),
        true,
      )} />
      <${Bars} title="Confidence" counts=${countBy(
        verdicts.filter(({ confidence }) => confidence !== undefined),
        ({ confidence }) => confidenceBin(confidence),
        true,
      )} />
      <${Bars} title="Outcomes of these calls" counts=${countBy(verdicts, ({ outcome }) => outcome ?? 'not ended yet')} />
    </div>`
    }`;
}

const secondsBin = (ms) =>
  ms >= 10_000 ? '10 s and more' : `${Math.floor(ms / 1_000)} to ${Math.floor(ms / 1_000) + 1} s`;
const confidenceBin = (value) => {
  const low = Math.min(9, Math.floor(value * 10)) * 10;
  return `${low} to ${low + 10} %`;
};

function countBy(items, nameOf, isOrdered = false) {
  const counts = new Map();
  for (const item of items) counts.set(nameOf(item), (counts.get(nameOf(item)) ?? 0) + 1);
  const entries = [...counts];
  return isOrdered
    ? entries.sort(([a], [b]) => Number.parseFloat(a) - Number.parseFloat(b))
    : entries.sort(([, a], [, b]) => b - a);
}

/** Screen readers read this as a table, but it's drawn as bars. */
function Bars({ title, counts }) {
  const most = Math.max(...counts.map(([, count]) => count));
  const all = counts.reduce((sum, [, count]) => sum + count, 0);
  return html`<table class="bars"><caption>${title}</caption><tbody>
    ${counts.map(
      ([
        name,
        count,
      ]) => html`<tr><th scope="row">${name}</th><td class="number">${count}</td><td class="number faint">${Math.round((count / all) * 100)} %</td>
        <td class="drawn" aria-hidden="true"><span style=${{ width: `${(count / most) * 100}%` }}></span></td></tr>`,
    )}</tbody></table>`;
}
