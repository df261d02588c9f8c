// Shows the loudness of both sides of a call, with marks for detection and with lanes for words,
// the bot's `mark` messages and commands.

import { html } from './dom.js';
import { eventName } from './event-words.js';
import { between, duration, offset } from './format.js';
import { qualityLines } from './quality-words.js';
import { recordingItems } from './recording-clock.js';
import { SoundPicture } from './sound-picture.js';
import { rowsNear } from './timeline.js';
import { verdictMark } from './verdicts.js';

/**
 * @param clock see `recordingClock`. Undefined if the call isn't recorded
 * @param rows what happened, see `rowsOf`
 */
export function Waveform({ call, capture, clock, playback, rows }) {
  const { audio, notes, keptBy } = capture ?? {};
  // We don't show sound from before the answer, such as ringback.
  if (call.answeredAt === undefined) return null;
  const isBridged = call.timeline.some(({ type }) => type === 'transfer-answered');
  const isRecorded = call.recording !== undefined && call.recording.deletedAt === undefined;
  const caption = `${isRecorded ? '' : 'No audio is stored. '}Bands mark speech or other sound.${isBridged ? ' After a transfer is connected, its far end is shown below.' : ''}`;
  const lanes = audio && [
    ...recordingLane(clock, audio.startedAt),
    ...lanesOf(notes?.notes ?? [], audio.startedAt),
  ];
  const cursor = audio && {
    move: (ms) => playback.move(audio.startedAt + ms),
    point: (ms) => playback.point(audio.startedAt + ms),
    leave: playback.leave,
  };
  const over = (lengthMs) =>
    html`<${Cursor} call=${call} playback=${playback} rows=${rows} startedAtMs=${audio.startedAt} lengthMs=${lengthMs} />`;
  return html`<section aria-labelledby="sound">
    <h2 id="sound">Sound</h2>
    ${
      audio === undefined
        ? html`<p class="faint">${absence(call, keptBy)}</p>`
        : html`<${SoundPicture} audio=${audio} marks=${marksOf(call)} lanes=${lanes} caption=${caption} over=${over} cursor=${cursor} />
          <${Instant} call=${call} playback=${playback} rows=${rows} startedAtMs=${audio.startedAt} />`
    }
    ${call.quality && html`<${Quality} quality=${call.quality} />`}
  </section>`;
}

const steps = {
  ...{ ArrowLeft: -100, ArrowDown: -100, ArrowRight: 100, ArrowUp: 100 },
  ...{ PageDown: -5_000, PageUp: 5_000 },
};

/** The line through the picture. Keys move it, too. Drawn anew in each frame during playback. */
function Cursor({ call, playback, rows, startedAtMs, lengthMs }) {
  const cursorMs = playback.cursorMs.value;
  const atMs = Math.min(lengthMs, Math.max(0, (cursorMs ?? startedAtMs) - startedAtMs));
  const onKeyDown = (event) => {
    const ends = { Home: 0, End: lengthMs };
    const step = steps[event.key];
    const isPlay = event.key === ' ' && playback.isReady.value;
    if (step === undefined && ends[event.key] === undefined && !isPlay) return;
    event.preventDefault();
    if (isPlay) playback.toggle();
    else
      playback.move(startedAtMs + Math.min(lengthMs, Math.max(0, ends[event.key] ?? atMs + step)));
  };
  return html`<div class=${`cursor ${cursorMs === undefined ? 'idle' : ''}`} style=${{ left: `${(atMs / lengthMs) * 100}%` }}
    role="slider" tabindex="0" aria-label="Cursor, on the clock of the call" aria-valuemin="0" aria-valuemax=${lengthMs} aria-valuenow=${Math.round(atMs)}
    aria-valuetext=${instantWords(call, startedAtMs + atMs, rowsNear(rows, cursorMs))} onKeyDown=${onKeyDown}></div>`;
}

/** Says what is at the cursor. */
function Instant({ call, playback, rows }) {
  const cursorMs = playback.cursorMs.value;
  return html`<p class="instant faint">${
    cursorMs === undefined
      ? 'Point at the picture or at a row below, or use the arrow keys: one cursor shows the same instant in both.'
      : instantWords(call, cursorMs, rowsNear(rows, cursorMs))
  }</p>`;
}

/** How many rows are named at the cursor. */
const mostNamed = 4;

function instantWords(call, ms, near) {
  const sinceAnswer = ms - Date.parse(call.answeredAt);
  const clock = `${offset(ms - Date.parse(call.acceptedAt))} s since the request, ${offset(sinceAnswer)} s since the answer`;
  const named = near
    .slice(0, mostNamed)
    .map(({ label, note, kind }) => (kind === 'words' ? note : label));
  const more = near.length > mostNamed ? [`${near.length - mostNamed} more`] : [];
  return [clock, ...named, ...more].join(' · ');
}

/** How the line sounded, with the meaning of each figure. */
function Quality({ quality }) {
  return html`<dl class="quality" aria-label="Quality of the line">${qualityLines(quality).map(
    ({ name, value, meaning, tone = '' }) =>
      html`<div><dt>${name}</dt><dd><strong class=${tone}>${value}</strong> <span class="faint">${meaning}</span></dd></div>`,
  )}</dl>`;
}

function recordingLane(clock, startedAtMs) {
  if (clock === undefined) return [];
  return [{ kind: 'recording', name: 'Recording', items: recordingItems(clock, startedAtMs) }];
}

function absence(call, keptBy) {
  if (keptBy !== undefined)
    return `Node ${keptBy} keeps the loudness of this call until it ends. It is not responding at the moment.`;
  return call.state === 'ended' ? 'The loudness of this call was not stored.' : 'Listening…';
}

function marksOf(call) {
  return call.timeline.flatMap(({ type, time, data }) => {
    if (type === 'amd') return verdictMark(data.amd) ?? [];
    if (!isHeard.test(type)) return [];
    return { atMs: between(call.answeredAt, time), label: labelOf(type, data), tone: 'other' };
  });
}

/** Events that people can hear, and the end of the call. */
const isHeard = /^(dtmf|playback|transfer|completed)/;

function labelOf(type, data) {
  if (type === 'dtmf') return `Key ${data.digit}`;
  if (type === 'dtmf-sent') return `Keys ${data.digits}`;
  return type === 'completed' ? 'End' : eventName(type);
}

const laneNames = { words: 'Words', bot: 'Bot', command: 'Commands' };

function lanesOf(notes, startedAt) {
  const items = notes.flatMap((note) => itemsOf(note, startedAt));
  return Object.entries(laneNames).map(([kind, name]) => ({
    kind,
    name,
    items: items.filter(({ lane }) => lane === kind),
  }));
}

function itemsOf(note, startedAt) {
  const atMs = note.at - startedAt;
  if (note.kind === 'words') return [{ lane: 'words', atMs, text: note.text }];
  if (note.kind === 'clear')
    return [{ lane: 'bot', atMs, text: `clear ${duration(note.droppedMs)}`, tone: 'bad' }];
  if (note.kind === 'command')
    return [{ lane: 'command', atMs, text: note.what, tone: note.refusal && 'bad' }];
  if (note.kind !== 'mark') return [];
  const set = { lane: 'bot', atMs, text: `mark ${note.name}` };
  // If a mark doesn't follow any audio, it is returned immediately and isn't worth an item.
  if (note.returnedAt === undefined || note.returnedAt - note.at < 100) return [set];
  const backMs = note.returnedAt - startedAt;
  return [set, { lane: 'bot', atMs: backMs, text: `${note.name} returned`, tone: 'good' }];
}
