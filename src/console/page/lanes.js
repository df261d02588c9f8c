// Lanes below the waveform, on the same time axis: words, marks, commands and findings. If there's
// no room for an item's text, we only draw a tick.

import { html } from './dom.js';
import { duration, labelPixels } from './format.js';

const levels = 4;
/** Height of the lane's name, and of each level of labels below the name. */
const levelPixels = 18;
/** Height of the ticks without a label, below all labels. */
const barePixels = 11;
const longestLabel = 24;

/**
 * Items are `{ atMs, text, tone }`. An item with `untilMs` is drawn as a bar without text. Empty
 * lanes aren't shown.
 */
export function Lanes({ lanes, lengthMs, width }) {
  return lanes.map(({ kind, name, items }) => {
    const shown = items.filter(({ atMs }) => atMs >= 0 && atMs <= lengthMs);
    if (shown.length === 0) return null;
    const ticks = placed(shown, lengthMs, width);
    return html`<div class=${`note-lane ${kind}`} style=${{ height: `${heightOf(ticks)}px` }} aria-hidden="true"><span class="lane-name">${name}</span>
      ${ticks.map(
        ({ x, wide, level, label, title, tone = '', isLabelled }) =>
          html`<span class=${`tick ${tone} level-${level} ${isLabelled ? '' : 'bare'}`} style=${{ left: `${x}px`, width: wide }} title=${title}>${isLabelled ? label : ''}</span>`,
      )}</div>`;
  });
}

function heightOf(ticks) {
  const used = ticks.filter(({ isLabelled }) => isLabelled).map(({ level }) => level + 1);
  const isBare = ticks.some(({ isLabelled }) => !isLabelled);
  return levelPixels * (1 + Math.max(0, ...used)) + (isBare ? barePixels : 4);
}

/** Places the items at their times, and each label on the first level that has room for it. */
function placed(items, lengthMs, width) {
  const ends = Array.from({ length: levels }, () => Number.NEGATIVE_INFINITY);
  const xOf = (ms) => Math.round((ms / lengthMs) * width);
  return items.map(({ atMs, untilMs, text, tone }) => {
    const x = xOf(atMs);
    if (untilMs !== undefined) {
      const wide = `${Math.max(2, xOf(Math.min(untilMs, lengthMs)) - x)}px`;
      const title = `${duration(atMs)} to ${duration(Math.min(untilMs, lengthMs))}: ${text}`;
      return { x, wide, title, tone, isLabelled: false, level: 0 };
    }
    const label = text.length > longestLabel ? `${text.slice(0, longestLabel - 1)}…` : text;
    const end = x + labelPixels(label);
    const level = ends.findIndex((taken) => taken <= x);
    const isLabelled = level >= 0 && end <= width;
    if (isLabelled) ends[level] = end;
    const title = `${duration(atMs)}: ${text}`;
    return { x, title, tone, label, isLabelled, level: isLabelled ? level : 0 };
  });
}
