// Draws the loudness of a call or a recording on a time axis, with marks above it and lanes below.
// We don't use a chart library, because all marks must be part of this one picture. A text
// describes the picture for screen readers. The console's call page and `offhook amd --plot` both
// use this component.

import { useEffect, useRef, useState } from 'preact/hooks';
import { html } from './dom.js';
import { duration, labelPixels } from './format.js';
import { Lanes } from './lanes.js';

/** We treat anything softer as line noise. The loudest level is 127. */
const quiet = 50;
/** Pauses shorter than this don't split a stretch of sound. */
const shortestPauseMs = 300;
const height = 150;
/** Height of a side's name, above its loudness. */
const namePixels = 17;
/** An axis label needs this much room. */
const axisLabelPixels = 52;
const darkness = matchMedia('(prefers-color-scheme: dark)');

/**
 * `audio` is the loudness, as base64 with one byte per `stepMs`. `heard` is what arrived from the
 * far end of the call, and `said` is what we sent to it (undefined if only one side was recorded).
 * `marks` are `{ atMs, label, tone }`. For `lanes`, see `Lanes`. `cursor` has `move`, `point` and
 * `leave`: the user clicks at, points at, or leaves these milliseconds. `over` returns what is
 * drawn above it all, and gets the length in ms.
 */
export function SoundPicture({ audio, marks, lanes, caption, cursor, over }) {
  const box = useRef(null);
  const canvas = useRef(null);
  const [width, setWidth] = useState(0);
  const shown = decode(audio);
  const { lengthMs } = shown;
  const placedMarks = placed(marks, lengthMs, width);
  // The lines of marks cross the picture below their labels.
  const marksHeight = markPixels * (1 + Math.max(0, ...placedMarks.map(({ level }) => level)));
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (width <= 0) return undefined;
    const drawNow = () => draw(canvas.current, width, shown);
    drawNow();
    // Unlike the rest of the page, a canvas has to be redrawn when the colour scheme changes.
    darkness.addEventListener('change', drawNow);
    return () => darkness.removeEventListener('change', drawNow);
  });
  return html`<figure class="wave" ref=${box}>
    <div class=${`plane ${cursor ? 'timed' : ''}`} ...${cursor ? pointing(cursor, lengthMs) : {}}>
    <div class="marks" style=${{ '--marks': `${marksHeight}px` }} aria-hidden="true">${placedMarks.map((mark) => html`<${Mark} mark=${mark} />`)}</div>
    <div class="sides">
      ${shown.sides.map(({ name }, index) => html`<span class="lane-name" style=${{ top: `${(index * height) / shown.sides.length}px` }} aria-hidden="true">${name[0].toUpperCase()}${name.slice(1)}</span>`)}
      <canvas ref=${canvas} role="img" aria-label=${describe(shown, marks)} height=${height}></canvas>
    </div>
    <div class="axis" aria-hidden="true">${ticksOf(lengthMs, width).map((ms) => html`<span style=${{ left: `${(ms / lengthMs) * 100}%` }}>${ms / 1_000} s</span>`)}</div>
    ${width > 0 && html`<${Lanes} lanes=${lanes} lengthMs=${lengthMs} width=${width} />`}
    ${over?.(lengthMs)}
    </div>
    <figcaption class="faint">${caption}</figcaption>
  </figure>`;
}

/** Returns listeners for where the user points, clicks and drags. */
function pointing({ move, point, leave }, lengthMs) {
  const msAt = ({ currentTarget, clientX }) => {
    const { left, width } = currentTarget.getBoundingClientRect();
    return Math.min(1, Math.max(0, (clientX - left) / width)) * lengthMs;
  };
  return {
    onPointerDown: (event) => {
      if (event.button !== 0) return;
      event.currentTarget.setPointerCapture(event.pointerId);
      move(msAt(event));
    },
    onPointerMove: (event) => {
      if (event.pointerType === 'mouse') point(msAt(event));
      if (event.currentTarget.hasPointerCapture(event.pointerId)) move(msAt(event));
    },
    onPointerLeave: leave,
  };
}

