// Logs speech-to-text failures for all workers.

import type { Logger } from '../lib/logger.ts';

export type TranscriptionReport = {
  readonly provider: string;
  readonly reason: string;
  readonly failures: number;
};

/**
 * Maximum number of provider names that we remember. Names come from requests, so an app that sends
 * a new name with each call must not flood memory or the log.
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
