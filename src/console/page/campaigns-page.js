// The account's campaigns: their shares of abandoned calls by both formulas, and what holds them.

import { useState } from 'preact/hooks';
import { api } from './api.js';
import { addressOf as callsAddress } from './calls-view.js';
import { html } from './dom.js';
import { fullTime, timeOf } from './format.js';
import { Empty, Lasting, Pager, Title, Trouble } from './parts.js';
import { useReading } from './reading.js';
import { ShareCurve } from './share-curve.js';

const everyMs = 5_000;
const formulas = { ftc: 'FTC', ofcom: 'Ofcom' };
const percentOf = (value) => `${value.toFixed(2)} %`;

export function CampaignsPage() {
  const [cursors, setCursors] = useState([]);
  const cursor = cursors.at(-1);
  const { value, error, again } = useReading({
    key: `campaigns ${cursor}`,
    load: () => api.campaigns({ limit: 50, ...(cursor === undefined ? {} : { cursor }) }),
    again: () => everyMs,
  });
  return html`<div class="bar"><${Title}>Campaigns</${Title}><span class="faint">How many people were left without anybody to talk to, and which campaigns are held for it.</span></div>
    ${error && html`<${Trouble} error=${error} again=${again} />`}
    ${value?.campaigns.length === 0 && html`<${Empty} title="No campaign has called under a rule set."><p>Calls count if their request has <code>campaign</code> and <code>machineDetection</code>.</p></${Empty}>`}
    ${value?.campaigns.length > 0 && html`<${CampaignTable} campaigns=${value.campaigns} />`}
    ${value && html`<${Pager} label="Pages of campaigns" cursors=${cursors} setCursors=${setCursors} next=${value.nextCursor} order="sorted by name" />`}`;
}

function CampaignTable({ campaigns }) {
  const share = (window) => (window === undefined ? '' : percentOf(window.percent));
  return html`<table class="stack" aria-label="Campaigns">
    <thead><tr><th scope="col">Campaign</th><th scope="col">State</th><th scope="col">Rule set</th><th scope="col" class="number">People</th><th scope="col" class="number">Abandoned</th><th scope="col" class="number">FTC, 30 days</th><th scope="col" class="number">Ofcom, last day</th></tr></thead>
    <tbody>${campaigns.map(({ campaign, ruleSet, held, ftc, ofcom }) => {
      const month = ftc.windows.at(-1);
      return html`<tr key=${campaign}>
        <th scope="row" class="broken"><a href=${`#/campaigns/${encodeURIComponent(campaign)}`}>${campaign}</a></th>
        <td data-name="State"><${Hold} held=${held} /></td>
        <td data-name="Rule set"><a href=${`#/rules/${encodeURIComponent(ruleSet)}`}>${ruleSet}</a></td>
        <td class="number" data-name="People">${month?.answeredByPerson ?? 0}</td>
        <td class="number" data-name="Abandoned">${month?.abandoned ?? 0}</td>
        <td class="number" data-name="FTC, 30 days">${share(month)}</td>
        <td class="number" data-name="Ofcom, last day">${share(ofcom.windows.at(-1))}</td></tr>`;
    })}</tbody></table>`;
}

function Hold({ held }) {
  return held === null
    ? html`<span class="status good">May call</span>`
    : html`<span class="result held">Held</span>`;
}

export function CampaignPage({ id: name }) {
  const { value, error, again } = useReading({
    key: name,
    load: () => api.campaign(name),
    again: () => everyMs,
  });
  return html`<p class="back"><a href="#/campaigns">← All campaigns</a></p>
    <div class="bar"><${Title}>${name}</${Title}>${value && html`<${Hold} held=${value.held} /><span class="faint">under <a href=${`#/rules/${encodeURIComponent(value.ruleSet)}`}>${value.ruleSet}</a></span>`}
      <span class="grow"></span><a class="button" href=${callsAddress({ campaign: name })}>Calls</a></div>
    ${error && html`<${Trouble} error=${error} again=${again} />`}
    ${value && html`<${Campaign} campaign=${value} />`}`;
}

function Campaign({ campaign: { held, ftc, ofcom } }) {
  const days = ofcom.windows;
  return html`<div role="status">${held && html`<${HoldWords} held=${held} />`}</div>
    <section aria-labelledby="share">
      <h2 id="share">Share of abandoned calls</h2>
      <${ShareCurve} steps=${{ name: 'FTC, 30 days', windows: ftc.windows }} line=${{ name: 'Ofcom, each day', windows: days }} />
    </section>
    <${Windows} name="ftc" windows=${ftc.windows}>In 30 days from the first call on: abandoned calls, as a share of all calls that a person answered.</${Windows}>
    <${Windows} name="ofcom" windows=${days}>${estimateWords(ofcom.falseMachineRate)}</${Windows}>`;
}

function HoldWords({ held: { since, until } }) {
  return html`<p class="summary"><span class="status held">Too many calls were abandoned. Calls have been waiting for <${Lasting} from=${since} />; the next one is let through after ${timeOf(until)}, to find out whether it is connected.</span></p>`;
}

const estimateWords = (rate) =>
  rate === null
    ? 'In each day of the United Kingdom. The estimate of people who were taken for machines is missing, so the true share is higher: set falseMachineRate in the rule set.'
    : `In each day of the United Kingdom, with the people whom detection took for machines: ${percentOf(rate.rate * 100)}, from ${rate.source}.`;

function Windows({ name, windows, children }) {
  const newestFirst = windows.toReversed();
  return html`<section aria-labelledby=${name}>
    <h2 id=${name}>${formulas[name]}</h2>
    <p class="faint">${children}</p>
    <table class="stack" aria-labelledby=${name}>
      <thead><tr><th scope="col">From</th><th scope="col" class="number">People</th><th scope="col" class="number">Connected</th><th scope="col" class="number">Abandoned</th><th scope="col" class="number">Estimate</th><th scope="col" class="number">Share</th><th scope="col" class="number">95 % upper bound</th></tr></thead>
      <tbody>${newestFirst.map(
        (window) => html`<tr key=${window.from}>
          <td data-name="From" title=${`until ${fullTime(window.until)}`}>${fullTime(window.from)}</td>
          <td class="number" data-name="People">${window.answeredByPerson}</td>
          <td class="number" data-name="Connected">${window.connected}</td>
          <td class="number" data-name="Abandoned">${window.abandoned}</td>
          <td class="number" data-name="Estimate">${window.estimate === undefined ? html`<span class="faint">none</span>` : window.estimate.toFixed(1)}</td>
          <td class="number" data-name="Share">${percentOf(window.percent)}</td>
          <td class="number faint" data-name="95 % upper bound">${percentOf(window.upper95)}</td></tr>`,
      )}</tbody></table>
  </section>`;
}
