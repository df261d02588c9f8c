// The filters above the list of calls. Each change is a new address, so the browser's back button
// leads to the view before.

import { useEffect, useId, useState } from 'preact/hooks';
import { gatewayNowMs } from './api.js';
import {
  addressOf,
  countOfFolded,
  daysOfPeriod,
  hasDays,
  periodOf,
  periods,
} from './calls-view.js';
import { html } from './dom.js';
import { amdWord } from './format.js';
import { ownTimeZone } from './local-days.js';
import { filters, results } from './words.js';

/** Opens a view from its beginning. */
export function openView({ cursor: _cursor, ...filters }) {
  location.hash = addressOf(filters);
}

/**
 * On a phone, a button unfolds all filters but the number.
 *
 * @param bots the ids to offer, of bots that have calls
 * @param campaigns the names to offer
 */
export function CallFilters({ view, bots, campaigns }) {
  const [isOpen, setOpen] = useState(false);
  const folded = useId();
  const count = countOfFolded(view);
  const change = (name) => (event) => openView({ ...view, [name]: event.target.value.trim() });
  return html`<form class="filters" aria-label="Filters" onSubmit=${(event) => event.preventDefault()}>
    <${Typed} className="find" label="Number or call id" name="number" view=${view} change=${(event) => find(event.target.value.trim(), view)} placeholder="+12025550110" />
    <button type="button" class="fold" aria-expanded=${isOpen} aria-controls=${folded} onClick=${() => setOpen(!isOpen)}>Filters${count > 0 && ` (${count})`}</button>
    <div id=${folded} class=${`folded ${isOpen ? 'open' : ''}`}>
    <${Period} view=${view} change=${change} />
    <${Typed} label="Bot" name="bot" view=${view} change=${change('bot')} list="bots" />
    <datalist id="bots">${bots.map((bot) => html`<option value=${bot} />`)}</datalist>
    <${Typed} label="Campaign" name="campaign" view=${view} change=${change('campaign')} list="campaigns" />
    <datalist id="campaigns">${campaigns.map((campaign) => html`<option value=${campaign} />`)}</datalist>
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
    </div>
  </form>`;
}

/**
 * A field that keeps what the user types while the list goes on below it, until it is entered or
 * the view changes.
 */
function Typed({ label, name, view, change, className, ...attributes }) {
  const value = view[name] ?? '';
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  return html`<label class=${className}><span>${label}</span>
    <input name=${name} type="search" value=${typed} onInput=${({ target }) => setTyped(target.value)} onChange=${change} autocomplete="off" spellcheck=${false} ...${attributes} />
  </label>`;
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
  // A first day after the last one moves it, and the other way round.
  const changeDay = (name, other) => (event) => {
    const day = event.target.value;
    const [first, last] = name === 'from' ? [day, view[other]] : [view[other], day];
    const isCrossed = day !== '' && first > last;
    openView({ ...view, [name]: day, ...(isCrossed ? { [other]: day } : {}) });
  };
  return html`
    <label><span>When</span><select name="period" value=${period} onChange=${choose}>
      <option value="any">at any time</option>
      ${Object.entries(periods).map(([name, [words]]) => html`<option value=${name}>${words.toLowerCase()}</option>`)}
      ${(period === 'any' || period === 'days') && html`<option value="days">days…</option>`}
    </select></label>
    ${
      hasDays(view) &&
      html`
        <${Typed} label="From" name="from" type="date" view=${view} change=${changeDay('from', 'to')} />
        <${Typed} label="To" name="to" type="date" view=${view} change=${changeDay('to', 'from')} />
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
