// How loud the call was, both ways, with what detection said of it and when. Drawn here and not by a library for charts: all of it is
// marks of this one picture, and what is drawn is also said in words.

import { useEffect, useRef, useState } from 'preact/hooks';
import { html } from './dom.js';
import { amdWord, between, duration, labelPixels } from './format.js';
import { Lanes } from './lanes.js';

/** Of 127: what is softer is noise of the line. */
const quiet = 50;
/** A pause in speech that is shorter is none. */
const shortestPauseMs = 300;
const height = 132;
const darkness = matchMedia('(prefers-color-scheme: dark)');

export function Waveform({ call, capture }) {
  const { audio, notes, keptBy } = capture ?? {};
  const box = useRef(null);
  const canvas = useRef(null);
  const [width, setWidth] = useState(0);
  // Before the answer there may be some already, e.g. ringback.
  const shown = call.answeredAt === undefined ? undefined : audio && decode(audio);
  useEffect(() => {
    if (box.current === null) return undefined;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, [shown === undefined]);
  useEffect(() => {
    if (shown === undefined || width <= 0) return undefined;
    const drawNow = () => draw(canvas.current, width, shown);
    drawNow();
    // What is drawn has its colours for good; the rest of the page has them from the style.
    darkness.addEventListener('change', drawNow);
    return () => darkness.removeEventListener('change', drawNow);
  });
  if (call.answeredAt === undefined) return null;
  const marks = marksOf(call);
  const isBridged = call.timeline.some(({ type }) => type === 'transfer-answered');
  return html`<section aria-labelledby="sound">
    <h2 id="sound">Sound</h2>
    ${
      shown === undefined
        ? html`<p class="faint">${absence(call, keptBy)}</p>`
        : html`<figure class="wave" ref=${box}>
          <div class="marks" aria-hidden="true">${placed(marks, shown.lengthMs, width).map((mark) => html`<${Mark} mark=${mark} />`)}</div>
          <canvas ref=${canvas} role="img" aria-label=${describe(shown, marks)} height=${height}></canvas>
          <div class="axis" aria-hidden="true">${ticksOf(shown.lengthMs).map((ms) => html`<span style=${{ left: `${(ms / shown.lengthMs) * 100}%` }}>${ms / 1_000} s</span>`)}</div>
          ${width > 0 && html`<${Lanes} notes=${notes?.notes ?? []} audio=${audio} lengthMs=${shown.lengthMs} width=${width} />`}
          <figcaption class="faint">From the far end above, to it below; how loud, no audio is kept. Bands are speech or other sound.${isBridged ? ' Once connected, the transfer is heard below.' : ''}</figcaption>
        </figure>`
    }
  </section>`;
}

function absence(call, keptBy) {
  if (keptBy !== undefined)
    return `Node ${keptBy} listens, and keeps how loud it is until the call ends. It does not answer just now.`;
  return call.state === 'ended' ? 'Nothing was kept of this call’s sound.' : 'Listening…';
}

/** A label near the right edge stands to the left of its line; one that has no room is only a line, and stands in the list. */
function Mark({ mark: { x, tone, side, level, label, title } }) {
  return html`<span class=${`mark ${tone} ${side} level-${level}`} style=${{ left: `${x}px` }} title=${title}>${level >= 0 && html`<span>${label}</span>`}</span>`;
}

function marksOf(call) {
  return call.timeline.filter(isMarked).map(({ type, time, data }) => {
    const atMs = type === 'amd' ? data.amd.elapsedMs : between(call.answeredAt, time);
    return { atMs, label: labelOf(type, data), tone: type === 'amd' ? 'verdict' : 'other' };
  });
}

const markLevels = 3;

/** Each label on the first level on which nothing stands in its way. */
function placed(marks, lengthMs, width) {
  const taken = Array.from({ length: markLevels }, () => []);
  return marks.map((mark) => {
    const x = Math.round(Math.min(1, mark.atMs / lengthMs) * width);
    const wide = labelPixels(mark.label);
    const side = x + wide > width ? 'left' : 'right';
    const [from, to] = side === 'left' ? [x - wide, x] : [x, x + wide];
    const level =
      from < 0 ? -1 : taken.findIndex((spans) => spans.every(([f, t]) => to <= f || from >= t));
    if (level >= 0) taken[level].push([from, to]);
    return { ...mark, x, side, level, title: `${duration(mark.atMs)}: ${mark.label}` };
  });
}

function isMarked({ type, data }) {
  return type === 'amd' ? data.amd.event !== 'amd_stopped' : isHeard.test(type);
}

/** What one can hear, and the end. */
const isHeard = /^(dtmf|playback|transfer|completed)/;

function labelOf(type, data) {
  if (type === 'amd') {
    const { event, confidence } = data.amd;
    return `${amdWord(event)}${confidence === undefined ? '' : ` ${Math.round(confidence * 100)} %`}`;
  }
  if (type === 'dtmf') return `key ${data.digit}`;
  if (type === 'dtmf-sent') return `keys ${data.digits}`;
  return type === 'completed' ? 'end' : type;
}

function decode({ heard, said, stepMs }) {
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const shown = { heard: bytes(heard), said: bytes(said), stepMs };
  return { ...shown, lengthMs: Math.max(1_000, shown.heard.length * stepMs) };
}

/** Stretches of sound, in steps. */
function stretches(levels, stepMs) {
  const found = [];
  for (let index = 0; index < levels.length; index += 1) {
    if (levels[index] < quiet) continue;
    const before = found.at(-1);
    if (before && (index - before[1]) * stepMs < shortestPauseMs) before[1] = index + 1;
    else found.push([index, index + 1]);
  }
  return found.filter(([from, to]) => (to - from) * stepMs >= 80);
}

function draw(canvas, width, { heard, said, stepMs, lengthMs }) {
  const ratio = devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const context = canvas.getContext('2d');
  context.scale(ratio, ratio);
  // What a variable comes to, dark or light, is known once it is the colour of something.
  const colour = (name) => {
    canvas.style.color = `var(${name})`;
    return getComputedStyle(canvas).color;
  };
  const middle = height / 2;
  const x = (step) => ((step * stepMs) / lengthMs) * width;
  for (const [levels, top] of [
    [heard, 0],
    [said, middle],
  ]) {
    context.fillStyle = colour('--wave-band');
    for (const [from, to] of stretches(levels, stepMs))
      context.fillRect(x(from), top + 1, Math.max(1, x(to) - x(from)), middle - 2);
  }
  context.fillStyle = colour('--line');
  context.fillRect(0, middle - 0.5, width, 1);
  bars(context, {
    levels: heard,
    width,
    lengthMs,
    stepMs,
    colour: colour('--wave-heard'),
    at: middle / 2,
  });
  bars(context, {
    levels: said,
    width,
    lengthMs,
    stepMs,
    colour: colour('--wave-said'),
    at: middle + middle / 2,
  });
}

/** A bar for every two pixels, the loudest of what falls into it. */
function bars(context, { levels, width, lengthMs, stepMs, colour, at }) {
  context.fillStyle = colour;
  const most = height / 4 - 4;
  const perBar = lengthMs / stepMs / (width / 2);
  for (let bar = 0; bar < width / 2; bar += 1) {
    const from = Math.floor(bar * perBar);
    const to = Math.max(from + 1, Math.floor((bar + 1) * perBar));
    if (from >= levels.length) return;
    let level = 0;
    for (let index = from; index < Math.min(to, levels.length); index += 1)
      level = Math.max(level, levels[index]);
    // Logarithmic as it is, the soft half would fill the picture.
    const tall = Math.max(0.75, most * Math.max(0, (level - 30) / 97) ** 1.6);
    context.fillRect(bar * 2, at - tall, 1.5, tall * 2);
  }
}

function ticksOf(lengthMs) {
  const step =
    [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_800].find((s) => lengthMs / (s * 1_000) <= 10) ??
    3_600;
  const ticks = [];
  for (let ms = 0; ms < lengthMs * 0.95; ms += step * 1_000) ticks.push(ms);
  return ticks;
}

function describe({ heard, said, stepMs, lengthMs }, marks) {
  const soundMs = (levels) =>
    stretches(levels, stepMs).reduce((sum, [from, to]) => sum + (to - from) * stepMs, 0);
  const told = marks.map(({ label, atMs }) => `${label} at ${duration(atMs)}`).join(', ');
  return `${duration(lengthMs)} of sound: ${duration(soundMs(heard))} from the far end, ${duration(soundMs(said))} to it. ${told}`;
}