/**
 * Near the right edge, the label is drawn to the left of its line. If there's no room for the
 * label, the mark is only a line with a tooltip.
 */
function Mark({ mark: { x, tone, side, level, label, title } }) {
  return html`<span class=${`mark ${tone} ${side} level-${level}`} style=${{ left: `${x}px` }} title=${title}>${level >= 0 && html`<span>${label}</span>`}</span>`;
}

const markLevels = 4;
const markPixels = 19;

/** Places each label on the first level that has room for it. */
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

function decode({ heard, said, stepMs }) {
  const sides = [
    { levels: bytes(heard), colour: '--wave-heard', name: 'from the far end' },
    ...(said === undefined
      ? []
      : [{ levels: bytes(said), colour: '--wave-said', name: 'to the far end' }]),
  ];
  return { sides, stepMs, lengthMs: Math.max(1_000, sides[0].levels.length * stepMs) };
}

const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/** Returns the stretches of sound as [from, to], in steps. */
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

function draw(canvas, width, { sides, stepMs, lengthMs }) {
  const ratio = devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const context = canvas.getContext('2d');
  context.scale(ratio, ratio);
  // A canvas can't use CSS variables, so we set each variable as the element's colour and let the
  // browser resolve it for the dark or the light scheme.
  const paint = (name) => {
    canvas.style.color = `var(${name})`;
    context.fillStyle = getComputedStyle(canvas).color;
  };
  const whole = height / sides.length;
  const tall = whole - namePixels;
  const x = (step) => ((step * stepMs) / lengthMs) * width;
  for (const [index, { levels, colour }] of sides.entries()) {
    const top = index * whole + namePixels;
    paint('--wave-band');
    for (const [from, to] of stretches(levels, stepMs))
      context.fillRect(x(from), top + 1, Math.max(1, x(to) - x(from)), tall - 2);
    paint('--line');
    if (index > 0) context.fillRect(0, index * whole - 0.5, width, 1);
    paint(colour);
    const perBar = lengthMs / stepMs / (width / 2);
    bars(context, { levels, perBar, middle: top + tall / 2, most: tall / 2 - 4 });
  }
}

/** Draws one bar for every two pixels, as high as the loudest step in these pixels. */
function bars(context, { levels, perBar, middle, most }) {
  for (let bar = 0; bar * perBar < levels.length; bar += 1) {
    const from = Math.floor(bar * perBar);
    const to = Math.max(from + 1, Math.floor((bar + 1) * perBar));
    const level = Math.max(...levels.subarray(from, to));
    // The levels are logarithmic. Without the power, soft sound would fill half of the picture.
    const tall = Math.max(0.75, most * Math.max(0, (level - 30) / 97) ** 1.6);
    context.fillRect(bar * 2, middle - tall, 1.5, tall * 2);
  }
}

function ticksOf(lengthMs, width) {
  const most = Math.max(2, Math.min(10, Math.floor(width / axisLabelPixels)));
  const step =
    [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_800].find((s) => lengthMs / (s * 1_000) <= most) ??
    3_600;
  const ticks = [];
  for (let ms = 0; ms < lengthMs * 0.95; ms += step * 1_000) ticks.push(ms);
  return ticks;
}

function describe({ sides, stepMs, lengthMs }, marks) {
  const heard = sides.map(({ levels, name }) => {
    const steps = stretches(levels, stepMs).reduce((sum, [from, to]) => sum + to - from, 0);
    return `${duration(steps * stepMs)} ${name}`;
  });
  const marked = marks.map(({ label, atMs }) => `${label} at ${duration(atMs)}`).join(', ');
  return `${duration(lengthMs)} of sound: ${heard.join(', ')}. ${marked}`;
}
