// Logs speech-to-text failures for all workers.

import type { Logger } from '../lib/logger.ts';

export type TranscriptionReport = {
  readonly provider: string;
  readonly reason: string;
  readonly failures: number;
};

/**
 * We remember at most this many provider names. Names are part of requests, so an app that sends a
 * new name with each call must not be able to flood memory or the log.
 */
const maxNames = 100;

export function createTranscriptionLog(logger: Logger): (report: TranscriptionReport) => void {
  const warned = new Set<string>();
  return ({ provider, reason, failures }) => {
    if (reason !== 'unconfigured') {
      const fields = { provider, reason, failures };
      logger.warn(fields, 'speech-to-text failed, so words are estimated from the audio');
    } else if (!warned.has(provider) && warned.size < maxNames) {
      warned.add(provider);
      const message =
        'speech-to-text provider is not configured, so words are estimated from the audio';
      logger.warn({ provider }, message);
    }
  };
}
