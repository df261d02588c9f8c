// The badge that says what became of a call, wherever a call is shown.

import { gatewayNowMs } from './api.js';
import { callResult } from './call-result.js';
import { html } from './dom.js';
import { useSeconds } from './parts.js';

/**
 * @param isAnnounced whether screen readers announce changes, e.g. on the page of one call
 */
export function ResultBadge({ call, isAnnounced }) {
  const { who, name, detail, explanation, isLive } = callResult(call, gatewayNowMs());
  useSeconds(isLive);
  // The words are announced without the duration, which changes each second.
  return html`<span class=${`result ${who}${isLive ? ' now' : ''}`} title=${explanation}>
    <span role=${isAnnounced ? 'status' : null}>${name}</span>
    ${detail && html`<span class="more"> · ${detail}</span>`}
    <span class="hidden">. ${explanation}</span>
  </span>`;
}
