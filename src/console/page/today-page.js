// The first page: what operators ask each morning. The calls of today by hour, against the same day
// of last week, receivers that fail, calls that rules hold, and the state of the servers.

import { useEffect, useState } from 'preact/hooks';
import { api, gatewayNowMs, session } from './api.js';
import { addressOf, daysOfPeriod } from './calls-view.js';
import { html } from './dom.js';
import { whileVisible } from './events-watch.js';
import { capitalised, fullTime, plural, timeOf } from './format.js';
import { HourChart, hoveredHour } from './hour-chart.js';
import {
  change,
  dayOf,
  endOfQuarter,
  figures,
  hoursOf,
  shareOf,
  sumOf,
  untilNow,
  written,
} from './hours.js';
import { ownTimeZone } from './local-days.js';
import { Title, Trouble } from './parts.js';
import { useReading } from './reading.js';
import { ReceiverTable } from './receivers.js';
import { ruleWord } from './rule-words.js';
import { ServersNow } from './servers-page.js';

/** Figures of a whole day need no update with each call. */
const pauseMs = 5_000;
const everyMs = 30_000;

const weekday = new Intl.DateTimeFormat(undefined, { weekday: 'long' });
const briefWeekday = new Intl.DateTimeFormat(undefined, { weekday: 'short' });
const longDay = new Intl.DateTimeFormat(undefined, {
  ...{ weekday: 'long', day: 'numeric', month: 'long' },
});
const clock = new Intl.DateTimeFormat(undefined, {
  ...{ hour: '2-digit', minute: '2-digit', hour12: false },
});
const hourNames = Array.from({ length: 24 }, (_, hour) => `${String(hour).padStart(2, '0')}:00`);

/** The page may stay open overnight. */
function useNow() {
  const [, setTicks] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTicks((ticks) => ticks + 1), everyMs);
    return () => clearInterval(timer);
  }, []);
  return gatewayNowMs();
}

export function TodayPage() {
  const nowMs = useNow();
  const canOperate = session.value.app.scopes.includes('Operate');
  return html`<div class="bar"><${Title}>Today</${Title}><span class="faint">${longDay.format(nowMs)}, ${ownTimeZone.replaceAll('_', ' ')}</span></div>
    ${canOperate && html`<${ServersNow} />`}
    <${Calls} nowMs=${nowMs} />
    <${Receivers} />
    <${Held} />`;
}

// ── Calls ───────────────────────────────────────────────────────────────────────────────────────

function useDay(period, options) {
  return useReading({
    key: period.from,
    load: async () => (await api.summary({ ...period, quarters: true })).quarters,
    ...options,
  });
}

function Calls({ nowMs }) {
  const today = useDay(dayOf(nowMs), { pauseMs, again: () => everyMs, watch: whileVisible });
  // It doesn't change any more.
  const before = useDay(dayOf(nowMs, 1), {
    again: ({ error }) => (error === undefined ? undefined : everyMs),
  });
  const error = today.error ?? before.error;
  return html`${error && html`<${Trouble} error=${error} again=${today.error ? today.again : before.again} />`}
    ${today.value && before.value && html`<${Figures} today=${today.value} before=${before.value} nowMs=${nowMs} />`}`;
}

function Figures({ today, before, nowMs }) {
  const hours = hoursOf(today);
  const hoursBefore = hoursOf(before);
  const thisHour = new Date(nowMs).getHours();
  const known = {
    hours: hours.map((counts, hour) => (hour > thisHour ? undefined : counts)),
    hoursBefore,
    total: sumOf(today),
    totalBefore: sumOf(untilNow(before, nowMs)),
    since: `Last ${briefWeekday.format(nowMs)} until ${clock.format(endOfQuarter(nowMs))}`,
  };
  return html`<p class="faint legend-line" aria-hidden="true"><span class="swatch"></span>Today, by hour<span class="swatch before"></span>Last ${weekday.format(nowMs)}</p>
    <div class="figures">${figures.map((figure) => html`<${Figure} key=${figure.id} figure=${figure} known=${known} />`)}</div>
    <${Refused} total=${known.total} />
    <details class="hours-table"><summary>The hours as a table</summary><${HourTable} known=${known} /></details>`;
}

