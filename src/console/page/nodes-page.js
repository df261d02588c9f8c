// The page of the gateway's nodes.

import { api } from './api.js';
import { html } from './dom.js';
import { duration, fullTime, timeOf } from './format.js';
import { Title, Trouble } from './parts.js';
import { useReading } from './reading.js';

const everyMs = 3_000;
const tones = { up: 'good', draining: 'wait', late: 'bad', lost: 'bad' };

export function NodesPage() {
  const { value, error, again } = useReading({
    key: 'nodes',
    load: api.nodes,
    again: () => everyMs,
  });
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
