// Placing a call by hand, with what the API takes most often.

import { useEffect, useRef, useState } from 'preact/hooks';
import { api, session } from './api.js';
import { html } from './dom.js';
import { Trouble } from './parts.js';

/** As the API calls them, and as the form does. */
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

export function DialForm({ onClose }) {
  const dialog = useRef(null);
  const form = useRef(null);
  const [error, setError] = useState(undefined);
  const [isSending, setSending] = useState(false);
  const isGone = useRef(false);
  const sandbox = useSandbox();
  const { bots } = session.value.app;
  const named = bots.filter((bot) => bot !== '*');
  useEffect(() => {
    dialog.current?.showModal();
    return () => {
      isGone.current = true;
    };
  }, []);
  useEffect(() => {
    if (error !== undefined) showWrong(form.current, error);
  }, [error]);
  const submit = async (event) => {
    event.preventDefault();
    const request = requestOf(Object.fromEntries(new FormData(form.current)));
    setSending(true);
    setError(undefined);
    try {
      const { callId } = await api.dial(request);
      // Cancelled meanwhile: another form may be open, or another page.
      if (isGone.current) return;
      onClose();
      location.hash = `#/calls/${callId}`;
    } catch (problem) {
      setError(problem);
      setSending(false);
    }
  };
  const wrong = new Set((error?.errors ?? []).map(({ path }) => path));
  const field = (name, attributes, more = null) => html`<label><span>${names[name]}</span>
    <input name=${name} autocomplete="off" spellcheck=${false} aria-invalid=${wrong.has(name) ? 'true' : null} ...${attributes} />${more}</label>`;
  return html`<dialog ref=${dialog} onClose=${onClose} aria-labelledby="dial-title">
    <form ref=${form} onSubmit=${submit} class="dial">
      <h2 id="dial-title">Dial</h2>
      ${field('target', { required: true, placeholder: '+12025550110', list: 'sandbox' })}
      <datalist id="sandbox">${sandbox.map(({ number, name }) => html`<option value=${number} label=${name}></option>`)}</datalist>
      ${field('caller', { required: true, value: '+15559876543' })}
      ${field(
        'botId',
        { required: true, list: 'bots', value: named[0] ?? 'dev-bot' },
        html`<datalist id="bots">${named.map((bot) => html`<option value=${bot}></option>`)}</datalist>`,
      )}
      <label><span>${names.machineDetection}</span>
        <select name="machineDetection"><option value="detect">detect</option><option value="disconnect">disconnect: hang up on a machine</option><option value="disabled">disabled</option></select></label>
      ${field('notifyurl', { type: 'url', placeholder: 'none is notified' })}
      <details>
        <summary>Trunk, bot audio, connecting</summary>
        ${field('trunk', { placeholder: 'the default one' })}
        ${field('stream.url', { placeholder: 'as the bot is registered; ws://…' })}
        ${field('bridge.to', { placeholder: 'none; a number or sip:…', list: 'sandbox' })}
      </details>
      ${error && html`<${Trouble} error=${told(error)} />`}
      <div class="buttons">
        <button type="button" onClick=${() => dialog.current?.close()}>Cancel</button>
        <button type="submit" class="primary" disabled=${isSending}>Place the call</button>
      </div>
    </form>
  </dialog>`;
}

/** Whom the sandbox carrier has, if it runs. */
function useSandbox() {
  const [numbers, setNumbers] = useState([]);
  useEffect(() => {
    // Numbers can be typed without it.
    api.sandbox().then(
      (answer) => setNumbers(answer.numbers),
      () => undefined,
    );
  }, []);
  return numbers;
}

function requestOf(typed) {
  const filled = Object.entries(typed).map(([name, value]) => [name, value.trim()]);
  const {
    target,
    'stream.url': url,
    'bridge.to': to,
    ...rest
  } = Object.fromEntries(filled.filter(([, value]) => value !== ''));
  return {
    ...rest,
    target: uriOf(target),
    ...(url === undefined ? {} : { stream: { url } }),
    ...(to === undefined ? {} : { bridge: { to: uriOf(to) } }),
  };
}

/** A number as people write it. */
function uriOf(text = '') {
  return /^\+?[\d ().-]+$/.test(text) ? `tel:${text.replace(/[ ().-]/g, '')}` : text;
}

/** What is folded cannot take the focus; it stays unfolded. */
function showWrong(form, { errors = [] }) {
  const wrong = errors
    .map(({ path }) => form.elements.namedItem(path))
    .filter((element) => element !== null);
  for (const element of wrong) element.closest('details')?.setAttribute('open', '');
  wrong[0]?.focus();
}

/** In the words of the form. */
function told(error) {
  if (error.status === undefined)
    return { message: `${error.message} Place the call again: no phone is called twice.` };
  if ((error.errors ?? []).length === 0) return error;
  const errors = error.errors.map(({ path, message }) => ({ path: names[path] ?? path, message }));
  return { message: 'The call was not placed.', errors };
}
