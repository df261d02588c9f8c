// The table of failing receivers, with the notifications that wait for them.

import { useState } from 'preact/hooks';
import { api, gatewayNowMs } from './api.js';
import { connectionWords, httpStatusWords } from './code-words.js';
import { Coded } from './coded.js';
import { html } from './dom.js';
import { fullTime, plural, timeOf } from './format.js';

export function ReceiverTable({ receivers, again }) {
  return html`<table class="stack receivers" aria-labelledby="receivers">
    <thead><tr><th scope="col">Receiver</th><th scope="col">Failing since</th><th scope="col" class="number">Failures</th><th scope="col">Last error</th><th scope="col" class="number">Waiting</th><th scope="col">Next try</th><th scope="col"><span class="hidden">Try now</span></th></tr></thead>
    <tbody>${receivers.map((receiver) => html`<${Receiver} key=${`${receiver.appId} ${receiver.origin}`} receiver=${receiver} again=${again} />`)}</tbody>
  </table>`;
}

/** The gateway counts no further. */
const mostWaiting = 1_000;

function waitingWords(calls) {
  if (calls === 0) return html`<span class="faint">nothing</span>`;
  return calls >= mostWaiting ? `${plural(calls, 'call')} or more` : plural(calls, 'call');
}

function Receiver({ receiver, again }) {
  const { origin, appId, failingSince, failures, lastError, waitingCalls, nextAttemptAt } =
    receiver;
  const [message, setMessage] = useState('');
  const tryNow = async () => {
    setMessage('…');
    try {
      const { calls } = await api.retryReceiver(origin);
      setMessage(calls === 0 ? 'Being tried already.' : `Trying ${plural(calls, 'call')} now.`);
      again();
    } catch (error) {
      setMessage(error.message);
    }
  };
  return html`<tr>
    <th scope="row"><span>${origin} <span class="detail faint">${appId}</span></span></th>
    <td data-name="Failing since" title=${fullTime(failingSince)}>${timeOf(failingSince)}</td>
    <td class="number" data-name="Failures">${failures}</td>
    <td data-name="Last error" class="error">${lastError && html`<${Coded} text=${errorWords(lastError)} code=${lastError} />`}</td>
    <td class="number" data-name="Waiting">${waitingWords(waitingCalls)}</td>
    <td data-name="Next try">${nextWords(nextAttemptAt)}</td>
    <td class="act"><span role="status" class="faint">${message}</span> ${waitingCalls > 0 && html`<button type="button" onClick=${tryNow} aria-label=${`Try now: ${origin}`}>Try now</button>`}</td>
  </tr>`;
}

const errorWords = (error) =>
  /^\d{3}$/.test(error) ? httpStatusWords(Number(error)) : connectionWords(error);

function nextWords(at) {
  if (at === undefined) return '';
  if (Date.parse(at) <= gatewayNowMs()) return 'now';
  return html`<span title=${fullTime(at)}>${timeOf(at)}</span>`;
}
