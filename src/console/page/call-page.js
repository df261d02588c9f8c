// The page for one call, with its outcome, its sound, and a timeline of everything that happened.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { api, onEvent, session } from './api.js';
import { storyOf } from './call-story.js';
import { detectionModeWords, faultWords, reasonCodeWords, wordOf } from './code-words.js';
import { Coded } from './coded.js';
import { html } from './dom.js';
import { fullTime, numberOf } from './format.js';
import { lastList } from './last-list.js';
import { Lasting, Title, Trouble } from './parts.js';
import { callerNumber, phoneNumber } from './phone-numbers.js';
import { createPlayback } from './playback.js';
import { useReading } from './reading.js';
import { recordingClock } from './recording-clock.js';
import { Recording } from './recording-player.js';
import { ResultBadge } from './result-badge.js';
import { rowsOf } from './rows.js';
import { Timeline } from './timeline.js';
import { Verdicts } from './verdicts.js';
import { Waveform } from './waveform.js';

const shortestPauseMs = 400;
/** Changes in loudness don't cause events, so we poll during the call. */
const duringCallMs = 1_500;
const whileStoringMs = 15_000;

export function CallPage({ id: callId }) {
  const { value, error, again } = useCall(callId);
  const { call, notifications, capture } = value ?? {};
  const playback = useMemo(createPlayback, [callId]);
  const metadata = useRecordingMetadata(call);
  if (error && !call) {
    const isGone = error.status === 404;
    return html`<${Title}>${isGone ? 'No such call' : 'The call cannot be shown'}</${Title}>
      ${isGone ? html`<p>There is no call with this id, it is no longer stored, or it belongs to another account. <a href="#/calls">All calls</a></p>` : html`<${Trouble} error=${error} again=${again} />`}`;
  }
  if (!call) return html`<p aria-busy="true" class="faint">Reading the call…</p>`;
  const clock = recordingClock(call, metadata);
  const rows = rowsOf({ call, notifications, capture });
  return html`
    <p class="back"><a href=${lastList()}>← ${lastList() === '#/calls' ? 'All calls' : 'The calls before'}</a></p>
    <${Head} call=${call} />
    ${error && html`<${Trouble} error=${error} again=${again} />`}
    <${Story} call=${call} />
    <${Facts} call=${call} />
    <${Waveform} call=${call} capture=${capture} clock=${clock} playback=${playback} rows=${rows} />
    <${Recording} key=${callId} call=${call} clock=${clock} playback=${playback} again=${again} />
    <${Verdict} call=${call} />
    <${Timeline} call=${call} rows=${rows} capture=${capture} playback=${playback} />
    <${Metadata} metadata=${call.metadata} />
  `;
}

/** Reads the whole call, and again after each of its events. */
function useCall(callId) {
  return useReading({
    key: callId,
    load: () => readCall(callId),
    pauseMs: shortestPauseMs,
    again: nextReading,
    watch: (soon) =>
      onEvent((event) => {
        if (event === undefined || event.callId === callId) soon();
      }),
  });
}

/**
 * Reads the metadata of a stored recording, once. Events say nearly the same, so the page does
 * without it if it can't be read.
 */
function useRecordingMetadata(call) {
  const [known, setKnown] = useState({});
  const { callId, recording } = call ?? {};
  const isStored = recording?.state === 'stored' && recording.deletedAt === undefined;
  const mayRead = session.value?.app.scopes.includes('Recordings') === true;
  useEffect(() => {
    if (!isStored || !mayRead) return;
    api.recordingMetadata(callId).then(
      (metadata) => setKnown({ callId, metadata }),
      () => undefined,
    );
  }, [callId, isStored, mayRead]);
  return known.callId === callId ? known.metadata : undefined;
}

async function readCall(callId) {
  const call = await api.call(callId);
  const [{ notifications }, capture] = await Promise.all([
    api.notifications(call.botId, callId),
    api.capture(callId),
  ]);
  return { call, notifications, capture };
}

function nextReading({ value, error }) {
  if (error !== undefined) return error.status === 404 ? undefined : 3_000;
  if (mayChange(value)) return duringCallMs;
  // An event says when it is stored, but not when a recording that waits for its store is deleted.
  return value.call.recording?.state === 'storing' ? whileStoringMs : undefined;
}

/** Delivery attempts and captures change without an event. */
function mayChange({ call, notifications, capture }) {
  if (call.state !== 'ended') return true;
  const isFresh = Date.now() - Date.parse(call.endedAt) < 10_000;
  return (
    notifications.some(({ state }) => state === 'pending') ||
    (isFresh && !(capture.sip && capture.audio))
  );
}

