// The page that lists failing receivers, and notifications that the gateway gave up on.

import { useState } from 'preact/hooks';
import { api } from './api.js';
import { deliveryFailureWords, wordOf } from './code-words.js';
import { Coded } from './coded.js';
import { html } from './dom.js';
import { notificationWord } from './event-words.js';
import { fullTime, notificationName, plural, timeOf } from './format.js';
import { Empty, Title, Trouble } from './parts.js';
import { useReading } from './reading.js';
import { ReceiverTable } from './receivers.js';

const everyMs = 5_000;

export function NotificationsPage() {
  return html`<div class="bar"><${Title}>Notifications</${Title}></div><${Receivers} /><${DeadLetters} />`;
}

function Receivers() {
  const { value, error, again } = useReading({
    key: 'receivers',
    load: api.receivers,
    again: () => everyMs,
  });
  return html`<section aria-labelledby="receivers">
    <h2 id="receivers">Failing receivers</h2>
    ${error && html`<${Trouble} error=${error} again=${again} />`}
    ${value?.receivers.length === 0 && html`<p class="faint">No receiver is failing: all of them accepted the latest notifications.</p>`}
    ${value?.receivers.length > 0 && html`<${ReceiverTable} receivers=${value.receivers} again=${again} />`}
  </section>`;
}

function DeadLetters() {
  const [cursors, setCursors] = useState([]);
  const cursor = cursors.at(-1);
  const query = { limit: 50, ...(cursor === undefined ? {} : { cursor }) };
  const { value, error, again } = useReading({
    key: `dead ${cursor}`,
    load: () => api.deadLetters(query),
    again: () => everyMs,
  });
  const [message, setMessage] = useState('');
  const replayAll = async () => {
    const letters = value.notifications;
    let count = 0;
    setMessage('…');
    for (const { botId, eventId } of letters) {
      const { replayed } = await api.replay(botId, eventId).catch(() => ({ replayed: false }));
      count += replayed ? 1 : 0;
    }
    const left = letters.length - count;
    setMessage(
      `${plural(count, 'notification')} will be sent again${left === 0 ? '' : `, ${left} will not: try again`}.`,
    );
    again();
  };
  return html`<section aria-labelledby="dead">
    <div class="bar"><h2 id="dead">Given up</h2><span role="status" class="faint">${message}</span>
      ${value?.notifications.length > 1 && html`<button type="button" onClick=${replayAll}>Send these ${value.notifications.length} again</button>`}</div>
    ${error && html`<${Trouble} error=${error} again=${again} />`}
    ${
      value?.notifications.length === 0 &&
      html`<${Empty} title="Nothing was given up."><p>A notification appears here if its receiver has rejected it for 24 hours or responded with 410, or if its address isn't allowed.</p></${Empty}>`
    }
    ${
      value?.notifications.length > 0 &&
      html`<table class="stack" aria-labelledby="dead">
      <thead><tr><th scope="col">Given up</th><th scope="col">Call</th><th scope="col">Notification</th><th scope="col">Why</th><th scope="col">Last answer</th><th scope="col" class="number">Attempts</th><th scope="col"><span class="hidden">Replay</span></th></tr></thead>
      <tbody>${value.notifications.map((letter) => html`<${Letter} key=${letter.eventId} letter=${letter} changed=${again} />`)}</tbody>
    </table>`
    }
    ${
      value &&
      (cursors.length > 0 || value.nextCursor) &&
      html`<nav class="pager" aria-label="Pages of notifications">
      <button type="button" disabled=${cursors.length === 0} onClick=${() => setCursors(cursors.slice(0, -1))}>Newer</button>
      <button type="button" disabled=${!value.nextCursor} onClick=${() => setCursors([...cursors, value.nextCursor])}>Older</button></nav>`
    }
  </section>`;
}

function Letter({ letter, changed }) {
  const [message, setMessage] = useState('');
  const replay = async () => {
    setMessage('…');
    try {
      await api.replay(letter.botId, letter.eventId);
      changed();
    } catch (error) {
      setMessage(error.message);
    }
  };
  return html`<tr>
    <td data-name="Given up" title=${fullTime(letter.failedAt)}>${timeOf(letter.failedAt)}</td>
    <td data-name="Call"><a href=${`#/calls/${letter.callId}`}>${letter.callId.slice(5, 13)}</a></td>
    <td data-name="Notification"><${Coded} text=${notificationWord(letter.body ?? {})} code=${notificationName(letter.body ?? {})} /></td>
    <td data-name="Why"><${Coded} text=${wordOf(deliveryFailureWords, letter.failure)} code=${letter.failure} /></td>
    <td data-name="Last answer">${[letter.lastStatus, letter.lastError].filter(Boolean).join(' ')}</td>
    <td class="number" data-name="Attempts">${letter.attempts}</td>
    <td class="act"><button type="button" onClick=${replay} aria-label=${`Send again: ${letter.body?.status ?? 'notification'} of call ${letter.callId.slice(5, 13)}`}>Send again</button> <span role="status">${message}</span></td>
  </tr>`;
}
