// Shows the loudness of both sides of a call, with marks for detection and with lanes for words,
// the bot's `mark` messages and commands.

import { html } from './dom.js';
import { between, duration } from './format.js';
import { recordingItems } from './recording-clock.js';
import { SoundPicture } from './sound-picture.js';
import { verdictMark } from './verdicts.js';

/** @param clock see `recordingClock`. Undefined if the call isn't recorded */
export function Waveform({ call, capture, clock, playback }) {
  const { audio, notes, keptBy } = capture ?? {};
  // We don't show sound from before the answer, such as ringback.
  if (call.answeredAt === undefined) return null;
  const isBridged = call.timeline.some(({ type }) => type === 'transfer-answered');
  const isRecorded = call.recording !== undefined && call.recording.deletedAt === undefined;
  const caption = `Above: loudness from the far end. Below: loudness sent to it. ${isRecorded ? '' : 'No audio is stored. '}Bands mark speech or other sound.${isBridged ? ' After a transfer is connected, its far end is shown below.' : ''}`;
  const lanes = audio && [
    ...recordingLane(clock, audio.startedAt),
    ...lanesOf(notes?.notes ?? [], audio.startedAt),
  ];
  const seek = (ms) => playback.seek(audio.startedAt + ms);
  const over = (lengthMs) =>
    html`<${Cursor} playback=${playback} startedAtMs=${audio.startedAt} lengthMs=${lengthMs} />`;
  return html`<section aria-labelledby="sound">
    <h2 id="sound">Sound</h2>
    ${
      audio === undefined
        ? html`<p class="faint">${absence(call, keptBy)}</p>`
        : html`<${SoundPicture} audio=${audio} marks=${marksOf(call)} lanes=${lanes} caption=${caption} over=${over} seek=${playback.isReady.value ? seek : undefined} />`
    }
  </section>`;
}

/** Drawn anew in each frame while the recording plays. */
function Cursor({ playback, startedAtMs, lengthMs }) {
  const ms = playback.cursorMs.value;
  if (ms === undefined) return null;
  const part = Math.min(1, Math.max(0, (ms - startedAtMs) / lengthMs));
  return html`<div class="cursor" style=${{ left: `${part * 100}%` }} aria-hidden="true"></div>`;
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
  if (type === 'dtmf') return `key ${data.digit}`;
  if (type === 'dtmf-sent') return `keys ${data.digits}`;
  return type === 'completed' ? 'end' : type;
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
