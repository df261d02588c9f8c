// How long detection waits for the one who comes after a call screening: the one who was asked looks at a telephone first.

import type { AmdSettings } from '../../calls/call-types.ts';

/** Screeners give up within half of it. */
const longestWaitMs = 60_000;

export function settingsOfLaterRound(settings: AmdSettings): AmdSettings {
  const { timers } = settings;
  return {
    ...settings,
    timers: {
      ...timers,
      noSpeechTimeoutMs: Math.max(timers.noSpeechTimeoutMs, longestWaitMs),
      decisionTimeoutMs: Math.max(timers.decisionTimeoutMs, longestWaitMs),
      toneTimeoutMs: Math.max(timers.toneTimeoutMs, longestWaitMs),
    },
  };
}
