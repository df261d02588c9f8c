// One line for each server, with its state, since when, and what is affected now. It works during
// an outage of the database, too. The operators' first page has the lines of the troubled servers.

import { api } from './api.js';
import { html } from './dom.js';
import { fullTime, timeOf } from './format.js';
import { Lasting, Title, Trouble } from './parts.js';
import { useReading } from './reading.js';

const everyMs = 2_000;

const stateWords = {
  up: 'Up',
  draining: 'Shutting down',
  impaired: 'Impaired',
  away: 'Away',
  unknown: 'Unknown',
};
const tones = { up: 'good', draining: 'wait', impaired: 'wait', away: 'bad', unknown: 'still' };
const isTroubled = ({ state }) => state === 'away' || state === 'impaired';
const isFine = ({ state }) => state === 'up' || state === 'draining';

export function ServersPage() {
  const { value, error, again } = useReading({
    key: 'servers',
    load: api.servers,
    again: () => everyMs,
  });
  return html`<div class="bar"><${Title}>Servers</${Title}></div>
    ${error && html`<${Trouble} error=${error} again=${again} />`}
    ${value && html`<${Summary} servers=${value.servers} isOld=${error !== undefined} /><${ServerTable} servers=${value.servers} />`}`;
}

/** One line if all is well, and otherwise the lines of the servers that have a problem. */
export function ServersNow() {
  const { value, error } = useReading({
    key: 'servers',
    load: api.servers,
    again: () => everyMs,
  });
  if (value === undefined) return null;
  const troubled = value.servers.filter(isTroubled);
  return html`<div class="servers-now">
    <${Summary} servers=${value.servers} isOld=${error !== undefined}> <a href="#/servers">All servers</a></${Summary}>
    ${troubled.length > 0 && html`<${ServerTable} servers=${troubled} />`}
  </div>`;
}

/** Screen readers announce this line when it changes. */
function Summary({ servers, isOld, children }) {
  const { tone, text } = isOld
    ? { tone: 'still', text: 'The state of the servers may be out of date.' }
    : summaryOf(servers);
  return html`<p class="summary" role="status"><span class=${`status ${tone}`}>${text}</span>${children}</p>`;
}

function summaryOf(servers) {
  const named = (list) => list.map(({ name }) => name).join(', ');
  const troubled = servers.filter(isTroubled);
  if (troubled.length > 0) {
    const isAway = troubled.some(({ state }) => state === 'away');
    const have = troubled.length === 1 ? 'has' : 'have';
    const text = `${troubled.length} of ${servers.length} ${have} a problem: ${named(troubled)}.`;
    return { tone: isAway ? 'bad' : 'wait', text };
  }
  const unknown = servers.filter(({ state }) => state === 'unknown');
  if (unknown.length > 0) return { tone: 'still', text: `Unknown: ${named(unknown)}.` };
  return { tone: 'good', text: 'All is well: no server has a problem.' };
}

function ServerTable({ servers }) {
  return html`<table class="stack servers" aria-label="Servers">
    <thead><tr><th scope="col">Server</th><th scope="col">State</th><th scope="col">Since</th><th scope="col">What is affected now</th></tr></thead>
    <tbody>${servers.map((server) => html`<${ServerRow} key=${server.id} server=${server} />`)}</tbody>
  </table>`;
}

function ServerRow({ server }) {
  const { name, state, since, affects, detail } = server;
  return html`<tr>
    <th scope="row"><span>${name}</span>${detail && html` <span class="faint detail">${detail}</span>`}</th>
    <td data-name="State"><span class=${`status ${tones[state] ?? 'still'}`}>${stateWords[state] ?? state}</span></td>
    <td data-name="Since" title=${fullTime(since)}><span>${timeOf(since)}${!isFine(server) && html` <span class="faint">(<${Lasting} from=${since} />)</span>`}</span></td>
    <td class="affects">${affects}</td>
  </tr>`;
}
