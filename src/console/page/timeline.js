// Everything that happened to a call, by one clock: SIP between the gateway and the far end, events, attempts to notify. One row an
// occurrence; a row opens to what stands behind it.

import { useState } from 'preact/hooks';
import { html } from './dom.js';
import { fullTime, offset } from './format.js';

const kinds = { sip: 'SIP', event: 'Events', notification: 'Notifications' };

export function Timeline({ call, notifications, capture }) {
  const [hidden, setHidden] = useState([]);
  const all = rowsOf({ call, notifications, capture });
  const rows = all.filter(({ kind }) => !hidden.includes(kind));
  const toggle = (kind) =>
    setHidden(hidden.includes(kind) ? hidden.filter((one) => one !== kind) : [...hidden, kind]);
  const start = Date.parse(call.acceptedAt);
  return html`<section aria-labelledby="timeline">
    <div class="bar">
      <h2 id="timeline">What happened</h2>
      <div class="toggles" role="group" aria-label="Shown">
        ${Object.entries(kinds).map(
          ([kind, name]) =>
            html`<button type="button" class="toggle" aria-pressed=${!hidden.includes(kind)} onClick=${() => toggle(kind)}>${name}</button>`,
        )}
      </div>
    </div>
    <ol class="timeline">
      <li class="lanes" aria-hidden="true"><span>seconds</span><span>Gateway</span><span>Far end</span><span>Events and notifications</span></li>
      ${rows.map((row) => html`<${Row} key=${row.key} row=${row} start=${start} />`)}
    </ol>
    <${Notes} capture=${capture} call=${call} />
  </section>`;
}

function Notes({ capture, call }) {
  if (!capture) return null;
  const notes = [];
  if (!capture.sip) {
    notes.push(
      call.state === 'ended'
        ? 'Of this call no SIP messages were kept: none was sent, or its gateway was lost.'
        : 'SIP messages of a call are shown by the gateway that has it, and by every one when it is over.',
    );
  }
  if (capture.sip?.left > 0)
    notes.push(`${capture.sip.left} SIP messages were left out: the call had more than is kept.`);
  if (capture.sip && capture.isDrachtio) {
    notes.push(
      'SIP as drachtio tells it: what it does by itself is not shown, e.g. the ACK of a refusal, the answer to a CANCEL, repetitions.',
    );
  } else if (capture.sip)
    notes.push(
      'The ACK of a refusal, the answer to a CANCEL and repetitions are the SIP engine’s own, and not shown.',
    );
  return notes.map((note) => html`<p class="faint">${note}</p>`);
}

function Row({ row, start }) {
  const [isOpen, setOpen] = useState(false);
  const { kind, at, label, note, arrow, tone, detail } = row;
  return html`<li class=${`row ${kind} ${tone ?? ''}`}>
    <button type="button" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>
      <time title=${fullTime(at)} datetime=${at}>${offset(Date.parse(at) - start)}</time>
      ${
        kind === 'sip'
          ? html`<span class=${`ladder ${arrow}`}><span class="hidden">${arrow === 'out' ? 'sent: ' : 'received: '}</span><span class="label">${label}</span><span class="line" aria-hidden="true"></span></span>`
          : html`<span class="lifelines" aria-hidden="true"></span><span class="what"><span class="label">${label}</span> ${note && html`<span class="note">${note}</span>`}</span>`
      }
    </button>
    ${isOpen && html`<pre class="body">${detail()}</pre>`}
  </li>`;
}

function rowsOf({ call, notifications, capture }) {
  const rows = [
    ...(capture?.sip?.messages ?? []).map(sipRow),
    ...call.timeline.map((event) => eventRow(event, capture?.lines)),
    ...(notifications ?? []).flatMap(notificationRows),
  ];
  const order = { event: 1, sip: 0, notification: 2 };
  return rows.sort(
    (a, b) =>
      Date.parse(a.at) - Date.parse(b.at) || order[a.kind] - order[b.kind] || a.rank - b.rank,
  );
}

function sipRow({ at, isOurs, text, transport, address, port }, index) {
  const [first] = text.split('\r\n', 1);
  const isResponse = first.startsWith('SIP/2.0 ');
  const method = /^cseq[ \t]*:[ \t]*\d+[ \t]+(\w+)/im.exec(text)?.[1] ?? '';
  const status = Number(first.slice(8, 11));
  const hasBody = text.includes('\r\n\r\n') && !text.endsWith('\r\n\r\n');
  return {
    key: `sip-${index}`,
    rank: index,
    kind: 'sip',
    at,
    arrow: isOurs ? 'out' : 'in',
    label: `${isResponse ? first.slice(8) : first.split(' ', 1)[0]}${isResponse && method !== '' ? ` (${method})` : ''}${hasBody ? ' + SDP' : ''}`,
    tone: isResponse && status >= 400 ? 'bad' : '',
    detail: () =>
      `from ${address || 'the engine itself'}${port ? `:${port}` : ''} ${transport}\n\n${text.trimEnd()}`,
  };
}

function eventRow({ eventId, eventSequence, type, time, data }, lines) {
  return {
    key: eventId,
    rank: eventSequence,
    kind: 'event',
    at: time,
    label: type,
    note: lines?.[eventId] ?? '',
    tone: type === 'failed' ? 'bad' : type === 'answered' || type === 'completed' ? 'good' : '',
    detail: () => JSON.stringify(data, null, 2),
  };
}

/** One for each attempt; one that was not tried yet says so. */
function notificationRows({
  eventId,
  sequence,
  state,
  createdAt,
  body,
  attempts,
  failure,
  replays,
}) {
  const name =
    body.machineDetection && body.status === 'Call-In-Progress'
      ? body.machineDetection
      : body.status;
  const rest = () => JSON.stringify(body, null, 2);
  const rows = attempts.map(
    ({ attempt, startedAt, durationMs, responseStatus, error, delivered }, index) => ({
      key: `${eventId}-${attempt}-${index}`,
      rank: sequence * 100 + attempt,
      kind: 'notification',
      at: startedAt,
      label: `POST ${name}`,
      note: [
        `${[responseStatus, error].filter(Boolean).join(' ') || 'no answer'} after ${durationMs} ms`,
        attempt > 1 ? `attempt ${attempt}` : '',
        failure !== undefined && index === attempts.length - 1 ? `given up: ${failure}` : '',
      ]
        .filter(Boolean)
        .join(', '),
      tone: delivered ? 'good' : 'bad',
      detail: rest,
    }),
  );
  for (const { replayedAt, by } of replays) {
    rows.push({
      key: `${eventId}-${replayedAt}`,
      rank: sequence * 100,
      kind: 'notification',
      at: replayedAt,
      label: `Replay of ${name}`,
      note: `by ${by}`,
      detail: rest,
    });
  }
  if (attempts.length === 0) {
    const what =
      failure === undefined
        ? state === 'pending'
          ? 'waits to be sent'
          : state
        : `given up: ${failure}`;
    rows.push({
      key: `${eventId}-${state}`,
      rank: sequence * 100 + 99,
      kind: 'notification',
      at: createdAt,
      label: name,
      note: what,
      tone: failure ? 'bad' : '',
      detail: rest,
    });
  }
  return rows;
}
