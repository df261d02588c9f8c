// A MediaObserver that keeps every event, and a bounded wait for events.

import type { AmdSettings } from '../../../src/calls/call-types.ts';
import { defaultAmdTimers } from '../../../src/calls/call-types.ts';
import type { AmdEvent } from '../../../src/calls/detection/amd-event.ts';
import type { MediaObserver } from '../../../src/calls/media.ts';

export type Observed = MediaObserver & {
  readonly amd: AmdEvent[];
  readonly dtmf: { digit: string; durationMs: number }[];
  readonly failures: string[];
  inactive: number;
};

export function observe(): Observed {
  const observed: Observed = {
    amd: [],
    dtmf: [],
    failures: [],
    inactive: 0,
    observe: (event) => {
      if (event.kind === 'amd') observed.amd.push(event.amd);
      if (event.kind === 'dtmf') {
        observed.dtmf.push({ digit: event.digit, durationMs: event.durationMs });
      }
      if (event.kind === 'inactive') observed.inactive += 1;
      if (event.kind === 'failed') observed.failures.push(event.reason);
    },
  };
  return observed;
}

export function settingsFor(script?: number): AmdSettings {
  return {
    timers: defaultAmdTimers,
    ...(script === undefined ? {} : { thresholdWordCount: script }),
  };
}

/** Far longer than anything takes, so that only a real failure exceeds it. */
const deadlineMs = 40_000;

export async function until(condition: () => boolean, what: string): Promise<void> {
  const endMs = performance.now() + deadlineMs;
  while (!condition()) {
    if (performance.now() > endMs) throw new Error(`waited in vain for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
