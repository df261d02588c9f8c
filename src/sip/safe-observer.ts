// An observer's exception must not cost other calls: it would stop the loop that tells them of a lost engine, or close the
// control connection that they share.

import type { LegObserver } from '../calls/ports.ts';
import type { Logger } from '../lib/logger.ts';

export function safeObserver(observer: LegObserver, logger: Logger): LegObserver {
  const safely = <Value>(what: string, tell: () => Value): Value | undefined => {
    try {
      return tell();
    } catch (error) {
      logger.error({ err: error, what }, 'observer of a leg failed');
      return undefined;
    }
  };
  return {
    onSent: (sent) => safely('onSent', () => observer.onSent(sent)),
    onResent: (leg) => safely('onResent', () => observer.onResent?.(leg)),
    onAttemptFailed: (attempt) =>
      safely('onAttemptFailed', () => observer.onAttemptFailed?.(attempt)),
    onProvisional: (response) => safely('onProvisional', () => observer.onProvisional(response)),
    onAnswered: (answer) => safely('onAnswered', () => observer.onAnswered(answer)),
    onFailed: (failure) => safely('onFailed', () => observer.onFailed(failure)),
    onEnded: (end) => safely('onEnded', () => observer.onEnded(end)),
    onReoffer: (sdp) => safely('onReoffer', () => observer.onReoffer(sdp)),
    onDtmf: (digit, durationMs) => safely('onDtmf', () => observer.onDtmf(digit, durationMs)),
  };
}
