// One recording as SVG: events above the waveform; below it what was heard, what is true, and the time.

import type { AmdEvent } from '../../calls/contract/amd-event.ts';
import type { Truth } from './amd-manifest.ts';
import { eventWord, evidenceParts, seconds } from './amd-report.ts';
import type { Span, Trace } from './amd-trace.ts';

export type Figure = {
  readonly samples: Int16Array;
  readonly durationMs: number;
  readonly events: readonly AmdEvent[];
  readonly trace: Trace;
  readonly truth?: Truth;
};

const width = 1_120;
/** Room for the names of the lanes. */
const left = 64;
const right = 10;
const flagHeight = 17;
const waveHeight = 84;
const laneHeight = 12;
/** Two units each: fine enough to see syllables, small enough for hundreds of recordings in a page. */
const waveColumns = (width - left - right) / 2;
/** A recording is shown as loud as it can be, but noise stays noise. */
const mostGain = 24;

type Axis = { x(ms: number): number; readonly endMs: number };

export function figureSvg(figure: Figure): string {
  const axis = axisFor(figure);
  const flags = placeFlags(figure.events, axis);
  const waveTop = Math.max(1, ...flags.map(({ row }) => row + 1)) * flagHeight + 6;
  const heardTop = waveTop + waveHeight + 8;
  const trueTop = heardTop + laneHeight + 6;
  const axisTop = trueTop + (figure.truth === undefined ? 0 : laneHeight + 4);
  const height = axisTop + 18;
  return [
    `<svg viewBox="0 0 ${width} ${height}" data-left="${left}" data-right="${width - right}" data-end="${axis.endMs}" role="img">`,
    grid(axis, waveTop, axisTop),
    wave(figure, axis, waveTop),
    heardLane(figure.trace, axis, heardTop),
    figure.truth === undefined ? '' : truthLane(figure.truth, axis, { trueTop, waveTop }),
    flags.map((flag) => flagMark(flag, axisTop)).join(''),
    `<line class="hair" y1="${waveTop}" y2="${axisTop}"/>`,
    '</svg>',
  ].join('');
}

function axisFor({ durationMs, events }: Figure): Axis {
  const endMs = Math.max(1_000, durationMs, ...events.map(({ elapsedMs }) => elapsedMs)) * 1.01;
  return { endMs, x: (ms) => round(left + (ms / endMs) * (width - left - right)) };
}

function grid(axis: Axis, top: number, bottom: number): string {
  const step = [1, 2, 5, 10, 20, 60].find((s) => axis.endMs / 1_000 / s <= 24) ?? 120;
  const lines: string[] = [];
  for (let second = 0; second * 1_000 <= axis.endMs; second += step) {
    const x = axis.x(second * 1_000);
    lines.push(`<path class="grid" d="M${x} ${top}V${bottom}"/>`);
    lines.push(`<text class="tick" x="${x}" y="${bottom + 13}">${second} s</text>`);
  }
  return lines.join('');
}

function wave({ samples, durationMs }: Figure, axis: Axis, top: number): string {
  const middle = top + waveHeight / 2;
  const columns = Math.max(1, Math.round((waveColumns * durationMs) / axis.endMs));
  const perColumn = samples.length / columns;
  let peak = 1;
  for (const sample of samples) peak = Math.max(peak, Math.abs(sample));
  const scale = Math.min(waveHeight / 2 / peak, (mostGain * waveHeight) / 2 / 32_768);
  const upper: string[] = [];
  const lower: string[] = [];
  for (let column = 0; column < columns; column += 1) {
    const part = samples.subarray(
      Math.floor(column * perColumn),
      Math.ceil((column + 1) * perColumn),
    );
    let [low, high] = [0, 0];
    for (const sample of part) {
      if (sample > high) high = sample;
      if (sample < low) low = sample;
    }
    const x = left + column * 2;
    upper.push(`${x} ${round(middle - 0.4 - high * scale)}`);
    lower.push(`${x} ${round(middle + 0.4 - low * scale)}`);
  }
  return `<path class="wave" d="M${upper.join('L')}L${lower.reverse().join('L')}Z"/>`;
}

