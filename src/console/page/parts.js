// Small components that all pages share.

import { useEffect, useRef, useState } from 'preact/hooks';
import { gatewayNowMs } from './api.js';
import { html } from './dom.js';
import { between, duration, secondsSoFar } from './format.js';

/** Renders a component again each second, as long as what it shows continues. */
export function useSeconds(continues) {
  const [, setTicks] = useState(0);
  useEffect(() => {
    if (!continues) return undefined;
    const timer = setInterval(() => setTicks((ticks) => ticks + 1), 1_000);
    return () => clearInterval(timer);
  }, [continues]);
}

/** Shows how long something took, or has lasted so far, updated each second. */
export function Lasting({ from, to }) {
  const continues = from !== undefined && to === undefined;
  useSeconds(continues);
  if (!continues) return duration(between(from, to));
  return secondsSoFar(gatewayNowMs() - Date.parse(from));
}

/**
 * A heading that gets the focus when the page opens, so that screen readers announce the page. The
 * heading's text is also the title of the browser's tab.
 */
export function Title({ children }) {
  const heading = useRef(null);
  useEffect(() => {
    heading.current?.focus({ preventScroll: true });
  }, []);
  useEffect(() => {
    document.title = `${heading.current?.textContent} · Offhook`;
  });
  return html`<h1 tabindex="-1" ref=${heading}>${children}</h1>`;
}

export function Trouble({ error, again }) {
  return html`<div class="trouble" role="alert">
    <p>${error.message}</p>
    ${
      (error.errors ?? []).length > 0 &&
      html`<ul>${error.errors.map(({ path, message }) => html`<li><code>${path}</code> ${message}</li>`)}</ul>`
    }
    ${error.requestId && html`<p class="faint">Request id ${error.requestId}, also in the gateway's log</p>`}
    ${again && html`<button type="button" onClick=${again}>Try again</button>`}
  </div>`;
}

export function Empty({ title, children }) {
  return html`<div class="empty"><p class="empty-title">${title}</p>${children}</div>`;
}

/**
 * The buttons of a list that has several pages. `cursors` lead to the pages before, `next` to the
 * one that follows.
 */
export function Pager({ label, cursors, setCursors, next, order }) {
  if (cursors.length === 0 && next === undefined) return null;
  return html`<nav class="pager" aria-label=${label}>
    <button type="button" disabled=${cursors.length === 0} onClick=${() => setCursors(cursors.slice(0, -1))}>Back</button>
    <span class="faint">Page ${cursors.length + 1}, ${order}</span>
    <button type="button" disabled=${next === undefined} onClick=${() => setCursors([...cursors, next])}>Next</button>
  </nav>`;
}

/**
 * Asks before something that cannot be undone by a click. `agree` does it; if it fails, the dialog
 * says why and stays.
 */
export function Question({ title, yes, agree, close, children }) {
  const dialog = useRef(null);
  const [error, setError] = useState(undefined);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  const doIt = async () => {
    setBusy(true);
    try {
      await agree();
      dialog.current?.close();
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  return html`<dialog ref=${dialog} onClose=${close} aria-labelledby="question">
    <div class="dial">
      <h2 id="question">${title}</h2>
      ${children}
      ${error && html`<${Trouble} error=${error} />`}
      <div class="buttons">
        <button type="button" autofocus onClick=${() => dialog.current?.close()}>Cancel</button>
        <button type="button" class="danger" disabled=${isBusy} onClick=${doIt}>${yes}</button>
      </div>
    </div>
  </dialog>`;
}
