// The account's rule sets, one of them to read and edit, and what they decide about a number.

import { useEffect, useRef, useState } from 'preact/hooks';
import { api, session } from './api.js';
import { useSandbox } from './dial-form.js';
import { html } from './dom.js';
import { fullTime, timeOf } from './format.js';
import { placeOf } from './json-places.js';
import { Empty, Question, Title, Trouble } from './parts.js';
import { useReading } from './reading.js';
import { checkWords, memberWord } from './rule-words.js';
import { readTarget } from './typed-target.js';

const everyMs = 5_000;

export function RulesPage() {
  const { value, error, again } = useReading({
    key: 'rules',
    load: api.ruleSets,
    again: () => everyMs,
  });
  const open = (event) => {
    event.preventDefault();
    location.hash = addressOf(new FormData(event.target).get('name'));
  };
  return html`<div class="bar"><${Title}>Rules</${Title}><span class="faint">Who may be called, when and how often.</span><span class="grow"></span>
      <form class="inline" onSubmit=${open} aria-label="New rule set">
        <label class="beside"><span>Name</span><input name="name" required pattern="[A-Za-z0-9_\\-]{1,64}" title="1 to 64 letters, digits, _ and -" placeholder="default" autocomplete="off" spellcheck=${false} /></label>
        <button type="submit" class="primary">Add a rule set</button>
      </form></div>
    ${error && html`<${Trouble} error=${error} again=${again} />`}
    ${value?.ruleSets.length === 0 && html`<${Empty} title="No rule sets."><p>Without a rule set, only suppressed numbers are refused. The rule set <code>default</code> applies to every call whose request names no other.</p></${Empty}>`}
    ${value?.ruleSets.length > 0 && html`<${RuleSetTable} ruleSets=${value.ruleSets} />`}
    ${value && html`<${NumberCheck} ruleSets=${value.ruleSets} />`}`;
}

const addressOf = (name) => `#/rules/${encodeURIComponent(name)}`;

function RuleSetTable({ ruleSets }) {
  return html`<table class="stack" aria-label="Rule sets">
    <thead><tr><th scope="col">Rule set</th><th scope="col">Rules</th><th scope="col" class="number">Version</th><th scope="col">Changed</th><th scope="col">By</th></tr></thead>
    <tbody>${ruleSets.map(
      ({ name, document, version, changedAt, changedByApp }) => html`<tr key=${name}>
        <th scope="row"><a href=${addressOf(name)}>${name}</a></th>
        <td data-name="Rules">${Object.keys(document).map(memberWord).join(', ') || html`<span class="faint">no rules</span>`}</td>
        <td class="number" data-name="Version">${version}</td>
        <td data-name="Changed" title=${fullTime(changedAt)}>${timeOf(changedAt)}</td>
        <td data-name="By">${changedByApp}</td></tr>`,
    )}</tbody></table>`;
}

// ── One rule set ──────────────────────────────────────────────────────────────────────────────

const firstDocument = {
  hours: {
    windows: [{ days: 'mon-fri', from: '08:00', until: '21:00' }],
    otherwise: 'wait',
  },
};

const textOf = (document) => JSON.stringify(document, null, 2);

export function RuleSetPage({ id: name }) {
  // It isn't read again by itself, because that would replace what the user is writing.
  const { value, error, again } = useReading({ key: name, load: () => readRuleSet(name) });
  return html`<p class="back"><a href="#/rules">← All rule sets</a></p>
    ${!value && html`<${Title}>${name}</${Title}>`}
    ${error && html`<${Trouble} error=${error} again=${again} />`}
    ${value && html`<${RuleSet} key=${value.current?.version} name=${name} current=${value.current} changed=${again} />`}`;
}

async function readRuleSet(name) {
  try {
    return { current: await api.ruleSet(name) };
  } catch (error) {
    if (error.status === 404) return { current: undefined };
    throw error;
  }
}

function RuleSet({ name, current, changed }) {
  const [shown, setShown] = useState(current);
  const [message, setMessage] = useState('');
  const [isAsking, setAsking] = useState(false);
  const [error, setError] = useState(undefined);
  const attempt = async (work) => {
    setError(undefined);
    setMessage('');
    await work().catch(setError);
  };
  const show = ({ target }) =>
    attempt(async () => setShown(await api.ruleSet(name, Number(target.value))));
  const stored = (ruleSet) => {
    if (ruleSet.version === current?.version) setMessage('Nothing has changed.');
    else changed();
  };
  const remove = async () => {
    await api.removeRuleSet(name);
    location.hash = '#/rules';
  };
  return html`<div class="bar"><${Title}>${name}</${Title}>
      <span class="faint" role="status">${message || (shown ? `Version ${shown.version}, stored ${timeOf(shown.changedAt)} by ${shown.changedByApp}` : 'Not stored yet')}</span>
      <span class="grow"></span>
      ${
        current &&
        html`<label class="beside"><span>Version</span><select value=${shown.version} onChange=${show}>${versionsOf(current)}</select></label>
        <button type="button" class="danger" onClick=${() => setAsking(true)}>Delete</button>`
      }
    </div>
    ${error && html`<${Trouble} error=${error} />`}
    <${Editor} key=${shown?.version} name=${name} document=${shown?.document ?? firstDocument} stored=${stored} />
    ${
      isAsking &&
      html`<${Question} title=${`Delete ${name}?`} yes="Delete" agree=${remove} close=${() => setAsking(false)}>
      <p>${name === 'default' ? 'No rule set then applies to calls that name none. Suppressed numbers are still refused.' : 'Requests can then no longer name it.'}</p>
    </${Question}>`
    }`;
}

/** How many versions the list offers. The API has all of them. */
const offeredVersions = 50;

