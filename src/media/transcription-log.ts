// What the log says of speech-to-text, of all workers together.

import type { Logger } from '../lib/logger.ts';

export type TranscriptionReport = {
  readonly provider: string;
  readonly reason: string;
  readonly failures: number;
};

/** Names come from requests: an app that sends another one with each call fills neither the memory nor the log. */
const mostNames = 100;

export function createTranscriptionLog(logger: Logger): (report: TranscriptionReport) => void {
  const warned = new Set<string>();
  return ({ provider, reason, failures }) => {
    if (reason !== 'unconfigured') {
      const told = { provider, reason, failures };
      logger.warn(told, 'speech-to-text failed, words are counted by ear');
    } else if (!warned.has(provider) && warned.size < mostNames) {
      warned.add(provider);
      const message = 'speech-to-text provider is not configured, words are counted by ear';
      logger.warn({ provider }, message);
    }
  };
}
