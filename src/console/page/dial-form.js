// The form that places a call by hand, with the most common members of the API.

import { useEffect, useRef, useState } from 'preact/hooks';
import { api, session } from './api.js';
import { leavesOpen, lostBeside, settle } from './dial-attempts.js';
import { html } from './dom.js';
import { numberOf } from './format.js';
import { Trouble } from './parts.js';
import { readTarget } from './typed-target.js';

/** Labels of the form, by the name of the API's member. */
const names = {
  target: 'Target',
  caller: 'Caller',
  botId: 'Bot',
  machineDetection: 'Machine detection',
  notifyurl: 'Notify URL',
  trunk: 'Trunk',
  'stream.url': 'Audio to',
  'bridge.to': 'Connect to',
};

/**
 * Initial values of the fields. The fields are controlled, so that typed text stays while the rest
 * of the form changes.
 */
function initiallyTyped({ bots }) {
  const [botId = 'dev-bot'] = bots.filter((bot) => bot !== '*');
  const empty = { target: '', notifyurl: '', trunk: '', 'stream.url': '', 'bridge.to': '' };
  return { ...empty, caller: '+15559876543', botId, machineDetection: 'detect' };
}

export function DialForm({ onClose }) {
  const dialog = useRef(null);
  const form = useRef(null);
  const again = useRef(null);
  const { app } = session.value;
  const [typed, setTyped] = useState(() => initiallyTyped(app));
  const sandbox = useSandbox();
  const { error, question, isSending, submit, send, refuse, clearQuestion } = useSending({
    // Identifies this form among earlier ones.
    self: dialog,
    placed: ({ callId }) => {
      onClose();
      location.hash = `#/calls/${callId}`;
    },
  });
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  useEffect(() => {
    if (error !== undefined) showWrong(form.current, error);
  }, [error]);
  useEffect(() => {
    // The button that was pressed has disappeared. Focuses the one of the two new buttons that does
    // no harm.
    if (question !== undefined) again.current?.focus();
  }, [question]);
  const change = ({ target: { name, value } }) => {
    setTyped((before) => ({ ...before, [name]: value }));
    clearQuestion();
  };
  const wrong = new Set((error?.errors ?? []).map(({ path }) => path));
  return html`<dialog ref=${dialog} onClose=${onClose} aria-labelledby="dial-title">
    <form ref=${form} class="dial" onInput=${change} onSubmit=${(event) => {
      event.preventDefault();
      const { request, errors } = requestOf(typed, sandbox);
      if (errors.length > 0) refuse(errors);
      else submit(request);
    }}>
      <h2 id="dial-title">Dial</h2>
      <${Fields} typed=${typed} wrong=${wrong} bots=${app.bots} sandbox=${sandbox} />
      ${error && html`<${Trouble} error=${inFormWords(error)} />`}
      ${question && html`<${Question} question=${question} />`}
      <div class="buttons">
        <button type="button" onClick=${() => dialog.current?.close()}>Cancel</button>
        ${question && html`<button ref=${again} type="button" onClick=${() => send(question.lost.at(-1))}>Send the earlier request</button>`}
        ${
          question
            ? html`<button key="another" type="button" class="danger" onClick=${question.placeAnother}>Place another call</button>`
            : html`<button key="place" type="submit" class="primary" disabled=${isSending}>Place the call</button>`
        }
      </div>
    </form>
  </dialog>`;
}

/**
 * Sends the requests of a form. `submit` first asks the user if an earlier call may have been
 * placed and the request would place another one. `refuse` shows errors like the gateway's without
 * sending a request.
 */
function useSending({ self, placed }) {
  const [{ error, question, isSending }, setState] = useState({});
  const isGone = useRef(false);
  useEffect(
    () => () => {
      isGone.current = true;
    },
    [],
  );
  const send = async (request) => {
    setState({ isSending: true });
    try {
      const answer = await api.dial(request, self, () => isGone.current);
      // If the form was cancelled in the meantime, another form or page may be open.
      if (!isGone.current) placed(answer);
    } catch (problem) {
      setState({ error: problem });
    }
  };
  const submit = (request) => {
    const lost = lostBeside(request, self);
    const placeAnother = () => {
      settle(lost);
      void send(request);
    };
    if (lost.length > 0) setState({ question: { request, lost, placeAnother } });
    else void send(request);
  };
  const refuse = (errors) => setState({ error: { status: 400, errors } });
  const clearQuestion = () =>
    setState((state) => (state.question === undefined ? state : { ...state, question: undefined }));
  return { error, question, isSending, submit, send, refuse, clearQuestion };
}

