// The page of `offhook amd --plot`: one HTML file with everything in it, for a browser without a network.

import { basename, dirname } from 'node:path';
import type { AmdEvent } from '../../calls/contract/amd-event.ts';
import type { Verdict } from './amd-listen.ts';
import type { Label, Truth } from './amd-manifest.ts';
import { escaped, figureSvg } from './amd-plot-figure.ts';
import { pageScript, pageStyle } from './amd-plot-style.ts';
import { columnsOf, measures, percent, plural, seconds } from './amd-report.ts';
import { faultsOf, type Summary } from './amd-score.ts';
import { traceOf } from './amd-trace.ts';

export type Plotted = {
  readonly file: string;
  readonly durationMs: number;
  readonly events: readonly AmdEvent[];
  readonly verdict: Verdict;
  readonly truth?: Truth;
  readonly samples?: Int16Array;
};

export function plotPage(recordings: readonly Plotted[], summary: Summary | undefined): string {
  const cards = recordings.map(cardOf);
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>Machine detection: ${plural(recordings.length, 'recording')}</title>`,
    `<style>${pageStyle}</style></head><body>`,
    '<header><h1>Who picked up?</h1>',
    `<p>${plural(recordings.length, 'recording')}, heard by <code>offhook amd</code>.</p></header>`,
    summary === undefined ? '' : figures(summary),
    filters(cards),
    legend(summary !== undefined),
    '<main>',
    ...cards.map(({ html }) => html),
    '<p id="none" hidden>None of these.</p></main>',
    '<div id="tip" role="status" hidden></div>',
    `<script>${pageScript}</script></body></html>\n`,
  ].join('\n');
}

type Card = { readonly group: string; readonly wrong: boolean; readonly html: string };

function cardOf(recording: Plotted): Card {
  const { file, verdict, truth, durationMs, samples = new Int16Array(0) } = recording;
  const faults = truth === undefined ? [] : faultsOf({ ...recording, truth });
  const wrong = faults.length > 0;
  const group = truth?.label ?? verdict;
  const folder = dirname(file) === '.' ? '' : `${dirname(file)}/`;
  const judgement =
    truth === undefined
      ? ''
      : `<span class="${wrong ? 'bad' : 'good'}">${wrong ? `✗ ${escaped(faults.join('; '))}` : `✓ ${truth.label}`}</span>`;
  const html = [
    `<section class="card${wrong ? ' wrong' : ''}" data-group="${group}" data-wrong="${wrong}" data-name="${escaped(file.toLowerCase())}">`,
    `<h2><small>${escaped(folder)}</small>${escaped(basename(file))}</h2>`,
    `<p><span class="chip ${verdict}">${verdict}</span>${judgement}`,
    `<span class="fact">${seconds(durationMs)}</span><span class="fact">${peakText(samples)}</span></p>`,
    figureSvg({
      samples,
      durationMs,
      events: recording.events,
      trace: traceOf(samples, recording.events.at(-1)?.elapsedMs ?? durationMs),
      ...(truth === undefined ? {} : { truth }),
    }),
    '</section>',
  ].join('');
  return { group, wrong, html };
}

function peakText(samples: Int16Array): string {
  let peak = 0;
  for (const sample of samples) peak = Math.max(peak, Math.abs(sample));
  return peak === 0 ? 'silent' : `peak ${(20 * Math.log10(peak / 32_768)).toFixed(0)} dBFS`;
}

function figures(summary: Summary): string {
  const columns = columnsOf(summary);
  const rows = (Object.entries(summary.verdicts) as [Label, Record<Verdict, number>][])
    .filter(([, counts]) => Object.values(counts).some((count) => count > 0))
    .map(([label]) => {
      const cells = columns.map((verdict) => cell(summary, label, verdict));
      const right = label === 'other' ? '' : percent(summary.right[label]);
      return `<tr><th>${label}</th>${cells.join('')}<td class="share">${oneSpaced(right)}</td></tr>`;
    });
  const list = measures(summary).map(
    ({ name, value }) => `<tr><th>${escaped(name)}</th><td>${escaped(oneSpaced(value))}</td></tr>`,
  );
  return [
    '<div class="figures"><table class="confusion">',
    `<tr><th>truth ╲ heard</th>${columns.map((name) => `<th>${name}</th>`).join('')}<th>right</th></tr>`,
    ...rows,
    '</table><table class="measures">',
    ...list,
    '</table></div>',
  ].join('');
}

/** What aligns in a terminal does not in a page. */
function oneSpaced(text: string): string {
  return text.trim().replace(/ +/g, ' ');
}

const rightVerdict: Readonly<Record<Label, Verdict | undefined>> = {
  human: 'human',
  machine: 'machine',
  silence: 'no-speech',
  other: undefined,
};

function cell(summary: Summary, label: Label, verdict: Verdict): string {
  const count = summary.verdicts[label][verdict];
  if (count === 0) return '<td class="zero">·</td>';
  if (label === 'other') return `<td>${count}</td>`;
  if (rightVerdict[label] === verdict) return `<td class="hit">${count}</td>`;
  // Some cannot be heard in time, and their `no-speech` is right.
  const { count: right, of } = summary.right[label];
  return `<td${right < of ? ' class="miss"' : ''}>${count}</td>`;
}

function filters(cards: readonly Card[]): string {
  const groups = [...new Set(cards.map(({ group }) => group))];
  const button = (filter: string, count: number) =>
    `<button type="button" data-filter="${filter}" aria-pressed="${filter === 'all'}">${filter} <b>${count}</b></button>`;
  const wrong = cards.filter((card) => card.wrong).length;
  return [
    '<nav>',
    button('all', cards.length),
    wrong > 0 ? button('wrong', wrong) : '',
    ...groups.map((group) => button(group, cards.filter((card) => card.group === group).length)),
    '<input type="search" placeholder="file name" aria-label="file name"></nav>',
  ].join('');
}

function legend(withTruth: boolean): string {
  const key = (kind: string, text: string) => `<span><i class="key ${kind}"></i>${text}</span>`;
  return [
    '<p class="legend">',
    key('speech', 'heard as speech'),
    key('word', 'a word counted'),
    key('tone', 'heard as a tone'),
    withTruth ? key('spoken', 'spoken in truth') + key('beeped', 'the beep in truth') : '',
    '<span>Point at an event for its evidence.</span></p>',
  ].join('');
}
