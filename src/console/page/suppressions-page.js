// The numbers that no call of the account may reach: a form for one of them, and the list.

import { useRef, useState } from 'preact/hooks';
import { api } from './api.js';
import { addressOf as callsAddress } from './calls-view.js';
import { html } from './dom.js';
import { fullTime, plural, timeOf } from './format.js';
import { Empty, Pager, Question, Title, Trouble } from './parts.js';
import { phoneNumber } from './phone-numbers.js';
import { useReading } from './reading.js';
import { readTarget } from './typed-target.js';
import { suppressionReasonWords } from './words.js';

const everyMs = 5_000;

export function SuppressionsPage() {
  const [cursors, setCursors] = useState([]);
  const [asked, setAsked] = useState(undefined);
  const cursor = cursors.at(-1);
  const { value, error, again } = useReading({
    key: `suppressions ${cursor}`,
    load: () => api.suppressions({ limit: 50, ...(cursor === undefined ? {} : { cursor }) }),
    again: () => everyMs,
  });
  return html`<div class="bar"><${Title}>Suppressions</${Title}><span class="faint">No call of the account reaches these numbers, whatever its rule set.</span></div>
    <${OneNumber} changed=${again} />
    ${error && html`<${Trouble} error=${error} again=${again} />`}
    ${value?.suppressions.length === 0 && html`<${Empty} title=${cursors.length === 0 ? 'No number is suppressed.' : 'No further number is suppressed.'}><p>Suppress one above, or over the API. People can also opt out during a call.</p></${Empty}>`}
    ${value?.suppressions.length > 0 && html`<${SuppressionTable} suppressions=${value.suppressions} remove=${setAsked} />`}
    ${value && html`<${Pager} label="Pages of suppressions" cursors=${cursors} setCursors=${setCursors} next=${value.nextCursor} order="sorted by number" />`}
    ${asked && html`<${Removal} suppression=${asked} close=${() => setAsked(undefined)} changed=${again} />`}`;
}

const names = { number: 'Number', reason: 'Reason', source: 'Source', until: 'Until' };

/** A form that looks a number up, or suppresses it. */
function OneNumber({ changed }) {
  const form = useRef(null);
  const [{ message, tone, error }, setResult] = useState({});
  const attempt = async (work) => {
    const { number, ...others } = Object.fromEntries(new FormData(form.current));
    if (!form.current.elements.number.reportValidity()) return;
    const { uri, message: problem } = readTarget(number.trim(), []);
    setResult({});
    try {
      if (problem !== undefined)
        throw Object.assign(new Error(), { errors: [{ path: 'number', message: problem }] });
      setResult(await work(uri, others));
    } catch (caught) {
      setResult({ error: withLabels(caught) });
    }
  };
  const lookUp = () => attempt(async (number) => foundWords(await findSuppression(number)));
  const suppress = async (event) => {
    event.preventDefault();
    await attempt(async (number, { reason, source, until }) => {
      const end = until === '' ? {} : { until: new Date(until).toISOString() };
      const stored = await api.suppress(number, { reason, source: source.trim(), ...end });
      changed();
      return storedWords(stored);
    });
  };
  const wrong = new Set((error?.errors ?? []).map(({ path }) => path));
  const field = (name, attributes) =>
    html`<label><span>${names[name]}</span><input name=${name} autocomplete="off" spellcheck=${false} aria-invalid=${wrong.has(names[name]) ? 'true' : null} ...${attributes} /></label>`;
  return html`<form ref=${form} class="fields" onSubmit=${suppress} aria-label="Look up or suppress">
      ${field('number', { required: true, placeholder: '+12025550110 or sip:…' })}
      <button type="button" onClick=${lookUp}>Look up</button>
      <label><span>${names.reason}</span><select name="reason">${Object.entries(suppressionReasonWords).map(([reason, words]) => html`<option value=${reason}>${words}</option>`)}</select></label>
      ${field('source', { defaultValue: 'console', required: true, maxlength: 64 })}
      ${field('until', { type: 'datetime-local', title: 'empty: it does not end' })}
      <button type="submit" class="primary">Suppress</button>
    </form>
    <div role="status">${message && html`<p class="summary"><span class=${`status ${tone}`}>${message}</span></p>`}</div>
    ${error && html`<${Trouble} error=${error} />`}`;
}

const withLabels = (error) => ({
  message: error.errors?.length > 0 ? 'This was not done.' : error.message,
  requestId: error.requestId,
  errors: (error.errors ?? []).map(({ path, message }) => ({ path: names[path] ?? path, message })),
});

async function findSuppression(number) {
  try {
    return { number, ...(await api.suppression(number)) };
  } catch (error) {
    if (error.status === 404) return { number };
    throw error;
  }
}

const written = (number) => phoneNumber(number.replace(/^tel:/, ''));
const reasonWord = (reason) => suppressionReasonWords[reason] ?? reason;

function foundWords({ number, reason, source, until, createdAt }) {
  if (reason === undefined)
    return { tone: 'good', message: `${written(number)} is not suppressed.` };
  const end = until === undefined ? '' : `, until ${fullTime(until)}`;
  return {
    tone: 'bad',
    message: `${written(number)} is suppressed: ${reasonWord(reason)}, from ${source}, since ${fullTime(createdAt)}${end}.`,
  };
}

function storedWords({ number, left = [] }) {
  return left.length === 0
    ? { tone: 'good', message: `${written(number)} is suppressed. No call to it rings.` }
    : {
        tone: 'bad',
        message: `${written(number)} is suppressed, but ${plural(left.length, 'call')} to it may still ring: ${left.join(', ')}.`,
      };
}

function SuppressionTable({ suppressions, remove }) {
  return html`<table class="stack" aria-label="Suppressions">
    <thead><tr><th scope="col">Number</th><th scope="col">Reason</th><th scope="col">Source</th><th scope="col">Until</th><th scope="col">Since</th><th scope="col">By</th><th scope="col"><span class="hidden">Remove</span></th></tr></thead>
    <tbody>${suppressions.map(
      (suppression) => html`<tr key=${suppression.number}>
        <th scope="row" class="broken"><a href=${callsAddress({ number: suppression.number })}>${written(suppression.number)}</a></th>
        <td data-name="Reason">${reasonWord(suppression.reason)}</td>
        <td data-name="Source" class="broken">${suppression.source}</td>
        <td data-name="Until">${suppression.until === undefined ? html`<span class="faint">no end</span>` : html`<span title=${fullTime(suppression.until)}>${timeOf(suppression.until)}</span>`}</td>
        <td data-name="Since" title=${fullTime(suppression.createdAt)}>${timeOf(suppression.createdAt)}</td>
        <td data-name="By">${suppression.appId}</td>
        <td class="act"><button type="button" aria-label=${`Remove ${suppression.number}`} onClick=${() => remove(suppression)}>Remove</button></td></tr>`,
    )}</tbody></table>`;
}

/** Asks first, because the person may have asked not to be called. */
function Removal({ suppression: { number, reason, source }, close, changed }) {
  const agree = async () => {
    await api.removeSuppression(number);
    changed();
  };
  return html`<${Question} title=${`Allow calls to ${written(number)} again?`} yes="Allow calls" agree=${agree} close=${close}>
    <p>It is suppressed because of: ${reasonWord(reason)}, from ${source}.</p>
  </${Question}>`;
}
