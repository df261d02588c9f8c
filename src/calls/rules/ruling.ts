// What the calling rules decided about a call when it was taken.

import type { AbandonmentRule } from '../abandonment/abandonment.ts';

/** The rule set under which a call was permitted. */
export type Ruling = {
  readonly ruleSet: string;
  readonly version: number;
  /** Absent if the call has no campaign, or no detection. */
  readonly abandonment?: AbandonmentRule;
};
