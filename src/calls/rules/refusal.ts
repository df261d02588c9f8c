// A call that a calling rule ends before a phone rings.

import { instant, wordOf } from '../contract/schema.ts';
import { type RuleName, ruleNames } from './rule-words.ts';

export type RuleRefusal = {
  readonly rule: RuleName;
  /** When the call would be permitted. Omitted if no time is known. */
  readonly notBefore?: Date;
};

/** The members of the terminal event of such a call. */
export const refusalMembers = {
  rule: wordOf<RuleName>(ruleNames)
    .exactOptional()
    .describe('the calling rule that ended the call; only if `outcome` is `not-permitted`'),
  notBefore: instant
    .exactOptional()
    .describe('when the rule would permit the call; absent if no time is known'),
};

/** Says for people why a rule ended a call. */
export const refusalReasons: Readonly<Record<RuleName, string>> = {
  suppressed: 'The number is suppressed',
  hours: 'Outside the calling hours',
  attempts: 'The number was called too often',
  rest: 'The number was reached too recently',
  'abandoned-rate': 'Too many calls of the campaign were abandoned',
};
