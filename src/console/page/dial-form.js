// Placing a call by hand, with what the API takes most often.

import { useEffect, useRef, useState } from 'preact/hooks';
import { api, session } from './api.js';
import { html } from './dom.js';
import { Trouble } from './parts.js';

export function DialForm({ onClose }) {
  const dialog = useRef(null);
  const [error, setError] = useState(undefined);
  const [isSending, setSending] = useState(false);
  const { bots } = session.value.app;
  const named = bots.filter((bot) => bot !== '*');
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  const submit = async (event) => {
    event.preventDefault();
    const { botId, ...values } = Object.fromEntries(new FormData(event.target));
    const body = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ''));
    setSending(true);
    setError(undefined);
    try {
      const { callId } = await api.dial(botId, body);
      onClose();
      location.hash = `#/calls/${callId}`;
    } catch (problem) {
      setError(problem);
      setSending(false);
    }
  };
  return html`<dialog ref=${dialog} onClose=${onClose} aria-labelledby="dial-title">
    <form onSubmit=${submit} class="dial">
      <h2 id="dial-title">Dial</h2>
      <label><span>Target</span><input name="target" required placeholder="tel:+12025550110" autocomplete="off" /></label>
      <label><span>Caller</span><input name="caller" required value="+15559876543" autocomplete="off" /></label>
      <label><span>Bot</span><input name="botId" required list="bots" value=${named[0] ?? 'bot-1'} autocomplete="off" />
        <datalist id="bots">${named.map((bot) => html`<option value=${bot}></option>`)}</datalist></label>
      <label><span>Machine detection</span>
        <select name="machineDetection"><option value="detect">detect</option><option value="disconnect">disconnect</option><option value="disabled">disabled</option></select></label>
      <label><span>Trunk</span><input name="trunk" placeholder="the default one" autocomplete="off" /></label>
      <label><span>Notify URL</span><input name="notifyurl" type="url" placeholder="nobody is notified" autocomplete="off" /></label>
      ${error && html`<${Trouble} error=${error} />`}
      <div class="buttons">
        <button type="button" onClick=${() => dialog.current?.close()}>Cancel</button>
        <button type="submit" class="primary" disabled=${isSending}>Place the call</button>
      </div>
    </form>
  </dialog>`;
}
