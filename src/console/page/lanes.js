// Beside the waveform, by its clock: what was said as words, what the bot marked and took back, what was asked for. What has no room
// is a tick, and stands in the list below.

import { html } from './dom.js';
import { duration, labelPixels } from './format.js';

const names = { words: 'Words', bot: 'Bot', command: 'Commands' };
const levels = 4;
/** Of the lane's name, and of each level below it. */
const levelPixels = 18;
/** Ticks that have no label stand below, and through no text. */
const barePixels = 11;
const longestLabel = 24;

export function Lanes({ notes, audio, lengthMs, width }) {
  const items = notes.flatMap((note) => itemsOf(note, audio.startedAt));
  return Object.entries(names).map(([lane, name]) => {
    const ofLane = items.filter(
      (item) => item.lane === lane && item.atMs >= 0 && item.atMs <= lengthMs,
    );
    if (ofLane.length === 0) return null;
    const ticks = placed(ofLane, lengthMs, width);
    return html`<div class=${`note-lane ${lane}`} style=${{ height: `${heightOf(ticks)}px` }} aria-hidden="true"><span class="lane-name">${name}</span>
      ${ticks.map(
        ({ x, level, label, title, tone, isLabelled }) =>
          html`<span class=${`tick ${tone} level-${level} ${isLabelled ? '' : 'bare'}`} style=${{ left: `${x}px` }} title=${title}>${isLabelled ? label : ''}</span>`,
      )}</div>`;
  });
}

function itemsOf(note, startedAt) {
  const atMs = note.at - startedAt;
  if (note.kind === 'words') return [item('words', atMs, note.text, '')];
  if (note.kind === 'clear') return [item('bot', atMs, `clear ${duration(note.droppedMs)}`, 'bad')];
  if (note.kind === 'command')
    return [item('command', atMs, note.what, note.refusal === undefined ? '' : 'bad')];
  if (note.kind !== 'mark') return [];
  const set = item('bot', atMs, `mark ${note.name}`, '');
  // A mark without audio before it comes back at once.
  if (note.returnedAt === undefined || note.returnedAt - note.at < 100) return [set];
  return [set, item('bot', note.returnedAt - startedAt, `${note.name} came back`, 'good')];
}

function item(lane, atMs, text, tone) {
  const label = text.length > longestLabel ? `${text.slice(0, longestLabel - 1)}…` : text;
  return { lane, atMs, label, title: `${duration(atMs)}: ${text}`, tone };
}

function heightOf(ticks) {
  const used = ticks.filter(({ isLabelled }) => isLabelled).map(({ level }) => level + 1);
  const isBare = ticks.some(({ isLabelled }) => !isLabelled);
  return levelPixels * (1 + Math.max(0, ...used)) + (isBare ? barePixels : 4);
}

/** Each where it belongs; a label on the first level that has room for it. */
function placed(items, lengthMs, width) {
  const ends = Array.from({ length: levels }, () => Number.NEGATIVE_INFINITY);
  return items.map((one) => {
    const x = Math.round((one.atMs / lengthMs) * width);
    const wide = labelPixels(one.label);
    const level = ends.findIndex((end) => end <= x);
    const isLabelled = level >= 0 && x + wide <= width;
    if (isLabelled) ends[level] = x + wide;
    return { ...one, x, isLabelled, level: isLabelled ? level : 0 };
  });
}
