// The form for placing a call by hand, with the API's most common fields.

import { useEffect, useRef, useState } from 'preact/hooks';
import { api, session } from './api.js';
import { detectionModeWords } from './code-words.js';
import { mayHavePlaced, settle, unansweredBefore } from './dial-attempts.js';
import { html } from './dom.js';
import { numberOf } from './format.js';
import { Trouble } from './parts.js';
import { readTarget } from './typed-target.js';

/** The form's labels, keyed by the name of the API field. */
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
 * Returns the fields' initial values. We use controlled fields, so the text survives re-renders.
 */
function initialValues({ bots }) {
  const [botId = 'dev-bot'] = bots.filter((bot) => bot !== '*');
  const empty = { target: '', notifyurl: '', trunk: '', 'stream.url': '', 'bridge.to': '' };
  return { ...empty, caller: '+15559876543', botId, machineDetection: 'detect' };
}

export function DialForm({ onClose }) {
  const dialog = useRef(null);
  const form = useRef(null);
  const again = useRef(null);
  const { app } = session.value;
  const [typed, setTyped] = useState(() => initialValues(app));
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
    // The button that the user pressed has disappeared, so focus the harmless one of the new
    // buttons.
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
      ${error && html`<${Trouble} error=${withFormLabels(error)} />`}
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
 * Sends a form's requests. If an earlier request may already have placed a call, `submit` asks the
 * user first. `refuse` shows errors as if the gateway had sent them.
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
      // If the user has cancelled the form in the meantime, don't take them to another page.
      if (!isGone.current) placed(answer);
    } catch (problem) {
      setState({ error: problem });
    }
  };
  const submit = (request) => {
    const lost = unansweredBefore(request, self);
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
      <select name="machineDetection" value=${typed.machineDetection}>${Object.entries(detectionModeWords).map(([mode, words]) => html`<option value=${mode}>${words}</option>`)}</select></label>
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
    <p>The request for the call to ${phones.join(', ')} got no response, so we don't know whether the call was placed. The form now describes another call: ${
      isSamePhone ? 'the same phone may ring twice' : 'both phones may ring'
    }.</p>
    <p class="faint">If you send the earlier request again, its phone won't be called twice.</p>
  </div>`;
}

/** Returns the sandbox carrier's numbers, or an empty list if the sandbox isn't running. */
export function useSandbox() {
  const [numbers, setNumbers] = useState([]);
  useEffect(() => {
    // We can ignore errors here, because the list only saves typing.
    api.sandbox().then(
      (answer) => setNumbers(answer.numbers),
      () => undefined,
    );
  }, []);
  return numbers;
}

/** Builds the request, and finds any errors that we can detect without the gateway. */
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

/** Opens the sections that contain wrong fields, and focuses the first wrong field. */
function showWrong(form, { errors = [] }) {
  const wrong = errors
    .map(({ path }) => form.elements.namedItem(path))
    .filter((element) => element !== null);
  for (const element of wrong) element.closest('details')?.setAttribute('open', '');
  wrong[0]?.focus();
}

/** Rewrites an error message to use the form's labels. */
function withFormLabels(error) {
  if (mayHavePlaced(error)) {
    const what =
      error.status === undefined
        ? error.message
        : `The response was ${error.status}. We don't know whether the call was placed.`;
    return { message: `${what} Press the button again: no phone is called twice.` };
  }
  if ((error.errors ?? []).length === 0) return error;
  const errors = error.errors.map(({ path, message }) => ({ path: names[path] ?? path, message }));
  return { message: 'The call was not placed.', errors };
}