function heardLane(trace: Trace, axis: Axis, top: number): string {
  const words = trace.wordsMs.map((ms) => `M${axis.x(ms)} ${top - 3}v${laneHeight + 5}`).join('');
  return [
    `<text class="lane" x="0" y="${top + 10}">heard</text>`,
    ...trace.speech.map((span) => bar('speech', span, axis, top)),
    ...trace.tones.map((span) => bar('tone', span, axis, top)),
    `<path class="word" d="${words}"/>`,
  ].join('');
}

function truthLane(
  truth: Truth,
  axis: Axis,
  { trueTop, waveTop }: { readonly trueTop: number; readonly waveTop: number },
): string {
  const spans = truth.segments.map(([startMs, endMs]) => ({ startMs, endMs }));
  const behind = (kind: string, { startMs, endMs }: Span) => {
    const x = axis.x(startMs);
    return `<rect class="${kind}" x="${x}" y="${waveTop}" width="${round(axis.x(endMs) - x)}" height="${waveHeight}"/>`;
  };
  const said = truth.transcript ? `“${truth.transcript}”` : `${truth.words ?? '?'} words`;
  const beep = truth.beep;
  return [
    `<text class="lane" x="0" y="${trueTop + 10}">true</text>`,
    ...spans.map((span) => behind('shade', span) + bar('spoken', span, axis, trueTop, said)),
    beep === undefined
      ? ''
      : behind('shade beeping', beep) +
        bar('beeped', beep, axis, trueTop, `beep ${beep.hz ?? '?'} Hz`),
  ].join('');
}

function bar(kind: string, span: Span, axis: Axis, top: number, what = kind): string {
  const x = axis.x(span.startMs);
  const wide = Math.max(1, round(axis.x(span.endMs) - x));
  const tip = `${what}\n${seconds(span.startMs)} to ${seconds(span.endMs)}`;
  return `<rect class="${kind}" x="${x}" y="${top}" width="${wide}" height="${laneHeight}" rx="2" data-tip="${escaped(tip)}"/>`;
}

type Flag = {
  readonly event: AmdEvent;
  readonly x: number;
  readonly row: number;
  readonly toLeft: boolean;
};

/** Text cannot be measured here: the widest fonts are about that wide. */
function flagWidth(word: string): number {
  return word.length * 7.6 + 13;
}

/** In the first row where it covers no other one. */
function placeFlags(events: readonly AmdEvent[], axis: Axis): Flag[] {
  const taken: (readonly [from: number, to: number])[][] = [];
  return events.map((event) => {
    const x = axis.x(event.elapsedMs);
    const wide = flagWidth(eventWord(event));
    const toLeft = x + wide > width;
    const [from, to] = toLeft ? [x - wide, x] : [x, x + wide];
    let row = 0;
    while (taken[row]?.some((other) => from < other[1] + 2 && other[0] < to + 2)) row += 1;
    taken[row] = [...(taken[row] ?? []), [from, to]];
    return { event, x, row, toLeft };
  });
}

function flagMark({ event, x, row, toLeft }: Flag, bottom: number): string {
  const word = eventWord(event);
  const y = row * flagHeight;
  const wide = flagWidth(word);
  const tip = [`${word}, ${seconds(event.elapsedMs)}`, ...evidenceParts(event)].join('\n');
  const from = toLeft ? round(x - wide) : x;
  return [
    `<g class="event ${event.event}" tabindex="0" data-tip="${escaped(tip)}">`,
    `<path d="M${x} ${y}V${bottom}"/>`,
    `<rect x="${from}" y="${y}" width="${wide}" height="${flagHeight - 2}" rx="2"/>`,
    `<text x="${from + 6}" y="${y + 11}">${word}</text></g>`,
  ].join('');
}

export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Less than half a unit cannot be seen, and would double the page. */
function round(value: number): number {
  return Math.round(value * 2) / 2;
}