function Head({ call }) {
  const [error, setError] = useState(undefined);
  const [isEnding, setEnding] = useState(false);
  const bar = useRef(null);
  const hasEnded = call.state === 'ended';
  useEffect(() => {
    // The focus was on the button that the user pressed, which has disappeared.
    if (hasEnded && isEnding) bar.current?.querySelector('h1').focus({ preventScroll: true });
  }, [hasEnded]);
  const hangUp = async () => {
    setEnding(true);
    try {
      await api.hangUp(call.botId, call.callId);
    } catch (problem) {
      setError(problem);
      setEnding(false);
    }
  };
  const files = `console/api/calls/${encodeURIComponent(call.callId)}`;
  return html`
    <div class="bar" ref=${bar}>
      <${Title}>${phoneNumber(numberOf(call.target))}</${Title}>
      <${ResultBadge} call=${call} isAnnounced />
      <span class="grow line"></span>
      <a class="button" href=${`${files}/export.json`} download>Export JSON</a>
      <a class="button" href=${`${files}/sip.pcap`} download>Export pcap</a>
      ${!hasEnded && html`<button type="button" class="danger" disabled=${isEnding} onClick=${hangUp}>${call.answeredAt ? 'Hang up' : 'Cancel'}</button>`}
    </div>
    ${error && html`<${Trouble} error=${error} />`}`;
}

/** What happened, in sentences. */
function Story({ call }) {
  return html`<p class="story">${storyOf(call, phoneNumber).map(
    ({ text, code }) => html`<${Coded} text=${text} code=${code} /> `,
  )}</p>`;
}

function Facts({ call }) {
  const facts = [
    ['Campaign', call.campaign],
    [
      'At fault',
      call.fault && html`<${Coded} text=${wordOf(faultWords, call.fault)} code=${call.fault} />`,
    ],
    ['Reason', call.reason && html`<${Reason} call=${call} />`],
    ['Cause', call.cause && causeWords(call.cause)],
    ['Blocked by', call.block && html`<${Block} block=${call.block} />`],
    ['Warning', call.warning],
    ['Retry after', call.retryAfterS !== undefined ? `${call.retryAfterS} s` : undefined],
    ['Reached', call.connectedIdentity && phoneNumber(call.connectedIdentity)],
    ['Position in the queue', call.queuePosition],
    ['From', callerNumber(call.caller)],
    ['Bot', call.botId],
    ['Trunk', call.trunk],
    [
      'Detection',
      html`<${Coded} text=${wordOf(detectionModeWords, call.machineDetection)} code=${call.machineDetection} />`,
    ],
    ['Accepted', fullTime(call.acceptedAt)],
    ['Rang', lasted(call.ringingAt, call.answeredAt ?? call.endedAt)],
    ['Talked', lasted(call.answeredAt, call.endedAt)],
    ['Call id', call.callId],
  ];
  return html`<dl class="facts">
    ${facts
      .filter(([, value]) => value !== undefined && value !== '')
      .map(
        ([name, value]) =>
          html`<div class=${name === 'Call id' ? 'long' : ''}><dt>${name}</dt><dd>${value}</dd></div>`,
      )}
  </dl>`;
}

function Reason({ call: { reason, reasonCode } }) {
  if (reasonCode === undefined) return reason;
  return html`${reason} · <${Coded} text=${wordOf(reasonCodeWords, reasonCode)} code=${reasonCode} />`;
}

function causeWords({ q850, sip, text }) {
  const codes = [q850 !== undefined && `Q.850 ${q850}`, sip !== undefined && `SIP ${sip}`];
  return [...codes, text].filter(Boolean).join(' · ');
}

/** The carrier's words about a block. The gateway passes on only web addresses in `url`. */
function Block({ block }) {
  const { by, url, tel, email, id, raw } = block;
  if ([by, url, tel, email, id].every((value) => value === undefined)) return raw;
  const link = url && html`<a href=${url} target="_blank" rel="noopener noreferrer">${by}</a>`;
  const others = [tel, email, id && `id ${id}`].filter(Boolean);
  return html`${link ?? by ?? ''}${others.length > 0 && ` ${others.join(' · ')}`}`;
}

const lasted = (from, to) => from && html`<${Lasting} from=${from} to=${to} />`;

/** Detection's events, each with its evidence. */
function Verdict({ call }) {
  const events = call.timeline.filter(({ type }) => type === 'amd').map(({ data }) => data.amd);
  if (events.length === 0) return null;
  return html`<section aria-labelledby="verdict">
    <h2 id="verdict">Detection</h2>
    <${Verdicts} events=${events} />
  </section>`;
}

function Metadata({ metadata }) {
  if (Object.keys(metadata ?? {}).length === 0) return null;
  return html`<section aria-labelledby="metadata">
    <h2 id="metadata">Metadata</h2>
    <pre class="body">${JSON.stringify(metadata, null, 2)}</pre>
  </section>`;
}
