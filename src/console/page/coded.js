// Words that stand for a code of the API. The code is shown on hover, and read to screen readers.

import { html } from './dom.js';

export function Coded({ text, code }) {
  if (code === undefined || code === '' || code === text) return html`<span>${text}</span>`;
  return html`<span title=${code}>${text}<span class="hidden"> (${code})</span></span>`;
}
