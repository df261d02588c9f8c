// An observer's exception must not cost other calls: it would stop the loop that tells them of a broken engine connection, or close the
// control connection that they share.

import type { LegObserver } from '../../calls/ports.ts';
import type { Logger } from '../../lib/logger.ts';

export function safeObserver(observer: LegObserver, logger: Logger): LegObserver {
  return {
    observe(event) {
      try {
        observer.observe(event);
      } catch (error) {
        logger.error({ err: error, event: event.kind }, 'observer of a leg failed');
      }
    },
  };
}
