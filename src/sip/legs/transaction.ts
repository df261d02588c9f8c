// Sends a request other than a call's INVITE, and waits for the response. If srf leaves the request
// hanging, the result is a `timeout`.

import { type Authentication, sendAnswered, type Unanswered } from '../digest/answered-request.ts';
import type { EngineLink, LinkOwner } from '../engine/engine-link.ts';
import type { RequestOptions, SentRequest, SipMessage } from '../engine/srf-types.ts';

export type TransactionResult =
  | {
      readonly kind: 'response';
      readonly status: number;
      /** True if the SIP stack generated the response because the far end didn't send one. */
      readonly byStack?: true;
      /** The response. Undefined for `until: 'sent'`, because then we don't wait for one. */
      readonly message?: SipMessage;
      /** Why a challenge is the final response. */
      readonly unanswered?: Unanswered;
    }
  /** The engine didn't send the request. */
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'lost' };

type Wait = {
  readonly until: 'sent' | 'answered';
  readonly timeoutMs: number;
  /** Called with the request as it left, and again whenever it's repeated with credentials. */
  readonly onSent?: (request: SentRequest) => void;
  /** How to answer challenges. Default: a challenge is the final response. */
  readonly authentication?: Authentication;
};

const withoutCredentials: Authentication = { client: undefined };

/**
 * Sends a request and waits for its final response. With `until: 'sent'`, only waits until the
 * engine confirms that it has sent the request (status 0).
 */
export function transact(
  link: EngineLink,
  options: RequestOptions,
  wait: Wait,
): Promise<TransactionResult> {
  return new Promise((resolve) => beginTransaction(link, options, wait, resolve));
}

/**
 * Like `transact`, but reports the result synchronously. Calls `report` before any later message is
 * handled, even if that message arrived in the same TCP segment.
 */
export function beginTransaction(
  link: EngineLink,
  options: RequestOptions,
  wait: Wait,
  report: (result: TransactionResult) => void,
): void {
  let isSettled = false;
  const owner: LinkOwner = { onLinkLost: () => settle({ kind: 'lost' }) };
  const timer = setTimeout(() => settle({ kind: 'timeout' }), wait.timeoutMs);
  const settle = (result: TransactionResult) => {
    if (isSettled) return;
    isSettled = true;
    clearTimeout(timer);
    link.detach(owner);
    report(result);
  };
  link.attach(owner);
  sendAnswered(link, options, wait.authentication ?? withoutCredentials, {
    onReply: (result) => {
      if (!result.ok) settle({ kind: 'refused', reason: result.reason });
      else if (wait.until === 'sent') settle({ kind: 'response', status: 0 });
      else wait.onSent?.(result.request);
    },
    onResponse: (response, _ack, unanswered) => {
      const { status } = response;
      if (status < 200) return;
      const byStack = response.source_address === '' ? ({ byStack: true } as const) : {};
      const why = unanswered === undefined ? {} : { unanswered };
      settle({ kind: 'response', status, message: response, ...byStack, ...why });
    },
  });
}
