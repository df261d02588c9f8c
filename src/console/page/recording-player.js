// A call's recording below its waveform: what became of it, a player, and buttons to download and
// delete it.

import { useEffect, useRef, useState } from 'preact/hooks';
import { api, recordingAddress, session } from './api.js';
import { html } from './dom.js';
import { duration, offset } from './format.js';
import { Question, Trouble } from './parts.js';
import { pauseWords, recordingWords } from './recording-words.js';

/** @param clock see `recordingClock`. Undefined if recording hasn't begun */
export function Recording({ call, clock, playback, again }) {
  const { recording } = call;
  const heading = useRef(null);
  const isStored = recording?.state === 'stored' && recording.deletedAt === undefined;
  const [isAsking, setAsking] = useState(false);
  const wasAsked = useRef(false);
  const isDeleted = recording?.deletedAt !== undefined;
  useEffect(() => {
    // The focus was on the button that the user pressed, which has disappeared.
    if (isDeleted && wasAsked.current) heading.current?.focus({ preventScroll: true });
  }, [isDeleted, isAsking]);
  if (recording === undefined) return null;
  const mayRead = session.value?.app.scopes.includes('Recordings') === true;
  const canDelete =
    mayRead && !isDeleted && call.state === 'ended' && (isStored || recording.state === 'storing');
  const ask = () => {
    wasAsked.current = true;
    setAsking(true);
  };
  return html`<section aria-labelledby="recording">
    <h2 id="recording" tabindex="-1" ref=${heading}>Recording</h2>
    <div class="recorder">
      <div class="bar">
        <${State} call=${call} clock=${clock} />
        <span class="grow"></span>
        ${isStored && mayRead && html`<a class="button" href=${recordingAddress(call)} download>Download</a>`}
        ${canDelete && html`<button type="button" class="danger" onClick=${ask}>Delete…</button>`}
      </div>
      ${isStored && html`<${Stored} call=${call} clock=${clock} playback=${playback} again=${again} mayRead=${mayRead} />`}
    </div>
    ${isAsking && html`<${Deletion} call=${call} again=${again} close=${() => setAsking(false)} />`}
  </section>`;
}

function State({ call: { recording, timeline }, clock }) {
  const startedAt = timeline.find(({ type }) => type === 'recording-started')?.data.startedAt;
  const pausedBy = timeline.findLast(({ type }) => type === 'recording-paused')?.data.by;
  const { tone, text } = recordingWords({ recording: { ...recording, pausedBy }, startedAt });
  const isKept = recording.state === 'stored' && recording.deletedAt === undefined;
  const details = [
    isKept && clock && pauseWords(clock),
    recording.incomplete && 'Not everything could be recorded.',
  ].filter(Boolean);
  return html`<p class="state"><span class=${`status ${tone}`} role="status">${text}</span> ${details.join(' ')}</p>`;
}

function Stored({ call, clock, playback, again, mayRead }) {
  const { key } = call.recording;
  if (!mayRead)
    return html`<p class="faint">Only apps with the scope <code>Recordings</code> may listen to it.</p>`;
  if (key !== undefined)
    return html`<p>This recording is encrypted with the key <strong>${key}</strong>. Download it and use <code>offhook recording decrypt</code>.</p>`;
  // Nobody knows how long it is until its metadata has been read.
  if (clock?.durationMs === undefined) return null;
  return html`<${Player} call=${call} clock=${clock} playback=${playback} again=${again} />`;
}

function Player({ call, clock, playback, again }) {
  const audio = useRef(null);
  const [error, setError] = useState(undefined);
  // Each reading of the call makes a new clock, mostly with the same content.
  const clockText = JSON.stringify(clock);
  useEffect(() => playback.connect(audio.current, clock), [clockText]);
  const explain = async () => {
    setError(await whyUnplayable(call));
    // It may have been deleted meanwhile.
    again();
  };
  const toggle = () => {
    if (error !== undefined) audio.current.load();
    setError(undefined);
    playback.toggle();
  };
  return html`
    <audio ref=${audio} src=${recordingAddress(call)} preload="none" onError=${explain}></audio>
    <div class="player" role="group" aria-label="Player">
      <button type="button" class="play" onClick=${toggle}><span class=${`sign ${playback.isPlaying.value ? 'pause' : ''}`} aria-hidden="true"></span>${playback.isPlaying.value ? 'Pause' : 'Play'}</button>
      <${Position} call=${call} clock=${clock} playback=${playback} toggle=${toggle} />
    </div>
    ${error && html`<${Trouble} error=${error} />`}
    <p class="faint">Left channel: what the person said. Right channel: what was said to the person. Click the waveform to listen from there, or use the arrow keys in the player.</p>`;
}

const steps = {
  ArrowLeft: -1_000,
  ArrowDown: -1_000,
  ArrowRight: 1_000,
  ArrowUp: 1_000,
  PageDown: -10_000,
  PageUp: 10_000,
};

/** Drawn anew in each frame while the recording plays. */
function Position({ call, clock, playback, toggle }) {
  const { startedAtMs, durationMs } = clock;
  const atMs = (playback.playedMs.value ?? startedAtMs) - startedAtMs;
  const shown = `${duration(atMs)} of ${duration(durationMs)}`;
  const onKeyDown = (event) => {
    const step = steps[event.key];
    if (step === undefined && event.key !== ' ') return;
    event.preventDefault();
    if (step === undefined) toggle();
    else playback.move(startedAtMs + atMs + step);
  };
  return html`
    <input type="range" aria-label="Position" min="0" max=${durationMs} step="any" value=${atMs} aria-valuetext=${shown} onKeyDown=${onKeyDown}
      onInput=${(event) => playback.move(startedAtMs + Number(event.currentTarget.value))} />
    <span class="place">${shown}</span>
    <span class="place faint" title="Time of the call, as in the list below">${offset(startedAtMs + atMs - Date.parse(call.acceptedAt))}</span>`;
}

/** The audio element doesn't say why it failed, so we ask the gateway for a byte. */
async function whyUnplayable(call) {
  try {
    await api.probeRecording(call);
    return new Error('This browser cannot play the recording (WAV with µ-law). Download it.');
  } catch (error) {
    return error;
  }
}

function Deletion({ call, again, close }) {
  const agree = async () => {
    await api.removeRecording(call);
    again();
  };
  return html`<${Question} title="Delete the recording?" yes="Delete" agree=${agree} close=${close}>
    <p>It is removed from its store and cannot be restored. The call then says when it was deleted, and by which app.</p>
  </${Question}>`;
}
