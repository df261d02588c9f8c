// The sentences that say how far a call is and how it ended. The badge in a list and the page of a
// call say the same ones. Pure.

import { faultWords, outcomeWords, reasonCodeWords, wordOf } from './code-words.js';
import { between, capitalised, duration, timeOf } from './format.js';
import { ruleWord } from './rule-words.js';

const sentence = (words) => `${capitalised(words)}.`;

// ── Before the answer ───────────────────────────────────────────────────────────────────────────

/** Says how far a call is that nobody has answered yet. */
export function sentenceSoFar({ state, waitsFor, queuePosition }) {
  if (waitsFor !== undefined)
    return `Held: ${ruleWord(waitsFor.rule)}. It is checked again at ${timeOf(waitsFor.until)}.`;
  if (state === 'ringing') return 'The phone rings.';
  if (state === 'dialing') return 'The call is being placed.';
  const place = queuePosition === undefined ? '' : `, as number ${queuePosition}`;
  return `The call waits for its trunk${place}.`;
}

const rang = (ms) => (ms > 0 ? ` after ringing for ${duration(ms)}` : '');

/** What to say of calls that nobody answered, if it is more than the words of the outcome. */
const unanswered = {
  declined: ({ sipStatus }) => (sipStatus === 607 ? 'The call was declined as unwanted.' : ''),
  blocked: ({ block }) =>
    block?.by === undefined
      ? ''
      : `${capitalised(outcomeWords.blocked)}, ${block.by} by its own words.`,
  'no-answer': (_call, { ringMs }) => `Nobody answered${rang(ringMs)}.`,
  'invalid-number': () => 'The number does not exist, says the carrier.',
  rejected: ({ fault, reason }) =>
    fault === 'gateway'
      ? `The carrier does not accept the trunk’s credentials${bracketed(reason)}.`
      : `${fault === 'callee' ? 'The phone' : 'The carrier'} refused the call${bracketed(reason)}.`,
  'carrier-failure': ({ reason }) => `The carrier did not place the call${bracketed(reason)}.`,
  'gateway-failure': ({ reason }) =>
    `The gateway could not place the call${reason === undefined ? '' : `: ${reason}`}.`,
  cancelled: (_call, { ringMs, wasDialled }) =>
    wasDialled === false
      ? 'The call was cancelled before it was placed.'
      : `The call was cancelled${rang(ringMs)}, before anybody answered.`,
  expired: () => 'The call waited too long for its trunk and was not placed.',
  'not-permitted': ({ rule, notBefore }) => {
    const from = notBefore === undefined ? '' : ` It is permitted from ${timeOf(notBefore)}.`;
    return `Not placed: ${rule === undefined ? 'a rule forbids it' : ruleWord(rule)}.${from}`;
  },
  unknown: ({ reason = 'The gateway was lost' }) =>
    `${reason}. It is not known whether a phone rang.`,
};

const bracketed = (reason) => (reason === undefined ? '' : ` (${reason})`);

/**
 * @param known `ringMs`; `wasDialled`, undefined if that isn't known. Default: what the call says
 */
export function unansweredSentence(call, known = {}) {
  const { outcome = 'unknown', ringingAt, endedAt } = call;
  const facts = { ringMs: between(ringingAt, endedAt), ...known };
  const own = Object.hasOwn(unanswered, outcome) ? unanswered[outcome](call, facts) : '';
  if (own !== '') return own;
  return Object.hasOwn(outcomeWords, outcome)
    ? sentence(outcomeWords[outcome])
    : `Not answered: ${outcome}.`;
}

// ── After the answer ────────────────────────────────────────────────────────────────────────────

const machines = {
  'fax-tone': 'A fax machine',
  'sit-tone': 'An announcement of the network',
  'call-screening': 'A call screener',
};

/** E.g. `A machine answered`. Undefined if detection doesn't say who it was. */
export function answererWords(verdict, reason) {
  if (verdict === 'amd_human_detected') return 'A person answered';
  if (!/^amd_(machine|tone)_/.test(verdict ?? '')) return undefined;
  const isNamed = verdict === 'amd_machine_detected' && Object.hasOwn(machines, reason ?? '');
  return `${isNamed ? machines[reason] : 'A machine'} answered`;
}

const withoutAnswerer = {
  amd_no_speech_detected: 'The call was answered, but nobody spoke.',
  amd_decision_timeout: 'It is not known who answered.',
  amd_error: 'It is not known who answered: detection failed.',
};

/** Says who answered a call, which perhaps goes on. */
export function answerSentence({ verdict, verdictReason, machineDetection, outcome }) {
  const who = answererWords(verdict, verdictReason);
  if (who !== undefined) return `${who}.`;
  if (Object.hasOwn(withoutAnswerer, verdict ?? '')) return withoutAnswerer[verdict];
  if (outcome !== undefined || verdict !== undefined) return 'The call was answered.';
  return machineDetection === 'disabled'
    ? 'The call was answered. Detection is off.'
    : 'The call was answered. Detection is listening.';
}

/** The side that hung up, as in `The far end hung up`. */
export const hangUpWords = (reasonCode) => capitalised(wordOf(reasonCodeWords, reasonCode));

/** How a call ended that was answered. */
export function endSentence({ outcome, reasonCode, machineDetection }) {
  if (outcome === 'completed')
    return /-disconnected$/.test(reasonCode ?? '')
      ? `${hangUpWords(reasonCode)}.`
      : 'The call ended.';
  if (outcome === 'machine')
    return machineDetection === 'disconnect'
      ? 'The gateway hung up, because a machine had answered.'
      : 'No message was left.';
  if (outcome === 'voicemail-left') return 'Your message was left.';
  if (outcome === 'transferred') return 'The carrier connected the person to an agent.';
  return Object.hasOwn(outcomeWords, outcome)
    ? sentence(outcomeWords[outcome])
    : `The call ended: ${outcome}.`;
}

export const faultSentence = (fault) =>
  fault === undefined ? undefined : `At fault: ${wordOf(faultWords, fault)}.`;