function versionsOf({ version: newest }) {
  const count = Math.min(newest, offeredVersions);
  return Array.from({ length: count }, (_, index) => newest - index).map(
    (version) =>
      html`<option value=${version}>${version}${version === newest ? ' (current)' : ''}</option>`,
  );
}

function Editor({ name, document, stored }) {
  const [text, setText] = useState(() => textOf(document));
  const [error, setError] = useState(undefined);
  const [isSending, setSending] = useState(false);
  const field = useRef(null);
  const store = async (event) => {
    event.preventDefault();
    setSending(true);
    setError(undefined);
    try {
      stored(await api.putRuleSet(name, parse(text)));
    } catch (problem) {
      setError({ problem, text });
    }
    setSending(false);
  };
  const select = ({ from, until }) => {
    field.current.focus();
    field.current.setSelectionRange(from, until);
  };
  return html`<form class="editor" onSubmit=${store}>
    <label><span>Document, as JSON. Each change adds a version.</span>
      <textarea ref=${field} value=${text} onInput=${({ target }) => setText(target.value)} rows=${Math.min(40, Math.max(12, text.split('\n').length + 1))} spellcheck=${false} aria-invalid=${error ? 'true' : null} aria-describedby=${error ? 'wrong' : null}></textarea></label>
    ${error && html`<${Errors} ...${error} select=${select} />`}
    <div class="buttons"><button type="submit" class="primary" disabled=${isSending}>Store</button></div>
  </form>`;
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`This is not JSON: ${error.message}`, { cause: error });
  }
}

/** The gateway's errors. Each names its member, and selects it in the text that was sent. */
function Errors({ problem, text, select }) {
  const list = useRef(null);
  useEffect(() => {
    list.current?.querySelector('button')?.focus();
  }, [problem]);
  const { errors = [] } = problem;
  if (errors.length === 0) return html`<div id="wrong"><${Trouble} error=${problem} /></div>`;
  return html`<div class="trouble" role="alert" id="wrong" ref=${list}>
    <p>The rule set was not stored.</p>
    <ul>${errors.map(({ path, message }) => {
      const place = placeOf(text, path);
      return html`<li>${
        place === undefined
          ? html`<code>${path}</code>`
          : html`<button type="button" class="link" onClick=${() => select(place)}>line ${place.line}: <code>${path}</code></button>`
      } ${message}</li>`;
    })}</ul></div>`;
}

// ── Check a number ────────────────────────────────────────────────────────────────────────────

function NumberCheck({ ruleSets }) {
  const sandbox = useSandbox();
  const [{ answer, error }, setResult] = useState({});
  const check = async (event) => {
    event.preventDefault();
    const { number, rules, timeZone } = Object.fromEntries(new FormData(event.target));
    const { uri, message } = readTarget(number.trim(), sandbox);
    if (message !== undefined) {
      setResult({ error: { message: `The number ${message}.` } });
      return;
    }
    setResult({});
    await api.check(checkedCall({ target: uri, rules, timeZone: timeZone.trim() })).then(
      (found) => setResult({ answer: found }),
      (problem) => setResult({ error: problem }),
    );
  };
  return html`<section aria-labelledby="check">
    <h2 id="check">Check a number</h2>
    <form class="fields" onSubmit=${check}>
      <label><span>Number</span><input name="number" required list="sandbox-numbers" placeholder="+12025550110" autocomplete="off" spellcheck=${false} /></label>
      <datalist id="sandbox-numbers">${sandbox.map(({ number, name }) => html`<option value=${number} label=${name}></option>`)}</datalist>
      <label><span>Rule set</span><select name="rules"><option value="">${ruleSets.some(({ name }) => name === 'default') ? 'default' : 'none'}</option>${ruleSets.filter(({ name }) => name !== 'default').map(({ name }) => html`<option value=${name}>${name}</option>`)}</select></label>
      <label><span>Time zone</span><input name="timeZone" placeholder="empty: as the number says" autocomplete="off" spellcheck=${false} /></label>
      <button type="submit">Check</button>
    </form>
    <div role="status">${answer && html`<${CheckAnswer} answer=${answer} />`}</div>
    ${error && html`<${Trouble} error=${error} />`}
    <p class="faint">Nothing is dialled. The answer is for a call now, with detection and with written consent.</p>
  </section>`;
}

/** A request that no rule set rejects, so that the answer is about the number. */
function checkedCall({ target, rules, timeZone }) {
  const [botId = 'dev-bot'] = session.value.app.bots.filter((bot) => bot !== '*');
  return {
    ...{ botId, target, caller: '+12025550199', machineDetection: 'detect', timeoutInMs: 180_000 },
    consent: { basis: 'written', at: new Date().toISOString() },
    ...(rules === '' ? {} : { rules }),
    ...(timeZone === '' ? {} : { timeZone }),
  };
}

function CheckAnswer({ answer }) {
  const { permitted, ruleSet, ruleSetVersion, timeZones } = answer;
  const under =
    ruleSet === undefined ? 'No rule set applies.' : `${ruleSet}, version ${ruleSetVersion}.`;
  return html`<p class="summary"><span class=${`status ${permitted ? 'good' : 'held'}`}>${checkWords(answer)}</span> <span class="faint">${under} ${clocks(timeZones)}</span></p>`;
}

function clocks(timeZones) {
  if (timeZones.length === 0) return 'The number’s time zone is not known.';
  if (timeZones.length > 3) return `The number may lie in ${timeZones.length} time zones.`;
  const clock = (timeZone) =>
    new Date().toLocaleTimeString('en-GB', { timeZone, hour: '2-digit', minute: '2-digit' });
  return `It is ${timeZones.map((zone) => `${clock(zone)} in ${zone}`).join(', ')}.`;
}
