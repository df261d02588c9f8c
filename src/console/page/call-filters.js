// The filters above the list of calls. Each change is a new address, so the browser's back button
// leads to the view before.

import { gatewayNowMs } from './api.js';
import { addressOf, daysOfPeriod, hasDays, periodOf, periods } from './calls-view.js';
import { html } from './dom.js';
import { amdWord } from './format.js';
import { ownTimeZone } from './local-days.js';
import { filters, results } from './words.js';

/** Opens a view from its beginning. */
export function openView({ cursor: _cursor, ...filters }) {
  location.hash = addressOf(filters);
}

/** @param bots the ids to offer, of bots that have calls */
export function CallFilters({ view, bots }) {
  const change = (name) => (event) => openView({ ...view, [name]: event.target.value.trim() });
  return html`<form class="filters" aria-label="Filters" onSubmit=${(event) => event.preventDefault()}>
    <${Period} view=${view} change=${change} />
    <label class="find"><span>Number or call id</span><input name="number" type="search" value=${view.number ?? ''} onChange=${(event) => find(event.target.value.trim(), view)} placeholder="+12025550110" autocomplete="off" spellcheck=${false} /></label>
    <label><span>Bot</span><input name="bot" type="search" list="bots" value=${view.bot ?? ''} onChange=${change('bot')} autocomplete="off" spellcheck=${false} /></label>
    <datalist id="bots">${bots.map((bot) => html`<option value=${bot} />`)}</datalist>
    <label><span>Campaign</span><input name="campaign" type="search" value=${view.campaign ?? ''} onChange=${change('campaign')} autocomplete="off" /></label>
    <label><span>Picked up</span><select name="verdict" value=${view.verdict ?? ''} onChange=${change('verdict')}>
      <option value="">any</option>
      ${filters.verdict.map((value) => html`<option value=${value}>${amdWord(value)}</option>`)}
    </select></label>
    <label><span>Result</span><select name="result" value=${view.result ?? ''} onChange=${change('result')}>
      <option value="">any</option>
      ${Object.entries(results).map(
        ([group, values]) => html`<optgroup label=${group}>
          ${Object.entries(values).map(([value, words]) => html`<option value=${value}>${words}</option>`)}
        </optgroup>`,
      )}
    </select></label>
  </form>`;
}

/** A period by name, or days with their zone. */
function Period({ view, change }) {
  const zone = view.zone ?? ownTimeZone;
  const choose = (event) => {
    const { value } = event.target;
    const { from: _from, to: _to, zone: _zone, ...others } = view;
    if (value === 'any') return openView(others);
    const name = value === 'days' ? 'today' : value;
    return openView({ ...others, zone, ...daysOfPeriod(name, zone, gatewayNowMs()) });
  };
  const period = periodOf(view, gatewayNowMs());
  return html`
    <label><span>Accepted</span><select name="period" value=${period} onChange=${choose}>
      <option value="any">at any time</option>
      ${Object.entries(periods).map(([name, [words]]) => html`<option value=${name}>${words.toLowerCase()}</option>`)}
      ${(period === 'any' || period === 'days') && html`<option value="days">days…</option>`}
    </select></label>
    ${
      hasDays(view) &&
      html`
        <label><span>From</span><input name="from" type="date" value=${view.from ?? ''} onChange=${change('from')} /></label>
        <label><span>To</span><input name="to" type="date" value=${view.to ?? ''} onChange=${change('to')} /></label>
        <label class="zone"><span>Time zone</span><select name="zone" value=${zone} onChange=${change('zone')}>
          ${zones(zone).map((name) => html`<option value=${name}>${name}</option>`)}
        </select></label>`
    }`;
}

/** The user's zone comes first. Not every browser lists UTC. */
const zones = (shown) => [
  ...new Set([ownTimeZone, 'UTC', shown, ...(Intl.supportedValuesOf?.('timeZone') ?? [])]),
];

/** Ids are long and pasted, so whole ones open their call. */
function find(text, view) {
  if (/^call-[\w-]{8,}$/.test(text)) location.hash = `#/calls/${encodeURIComponent(text)}`;
  else openView({ ...view, number: text });
}
