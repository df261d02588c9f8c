// A call's timeline, with SIP messages between the gateway and the far ends of the call, events,
// commands, the bot's `mark` and `clear` messages, and delivery attempts. Each row can be opened to
// show its details.

import { effect } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { Coded } from './coded.js';
import { html } from './dom.js';
import { fullTime, offset } from './format.js';
import { kinds } from './rows.js';

/** @param rows see `rowsOf` */
export function Timeline({ call, rows: all, capture, playback }) {
  const [hidden, setHidden] = useState([]);
  const rows = all.filter(({ kind }) => !hidden.includes(kind));
  const { reached, near } = useCursor(rows, playback.cursorMs);
  const toggle = (kind) =>
    setHidden(hidden.includes(kind) ? hidden.filter((other) => other !== kind) : [...hidden, kind]);
  const start = Date.parse(call.acceptedAt);
  // A bridged call has two legs, so the gateway's column is between the two far ends.
  const isBridged = all.some(({ leg }) => leg > 0);
  const present = Object.entries(kinds).filter(([kind]) => all.some((row) => row.kind === kind));
  return html`<section aria-labelledby="timeline">
    <div class="bar">
      <h2 id="timeline">What happened</h2>
      <div class="toggles" role="group" aria-label="Shown">
        ${present.map(
          ([kind, name]) =>
            html`<button type="button" class="toggle" aria-pressed=${!hidden.includes(kind)} onClick=${() => toggle(kind)}>${name}</button>`,
        )}
      </div>
    </div>
    <ol class=${`timeline ${isBridged ? 'bridged' : ''}`}>
      <li class="lanes" aria-hidden="true"><span>seconds</span>${isBridged && html`<span>Transfer</span>`}<span>Gateway</span><span>Far end</span><span>Events, commands, notifications</span></li>
      ${rows.map((row) => html`<${Row} key=${row.key} row=${row} start=${start} isBridged=${isBridged} isReached=${row.key === reached} isNear=${near.includes(row.key)} playback=${playback} />`)}
    </ol>
    <${Notes} capture=${capture} call=${call} />
  </section>`;
}

/** Rows this close to the cursor are marked. */
const nearMs = 150;
const nowhere = { reached: undefined, near: [] };

/** Returns the rows that happened near the cursor's time. */
export const rowsNear = (rows, cursorMs) =>
  cursorMs === undefined
    ? []
    : rows.filter(({ at }) => Math.abs(Date.parse(at) - cursorMs) <= nearMs);

/**
 * Returns the key of the last row that the cursor has reached, and the keys of those near it. The
 * cursor may move in each frame, so this renders again only if other rows are near.
 */
function useCursor(rows, cursorMs) {
  const [found, setFound] = useState(nowhere);
  useEffect(() => {
    const times = rows.map(({ at }) => Date.parse(at));
    return effect(() => {
      const ms = cursorMs.value;
      const index = ms === undefined ? -1 : times.findLastIndex((time) => time <= ms);
      const next = { reached: rows[index]?.key, near: rowsNear(rows, ms).map(({ key }) => key) };
      setFound((before) => (JSON.stringify(before) === JSON.stringify(next) ? before : next));
    });
  }, [rows]);
  return found;
}

function Notes({ capture, call }) {
  if (!capture) return null;
  const notes = [];
  if (capture.keptBy !== undefined)
    notes.push(
      `Node ${capture.keptBy} keeps SIP messages, marks and commands until the call ends. It is not responding at the moment.`,
    );
  else if (!capture.sip) {
    notes.push(
      call.state === 'ended'
        ? 'No SIP messages were kept for this call: either none were sent, or its gateway was lost.'
        : 'No SIP message yet.',
    );
  }
  if (capture.sip?.left > 0)
    notes.push(`${capture.sip.left} SIP messages were not kept: the call had too many.`);
  if (capture.notes?.left > 0)
    notes.push(
      `${capture.notes.left} marks, words and commands were not kept: the call had too many.`,
    );
  if (capture.sip && capture.isDrachtio) {
    notes.push(
      'SIP as reported by drachtio. It does not report what it sends on its own, e.g. the ACK of a refusal, the answer to a CANCEL, and retransmissions.',
    );
  } else if (capture.sip)
    notes.push(
      'The SIP engine does not report what it sends on its own: the ACK for a refusal, the response to a CANCEL, and retransmissions.',
    );
  return notes.map((note) => html`<p class="faint">${note}</p>`);
}

function Row({ row, start, isBridged, isReached, isNear, playback }) {
  const [isOpen, setOpen] = useState(false);
  const { kind, at, label, code, note, noteCode, tone, parts = [], detail } = row;
  const atMs = Date.parse(at);
  const canPlay = isOpen && playback.isReady.value && playback.covers(atMs);
  const classes = ['row', kind, tone, isReached && 'reached', isNear && 'near'].filter(Boolean);
  return html`<li class=${classes.join(' ')} aria-current=${isReached ? 'true' : undefined} ...${pointing(playback, atMs)}>
    <button type="button" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>
      <time title=${fullTime(at)} datetime=${at}>${offset(atMs - start)}</time>
      ${
        kind === 'sip'
          ? html`<${Ladder} row=${row} isBridged=${isBridged} />`
          : html`<${Lifelines} isBridged=${isBridged} /><span class="what"><span class="label"><${Coded} text=${label} code=${code} /></span> ${note && html`<span class="note"><${Coded} text=${note} code=${noteCode} /></span>`}</span>`
      }
    </button>
    ${canPlay && html`<div class="from-here"><button type="button" onClick=${() => playback.playFrom(atMs)}>Play from here</button></div>`}
    ${isOpen && parts.length > 0 && html`<${Parts} parts=${parts} start=${start} />`}
    ${isOpen && html`<pre class="body">${detail()}</pre>`}
  </li>`;
}

/** The cursor is at the row that the pointer or the focus is on. */
function pointing(playback, atMs) {
  return {
    onPointerEnter: ({ pointerType }) => pointerType === 'mouse' && playback.point(atMs),
    onPointerLeave: playback.leave,
    onFocusIn: () => playback.point(atMs),
    onFocusOut: playback.leave,
  };
}

/** The attempts to deliver a notification. */
function Parts({ parts, start }) {
  return html`<ol class="parts">${parts.map(
    ({ at, time, text, code, tone = '' }) =>
      html`<li class=${tone}><time title=${time} datetime=${at}>${offset(Date.parse(at) - start)}</time> <${Coded} text=${text} code=${code} /></li>`,
  )}</ol>`;
}

/** Draws an arrow between the gateway and the far end of the leg. */
function Ladder({ row: { arrow, label, leg }, isBridged }) {
  const drawn = html`<span class=${`ladder ${arrow} ${leg > 0 ? 'second' : ''}`}>
    <span class="hidden">${leg > 0 ? 'second leg, ' : ''}${arrow === 'out' ? 'sent: ' : 'received: '}</span>
    <span class="label">${label}${leg > 1 ? ` · transfer ${leg}` : ''}</span><span class="line" aria-hidden="true"></span></span>`;
  if (!isBridged) return drawn;
  const other = html`<span class="lifelines" aria-hidden="true"></span>`;
  return html`<span class="ladders">${leg > 0 ? [drawn, other] : [other, drawn]}</span>`;
}

function Lifelines({ isBridged }) {
  if (!isBridged) return html`<span class="lifelines" aria-hidden="true"></span>`;
  return html`<span class="ladders" aria-hidden="true"><span class="lifelines"></span><span class="lifelines"></span></span>`;
}
