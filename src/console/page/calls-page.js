// The interactions view: a live list of calls, newest first. Its filters stand in the address.

import { useState } from 'preact/hooks';
import { api } from './api.js';
import { CallFilters, openView } from './call-filters.js';
import { CallTotals, useTotals } from './call-totals.js';
import { addressOf, isFiltered, listQueryOf, readView } from './calls-view.js';
import { DialForm } from './dial-form.js';
import { html } from './dom.js';
import { whileVisible } from './events-watch.js';
import { fullTime, numberOf, timeOf } from './format.js';
import { rememberList } from './last-list.js';
import { ownTimeZone } from './local-days.js';
import { Empty, Lasting, Title, Trouble } from './parts.js';
import { callerNumber, phoneNumber } from './phone-numbers.js';
import { useReading } from './reading.js';
import { ResultBadge } from './result-badge.js';

const pageSize = 50;
/** Minimum time between two reads of the list, no matter how much happens. */
const shortestPauseMs = 1_000;

/** @param query the filters, as in the address after `?` */
export function CallsPage({ query }) {
  const view = readView(query);
  rememberList(addressOf(view));
  const [isDialing, setDialing] = useState(false);
  const { value: page, error, again } = useCalls(view);
  const totals = useTotals(view);
  const bots = (totals.value?.bots ?? []).map(({ botId }) => botId);
  return html`
    <div class="bar">
      <${Title}>Calls</${Title}>
      <${CallTotals} view=${view} totals=${totals} />
      <span class="grow"></span>
      ${isFiltered(view) && html`<button type="button" class="plain" onClick=${() => openView({})}>Clear filters</button><${LinkCopy} />`}
      ${page && page.calls.length > 0 && html`<a class="button" href=${csvAddress(view)} download="calls.csv">Export CSV</a>`}
      <button type="button" class="primary" onClick=${() => setDialing(true)}>Dial</button>
    </div>
    <${CallFilters} view=${view} bots=${bots} campaigns=${campaignsOf(page)} />
    ${isDialing && html`<${DialForm} onClose=${() => setDialing(false)} />`}
    ${error && html`<${Trouble} error=${error} again=${again} />`}
    ${view.zone !== undefined && view.zone !== ownTimeZone && html`<p class="faint">Times are those of ${view.zone}.</p>`}
    ${page && page.calls.length > 0 && html`<${CallTable} calls=${page.calls} zone=${view.zone} />`}
    ${page && page.calls.length === 0 && html`<${NoCalls} view=${view} page=${page} />`}
    ${page && (view.cursor ?? page.nextCursor) !== undefined && html`<${Pager} view=${view} page=${page} />`}
  `;
}

/** The campaigns of the calls that are shown, by name. */
const campaignsOf = (page) =>
  [...new Set((page?.calls ?? []).map(({ campaign }) => campaign).filter(Boolean))].sort();

/** Copies the address, for a colleague. Browsers permit it only over HTTPS and on loopback. */
function LinkCopy() {
  const [copied, setCopied] = useState('');
  if (navigator.clipboard === undefined) return null;
  const address = location.href;
  const copy = () =>
    navigator.clipboard.writeText(address).then(
      () => setCopied(address),
      () => undefined,
    );
  return html`<button type="button" onClick=${copy}>Copy link</button><span role="status" class="faint copied">${copied === address && 'Copied'}</span>`;
}

/** The whole list, not only this page of it. */
function csvAddress({ cursor: _cursor, ...view }) {
  const { query, botId } = listQueryOf(view);
  return api.csvOfCalls(query, botId);
}

function Pager({ view, page }) {
  const { cursor, zone } = view;
  const { to } = page.searched;
  const older = () => {
    location.hash = addressOf({ ...view, cursor: page.nextCursor });
  };
  return html`<nav class="pager" aria-label="Pages of calls">
    <button type="button" disabled=${cursor === undefined} onClick=${() => openView(view)}>Newest</button>
    <span class="faint">${cursor === undefined ? 'Newest calls, live' : to && `Accepted until ${fullTime(to, zone)}`}</span>
    <button type="button" disabled=${page.nextCursor === undefined} onClick=${older}>Older</button>
  </nav>`;
}

/** Reads the calls, and reads them again after events unless the page is hidden. */
function useCalls(view) {
  const { query, botId } = listQueryOf(view);
  const asked = { limit: pageSize, ...query };
  return useReading({
    key: JSON.stringify([botId, asked]),
    load: () => api.calls(asked, botId),
    pauseMs: shortestPauseMs,
    again: ({ error }) => (error === undefined ? undefined : 3_000),
    watch: whileVisible,
  });
}

function CallTable({ calls, zone }) {
  const hasCampaigns = calls.some(({ campaign }) => campaign !== undefined);
  return html`<table class="calls">
    <caption class="hidden">Calls, newest first</caption>
    <thead>
      <tr>
        <th scope="col">Accepted</th><th scope="col">To</th><th scope="col">Result</th>
        <th scope="col" class="number rang">Rang</th><th scope="col" class="number talked">Talked</th>
        <th scope="col" class="from">From</th><th scope="col" class="bot">Bot</th>
        ${hasCampaigns && html`<th scope="col" class="campaign">Campaign</th>`}
      </tr>
    </thead>
    <tbody>${calls.map((call) => html`<${CallRow} key=${call.callId} call=${call} zone=${zone} hasCampaigns=${hasCampaigns} />`)}</tbody>
  </table>`;
}

function CallRow({ call, zone, hasCampaigns }) {
  const { callId, acceptedAt, ringingAt, answeredAt, endedAt } = call;
  const address = `#/calls/${callId}`;
  const open = () => {
    location.hash = address;
  };
  return html`<tr onClick=${open}>
    <td class="time" title=${fullTime(acceptedAt, zone)}>${timeOf(acceptedAt, zone)}</td>
    <td class="to"><a href=${address} onClick=${(event) => event.stopPropagation()}>${phoneNumber(numberOf(call.target))}</a></td>
    <td class="state"><${ResultBadge} call=${call} /></td>
    <td class="number rang"><${Lasting} from=${ringingAt} to=${answeredAt ?? endedAt} /></td>
    <td class="number talked"><${Lasting} from=${answeredAt} to=${endedAt} /></td>
    <td class="from">${callerNumber(call.caller)}</td>
    <td class="bot">${call.botId}</td>
    ${hasCampaigns && html`<td class="campaign">${call.campaign}</td>`}
  </tr>`;
}

function NoCalls({ view, page }) {
  if (isFiltered(view)) {
    const { from } = page.searched;
    const reached = page.nextCursor && from ? ` since ${fullTime(from, view.zone)}` : '';
    return html`<${Empty} title=${`No call matches these filters${reached}.`}>
      <button type="button" onClick=${() => openView({})}>Show all calls</button>
    </${Empty}>`;
  }
  return html`<${Empty} title="No calls yet.">
    <p>Dial one here, or from a terminal:</p>
    <pre>npx offhook call tel:+12025550110 --amd detect --follow</pre>
  </${Empty}>`;
}