function Figure({ figure, known }) {
  const { id, name, of, isShare } = figure;
  const { hours, hoursBefore, total, totalBefore, since } = known;
  const valueIn = (counts) => (counts === undefined ? undefined : of(counts));
  const [value, before] = [of(total), of(totalBefore)];
  const [values, valuesBefore] = [hours.map(valueIn), hoursBefore.map(valueIn)];
  const hour = hoveredHour.value;
  const write = (one) => written(one, isShare);
  const difference = change(value, before, isShare);
  return html`<section class="figure" aria-labelledby=${id}>
    <h2 id=${id}>${figure.view === undefined ? name : html`<a href=${todayAddress(figure.view)}>${name}</a>`}</h2>
    <p class="big">${write(value)}</p>
    <p class="faint" hidden=${hour !== undefined}>${since}: ${write(before)}${difference && html` <span class="difference">(${difference})</span>`}</p>
    ${hour !== undefined && html`<p class="faint" aria-hidden="true">${hourNames[hour]}: <b>${write(values[hour])}</b>, last week ${write(valuesBefore[hour])}</p>`}
    <${HourChart} values=${values} before=${valuesBefore} names=${hourNames} isShare=${isShare} label=${`${name} by hour, today and last week. The table below has the values.`} />
  </section>`;
}

const todayAddress = (view) =>
  addressOf({ ...daysOfPeriod('today', ownTimeZone, gatewayNowMs()), zone: ownTimeZone, ...view });

/** What kept calls from being answered and isn't the callee's decision. */
function Refused({ total: { accepted, outcomes } }) {
  const { blocked = 0, 'not-permitted': refused = 0 } = outcomes;
  return html`<p class="faint legend-line">
    Carriers blocked ${plural(blocked, 'call')}${accepted > 0 && blocked > 0 && ` (${written(shareOf(blocked, accepted), true)})`}: <a href="#/callers">by caller ID</a>.${' '}
    ${refused > 0 && html`Rules refused <a href=${todayAddress({ result: 'not-permitted' })}>${plural(refused, 'call')}</a>.`}</p>`;
}

function HourTable({ known: { hours, hoursBefore } }) {
  const cell = (counts, { of, isShare }) =>
    counts === undefined ? '' : written(of(counts), isShare);
  return html`<div class="wide-table" tabindex="0" role="region" aria-label="The hours as a table"><table aria-label="Today and last week by hour">
    <thead><tr><th scope="col">Hour</th>${figures.map(({ name }) => html`<th scope="col" class="number">${name}</th><th scope="col" class="number">last week</th>`)}</tr></thead>
    <tbody>${hourNames.map(
      (name, hour) =>
        html`<tr key=${name}><th scope="row">${name}</th>${figures.map(
          (figure) =>
            html`<td class="number">${cell(hours[hour], figure)}</td><td class="number faint">${cell(hoursBefore[hour], figure)}</td>`,
        )}</tr>`,
    )}</tbody></table></div>`;
}

// ── What waits ──────────────────────────────────────────────────────────────────────────────────

function Receivers() {
  const { value, again } = useReading({
    key: 'receivers',
    load: api.receivers,
    again: () => pauseMs,
  });
  if (value === undefined) return null;
  return html`<section aria-labelledby="receivers">
    <h2 id="receivers">Failing receivers</h2>
    ${value.receivers.length === 0 ? html`<p class="faint">No receiver is failing.</p>` : html`<${ReceiverTable} receivers=${value.receivers} again=${again} />`}
  </section>`;
}

function Held() {
  const { value } = useReading({ key: 'held', load: api.held, again: () => everyMs });
  if (value === undefined) return null;
  return html`<section aria-labelledby="held">
    <h2 id="held">Held by rules</h2>
    ${value.held.length === 0 ? html`<p class="faint">No call waits for a calling rule.</p>` : html`<${HeldTable} held=${value.held} />`}
  </section>`;
}

function HeldTable({ held }) {
  return html`<table class="stack" aria-labelledby="held">
    <thead><tr><th scope="col">Rule</th><th scope="col" class="number">Waiting calls</th><th scope="col">Next check</th></tr></thead>
    <tbody>${held.map(
      ({ rule, calls, nextAt }) => html`<tr key=${rule}>
        <th scope="row">${capitalised(ruleWord(rule))}</th>
        <td class="number" data-name="Waiting calls"><a href="#/calls?result=queued">${calls.toLocaleString()}</a></td>
        <td data-name="Next check" title=${fullTime(nextAt)}>${timeOf(nextAt)}</td></tr>`,
    )}</tbody></table>`;
}
