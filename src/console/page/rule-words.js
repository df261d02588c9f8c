// Says in words what calling rules decide about calls.

import { timeOf } from './format.js';

/** The rules, by their names in the API. */
export const ruleWords = {
  suppressed: 'the number is suppressed',
  hours: 'outside the calling hours',
  attempts: 'the number was called too often',
  rest: 'the number was reached too recently',
  'abandoned-rate': 'too many of the campaign’s calls were abandoned',
};

/** The same, for a badge. */
export const briefRuleWords = {
  suppressed: 'suppressed',
  hours: 'outside hours',
  attempts: 'called too often',
  rest: 'reached recently',
  'abandoned-rate': 'too many abandoned',
};

/** The members of a rule set. */
export const memberWords = {
  hours: 'calling hours',
  attempts: 'attempts',
  rest: 'rest',
  consent: 'consent',
  ringAtLeastMs: 'time to ring',
  voice: 'voice',
  connected: 'connection',
  abandoned: 'abandoned calls',
};
export const memberWord = (member) => memberWords[member] ?? member;

export const ruleWord = (rule) => ruleWords[rule] ?? rule;
export const briefRule = (rule) => briefRuleWords[rule] ?? rule;
export const untilWords = (until, preposition = 'until') =>
  until === undefined ? '' : ` ${preposition} ${timeOf(until)}`;

/** The answer to a check. */
export const checkWords = ({ permitted, rule, notBefore }) =>
  permitted
    ? 'May be called now.'
    : `May not be called: ${ruleWord(rule)}${untilWords(notBefore)}.`;