function Fields({ typed, wrong, bots, sandbox }) {
  const field = (name, attributes) => html`<label><span>${names[name]}</span>
    <input name=${name} value=${typed[name]} autocomplete="off" spellcheck=${false} aria-invalid=${wrong.has(name) ? 'true' : null} ...${attributes} /></label>`;
  return html`
    ${field('target', { required: true, placeholder: '+12025550110', list: 'sandbox' })}
    <datalist id="sandbox">${sandbox.map(({ number, name }) => html`<option value=${number} label=${name}></option>`)}</datalist>
    ${field('caller', { required: true })}
    ${field('botId', { required: true, list: 'bots' })}
    <datalist id="bots">${bots.filter((bot) => bot !== '*').map((bot) => html`<option value=${bot}></option>`)}</datalist>
    <label><span>${names.machineDetection}</span>
      <select name="machineDetection" value=${typed.machineDetection}><option value="detect">detect</option><option value="disconnect">disconnect: hang up on a machine</option><option value="disabled">disabled</option></select></label>
    ${field('notifyurl', { type: 'url', placeholder: 'empty: no notifications' })}
    <details>
      <summary>Trunk, bot audio, connecting</summary>
      ${field('trunk', { placeholder: 'empty: the default trunk' })}
      ${field('stream.url', { placeholder: 'ws://…; empty: as registered for the bot' })}
      ${field('bridge.to', { placeholder: 'a number or sip:…', list: 'sandbox' })}
    </details>`;
}

function Question({ question: { request, lost } }) {
  const phones = [...new Set(lost.map(({ target }) => numberOf(target)))];
  const isSamePhone = lost.some(({ target }) => target === request.target);
  return html`<div class="trouble" role="alert">
    <p>It is not known whether the call to ${phones.join(', ')} was placed: the form that requested it got no answer. The form now describes another call: ${
      isSamePhone ? 'the same phone may ring twice' : 'both phones may ring'
    }.</p>
    <p class="faint">Sending the earlier request again calls no phone twice.</p>
  </div>`;
}

/** Returns the numbers of the sandbox carrier, or nothing if it does not run. */
function useSandbox() {
  const [numbers, setNumbers] = useState([]);
  useEffect(() => {
    // The list only helps typing: an error does not matter.
    api.sandbox().then(
      (answer) => setNumbers(answer.numbers),
      () => undefined,
    );
  }, []);
  return numbers;
}

/** Makes the request for the gateway, and finds errors that are known before it is sent. */
function requestOf(typed, sandbox) {
  const filled = Object.entries(typed).map(([name, value]) => [name, value.trim()]);
  const {
    target = '',
    'stream.url': url,
    'bridge.to': to,
    ...rest
  } = Object.fromEntries(filled.filter(([, value]) => value !== ''));
  const called = readTarget(target, sandbox);
  const connected = to === undefined ? {} : readTarget(to, sandbox);
  return {
    request: {
      ...rest,
      target: called.uri,
      ...(url === undefined ? {} : { stream: { url } }),
      ...(to === undefined ? {} : { bridge: { to: connected.uri } }),
    },
    errors: [
      { path: 'target', message: called.message },
      { path: 'bridge.to', message: connected.message },
    ].filter(({ message }) => message !== undefined),
  };
}

/**
 * Focuses the first wrong field. Unfolds its section first, because a folded field cannot take the
 * focus.
 */
function showWrong(form, { errors = [] }) {
  const wrong = errors
    .map(({ path }) => form.elements.namedItem(path))
    .filter((element) => element !== null);
  for (const element of wrong) element.closest('details')?.setAttribute('open', '');
  wrong[0]?.focus();
}

/** Words the error with the labels of the form. */
function inFormWords(error) {
  if (leavesOpen(error)) {
    const what =
      error.status === undefined
        ? error.message
        : `The answer was ${error.status}. It is not known whether the call was placed.`;
    return { message: `${what} Press the button again: no phone is called twice.` };
  }
  if ((error.errors ?? []).length === 0) return error;
  const errors = error.errors.map(({ path, message }) => ({ path: names[path] ?? path, message }));
  return { message: 'The call was not placed.', errors };
}
