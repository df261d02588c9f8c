// A request whose answer is awaited: BYE, CANCEL and what ends orphans. Always bounded; what srf leaves hanging is a
// `timeout` here.

import type { EngineLink, LinkOwner } from '../engine/engine-link.ts';
import type { RequestOptions, SentRequest, SipMessage } from '../engine/srf-types.ts';

export type TransactionResult =
  | {
      readonly kind: 'response';
      readonly status: number;
      /** Made up by the stack: the far end said nothing. */
      readonly byStack?: true;
      /** Absent where the engine's word was enough. */
      readonly message?: SipMessage;
    }
  /** The engine did not send it. */
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'lost' };

type Wait = {
  readonly until: 'sent' | 'answered';
  readonly timeoutMs: number;
  /** As it left: once, and again with credentials where it was challenged. */
  readonly onSent?: (request: SentRequest) => void;
};

/** Sends a request and waits for its final response; or, with `until: 'sent'`, for the engine's word (status 0). */
export function transact(
  link: EngineLink,
  options: RequestOptions,
  wait: Wait,
): Promise<TransactionResult> {
  return new Promise((resolve) => beginTransaction(link, options, wait, resolve));
}

/** `tell` hears of the response before anything that came behind it, which may lie in the same segment, is looked at. */
export function beginTransaction(
  link: EngineLink,
  options: RequestOptions,
  wait: Wait,
  tell: (result: TransactionResult) => void,
): void {
  let isSettled = false;
  const owner: LinkOwner = { onLinkLost: () => settle({ kind: 'lost' }) };
  const timer = setTimeout(() => settle({ kind: 'timeout' }), wait.timeoutMs);
  const settle = (result: TransactionResult) => {
    if (isSettled) return;
    isSettled = true;
    clearTimeout(timer);
    link.detach(owner);
    tell(result);
  };
  link.attach(owner);
  link.request(options, (result) => {
    if (!result.ok) settle({ kind: 'refused', reason: result.reason });
    else if (wait.until === 'sent') settle({ kind: 'response', status: 0 });
    else {
      if (wait.onSent !== undefined) follow(result.request, wait.onSent);
      result.request.on('response', (response) => {
        if (response.status < 200) return;
        const byStack = response.source_address === '' ? ({ byStack: true } as const) : {};
        settle({ kind: 'response', status: response.status, message: response, ...byStack });
      });
    }
  });
}

function follow(request: SentRequest, onSent: (request: SentRequest) => void): void {
  onSent(request);
  request.on('authenticate', (repeated) => follow(repeated, onSent));
}
