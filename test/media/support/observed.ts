// A MediaObserver that keeps every event.

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
