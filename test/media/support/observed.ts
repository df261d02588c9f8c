// A MediaObserver that keeps what it was told, and a bounded wait for it.

import type { AmdSettings } from '../../../src/calls/call-types.ts';
import { defaultAmdTimers } from '../../../src/calls/call-types.ts';
import type { AmdEvent } from '../../../src/calls/detection/amd-event.ts';
import type { MediaObserver } from '../../../src/calls/ports.ts';

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
    onAmd: (event) => observed.amd.push(event),
    onDtmf: (digit, durationMs) => observed.dtmf.push({ digit, durationMs }),
    onInactive: () => {
      observed.inactive += 1;
    },
    onFailed: (reason) => observed.failures.push(reason),
  };
  return observed;
}

export function settingsFor(script?: number): AmdSettings {
  return {
    timers: defaultAmdTimers,
    ...(script === undefined ? {} : { thresholdWordCount: script }),
  };
}

/** Far longer than anything takes, so that only a real failure runs into it. */
const deadlineMs = 40_000;

export async function until(condition: () => boolean, what: string): Promise<void> {
  const endMs = performance.now() + deadlineMs;
  while (!condition()) {
    if (performance.now() > endMs) throw new Error(`waited in vain for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
