// Small parts that every page uses.

import { useEffect, useRef, useState } from 'preact/hooks';
import { html } from './dom.js';
import { statusWord, toneOf } from './format.js';

export function Status({ call }) {
  return html`<span class=${`status ${toneOf(call)}`}>${statusWord(call.status)}</span>`;
}

/** A heading that takes the focus when the page is entered, so that a screen reader says where one is. */
export function Title({ children }) {
  const heading = useRef(null);
  useEffect(() => {
    heading.current?.focus({ preventScroll: true });
  }, []);
  return html`<h1 tabindex="-1" ref=${heading}>${children}</h1>`;
}

export function Trouble({ error, again }) {
  return html`<div class="trouble" role="alert">
    <p>${error.message}</p>
    ${(error.errors ?? []).length > 0 &&
    html`<ul>${error.errors.map(({ path, message }) => html`<li><code>${path}</code> ${message}</li>`)}</ul>`}
    ${error.requestId && html`<p class="faint">Request ${error.requestId}: the gateway's log has it too.</p>`}
    ${again && html`<button type="button" onClick=${again}>Try again</button>`}
  </div>`;
}

export function Empty({ title, children }) {
  return html`<div class="empty"><p class="empty-title">${title}</p>${children}</div>`;
}

/**
 * What a request gives, asked again every so often, and when `key` changes. The last answer stays while the next is under way.
 */
export function useAnswer(load, key, everyMs) {
  const [answer, setAnswer] = useState({});
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    let timer;
    const run = async () => {
      try {
        const value = await load();
        if (isCurrent) setAnswer({ value, key });
      } catch (error) {
        if (isCurrent) setAnswer((before) => ({ ...before, error, key }));
      }
      if (isCurrent && everyMs !== undefined) timer = setTimeout(run, everyMs);
    };
    void run();
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [key, turn]);
  const isStale = answer.key !== key;
  return { ...(isStale ? {} : answer), again: () => setTurn((count) => count + 1) };
}
