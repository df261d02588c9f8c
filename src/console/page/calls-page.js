// The interactions view: a live list of calls, newest first.

import { useState } from 'preact/hooks';
import { api, onEvent } from './api.js';
import { DialForm } from './dial-form.js';
import { html } from './dom.js';
import { amdWord, fullTime, numberOf, statusWord, timeOf } from './format.js';
import { Empty, Lasting, Title, Trouble } from './parts.js';
import { useReading } from './reading.js';
import { ResultBadge } from './result-badge.js';
import { filters } from './words.js';

const pageSize = 50;
/** Minimum time between two reads of the list, no matter how much happens. */
const shortestPauseMs = 1_000;

const filterNames = { status: 'Status', outcome: 'Outcome', verdict: 'Picked up' };
const shownValue = { status: statusWord, outcome: (value) => value, verdict: amdWord };
const ownTimeZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

export function CallsPage() {
  const [filter, setFilter] = useState({});
  const [cursors, setCursors] = useState([]);
  const [isDialing, setDialing] = useState(false);
  const { value: page, error, again } = useCalls(filter, cursors.at(-1));
  const isFiltered = Object.keys(filter).length > 0;
  /** The cursors belong to the list with the filters before. */
  const filterBy = (wanted) => {
    setFilter(wanted);
    setCursors([]);
  };
  const change = (name, value) => {
    const { [name]: _before, ...others } = filter;
    filterBy(value === '' ? others : { ...others, [name]: value });
  };
  return html`
    <div class="bar">
      <${Title}>Calls</${Title}>
      <form class="filters" onSubmit=${openCall} aria-label="Filters">
        ${Object.entries(filters).map(
          ([name, values]) => html`<label>
            <span>${filterNames[name]}</span>
            <select value=${filter[name] ?? ''} onChange=${(event) => change(name, event.target.value)}>
              <option value="">any</option>
              ${values.map((value) => html`<option value=${value}>${shownValue[name](value)}</option>`)}
            </select>
          </label>`,
        )}
        <label><span>Day</span><input type="date" value=${filter.day ?? ''} onChange=${(event) => change('day', event.target.value)} /></label>
        <label class="wide"><span>Number</span><input type="search" value=${filter.number ?? ''} onChange=${(event) => change('number', event.target.value.trim())} placeholder="+12025550110" autocomplete="off" /></label>
        <label class="wide"><span>Campaign</span><input type="search" value=${filter.campaign ?? ''} onChange=${(event) => change('campaign', event.target.value.trim())} autocomplete="off" /></label>
        <label class="wide"><span>Call id</span><input name="callId" placeholder="call-…" autocomplete="off" spellcheck=${false} /></label>
      </form>
      <button type="button" class="primary" onClick=${() => setDialing(true)}>Dial</button>
    </div>
    ${isDialing && html`<${DialForm} onClose=${() => setDialing(false)} />`}
    ${error && html`<${Trouble} error=${error} again=${again} />`}
    ${page && page.calls.length > 0 && html`<${CallTable} calls=${page.calls} />`}
    ${page && page.calls.length === 0 && html`<${NoCalls} isFiltered=${isFiltered} page=${page} clear=${() => filterBy({})} />`}
    ${
      page &&
      (cursors.length > 0 || page.nextCursor) &&
      html`<nav class="pager" aria-label="Pages of calls">
      <button type="button" disabled=${cursors.length === 0} onClick=${() => setCursors(cursors.slice(0, -1))}>Newer</button>
      <span class="faint">${cursors.length === 0 ? 'Newest calls, live' : `Page ${cursors.length + 1}`}</span>
      <button type="button" disabled=${!page.nextCursor} onClick=${() => setCursors([...cursors, page.nextCursor])}>Older</button>
    </nav>`
    }
    ${page && page.calls.length > 0 && html`<p class="faint"><a href=${api.csvOfCalls(queryOf(filter))} download="calls.csv">Download this list as CSV</a></p>`}
  `;
}

function openCall(event) {
  event.preventDefault();
  const callId = new FormData(event.target).get('callId').trim();
  if (callId !== '') location.hash = `#/calls/${encodeURIComponent(callId)}`;
}

/** Days are those of the browser's time zone. */
function queryOf(filter) {
  return filter.day === undefined ? filter : { ...filter, timeZone: ownTimeZone };
}

/** Reads the calls, and reads them again after events unless the page is hidden. */
function useCalls(filter, cursor) {
  const query = {
    limit: pageSize,
    ...queryOf(filter),
    ...(cursor === undefined ? {} : { cursor }),
  };
  return useReading({
    key: JSON.stringify(query),
    load: () => api.calls(query),
    pauseMs: shortestPauseMs,
    again: ({ error }) => (error === undefined ? undefined : 3_000),
    watch: (soon) => {
      const soonIfVisible = () => {
        if (!document.hidden) soon();
      };
      const stop = onEvent(soonIfVisible);
      document.addEventListener('visibilitychange', soonIfVisible);
      return () => {
        stop();
        document.removeEventListener('visibilitychange', soonIfVisible);
      };
    },
  });
}

function CallTable({ calls }) {
  return html`<table class="calls">
    <caption class="hidden">Calls, newest first</caption>
    <thead>
      <tr>
        <th scope="col">Accepted</th><th scope="col">To</th><th scope="col">Result</th>
        <th scope="col" class="number rang">Rang</th><th scope="col" class="number talked">Talked</th>
        <th scope="col" class="from">From</th><th scope="col" class="bot">Bot</th>
      </tr>
    </thead>
    <tbody>${calls.map((call) => html`<${CallRow} key=${call.callId} call=${call} />`)}</tbody>
  </table>`;
}

function CallRow({ call }) {
  const { callId, acceptedAt, ringingAt, answeredAt, endedAt } = call;
  const address = `#/calls/${callId}`;
  const open = () => {
    location.hash = address;
  };
  return html`<tr onClick=${open}>
    <td class="time" title=${fullTime(acceptedAt)}>${timeOf(acceptedAt)}</td>
    <td class="to"><a href=${address} onClick=${(event) => event.stopPropagation()}>${numberOf(call.target)}</a></td>
    <td class="state"><${ResultBadge} call=${call} /></td>
    <td class="number rang"><${Lasting} from=${ringingAt} to=${answeredAt ?? endedAt} /></td>
    <td class="number talked"><${Lasting} from=${answeredAt} to=${endedAt} /></td>
    <td class="from">${call.caller}</td>
    <td class="bot">${call.botId}</td>
  </tr>`;
}

function NoCalls({ isFiltered, page, clear }) {
  if (isFiltered) {
    const { from } = page.searched;
    const reached = page.nextCursor && from ? ` since ${fullTime(from)}` : '';
    return html`<${Empty} title=${`No call matches these filters${reached}.`}>
      <button type="button" onClick=${clear}>Show all calls</button>
    </${Empty}>`;
  }
  return html`<${Empty} title="No calls yet.">
    <p>Dial one here, or from a terminal:</p>
    <pre>npx offhook call tel:+12025550110 --amd detect --follow</pre>
  </${Empty}>`;
}
