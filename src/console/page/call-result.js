// Says in one badge what became of a call. `who` is the colour: who picked up. `words` say why, and
// `explanation` says it in whole sentences, on hover and to screen readers. Pure: the badge itself
// is in `result-badge.js`.

import {
  answerSentence,
  endSentence,
  faultSentence,
  sentenceSoFar,
  unansweredSentence,
} from './call-sentences.js';
import { between, secondsSoFar, statusWord } from './format.js';
import { briefRule, untilWords } from './rule-words.js';

/**
 * The kinds of results say who picked up, or why nobody did:
 * - person, machine: as detected. unclear: somebody answered, but detection doesn't say who.
 * - nobody: the phone wasn't answered. failed: something broke, or somebody on the way refused.
 * - held: a calling rule holds the call or has ended it. cancelled: the application ended it.
 * - waiting, ringing: not answered yet.
 *
 * @param call as the API describes it, in a list or by itself
 * @param nowMs the time for calls in progress, which last until now
 * @returns words in two parts, `name` and `detail`; `isLive`: they change each second
 */
export function callResult(call, nowMs = Date.now()) {
  const { who, name, detail } =
    call.outcome === undefined ? resultSoFar(call, nowMs) : resultOfEnd(call);
  return {
    who,
    name,
    detail,
    words: detail === undefined || detail === '' ? name : `${name} · ${detail}`,
    explanation: sentences(call).join(' '),
    isLive: call.outcome === undefined && call.ringingAt !== undefined,
  };
}

const verdicts = {
  amd_human_detected: ['person', 'Person'],
  amd_machine_detected: ['machine', 'Machine'],
  amd_tone_detected: ['machine', 'Machine'],
  amd_machine_stopped_speaking: ['machine', 'Machine'],
  amd_no_speech_detected: ['unclear', 'No speech'],
  amd_decision_timeout: ['unclear', 'Undecided'],
  amd_error: ['unclear', 'Detection failed'],
};

/** Reasons that say which machine it is. */
const machines = {
  'fax-tone': 'Fax',
  'sit-tone': 'Network announcement',
  'call-screening': 'Call screening',
};

function pickedUp({ verdict, verdictReason }) {
  const [who, name] = verdicts[verdict] ?? ['unclear', 'Answered'];
  return { who, name: (who === 'machine' && machines[verdictReason]) || name };
}

// ── Calls in progress ─────────────────────────────────────────────────────────────────────────

function resultSoFar(call, nowMs) {
  const { state, status, waitsFor, queuePosition } = call;
  const since = (iso) => (iso === undefined ? undefined : secondsSoFar(nowMs - Date.parse(iso)));
  if (waitsFor !== undefined)
    return {
      who: 'held',
      name: `Held: ${briefRule(waitsFor.rule)}`,
      detail: untilWords(waitsFor.until).trim(),
    };
  if (state === 'queued')
    return {
      who: 'waiting',
      name: 'Queued',
      detail: queuePosition === undefined ? undefined : `no. ${queuePosition}`,
    };
  if (state === 'ringing')
    return { who: 'ringing', name: 'Ringing', detail: since(call.ringingAt) };
  if (call.answeredAt !== undefined) return { ...pickedUp(call), detail: since(call.answeredAt) };
  return { who: 'waiting', name: statusWord(status) };
}

// ── Calls that have ended ─────────────────────────────────────────────────────────────────────

const rejections = {
  carrier: 'Rejected by carrier',
  gateway: 'Trunk login refused',
  callee: 'Rejected by callee',
};

/** Each outcome: who, and the words of the badge. */
const ends = {
  completed: {},
  transferred: { detail: () => 'transferred' },
  machine: {
    who: 'machine',
    detail: (call) => (isHungUp(call) ? 'hung up' : 'no message left'),
  },
  'voicemail-left': { who: 'machine', detail: () => 'message left' },
  busy: { who: 'nobody', name: () => 'Busy' },
  declined: { who: 'nobody', name: () => 'Declined' },
  blocked: { who: 'failed', name: () => 'Blocked by carrier' },
  'no-answer': { who: 'nobody', name: () => 'No answer' },
  unavailable: { who: 'nobody', name: () => 'Unavailable' },
  'invalid-number': { who: 'failed', name: () => 'No such number' },
  rejected: { who: 'failed', name: ({ fault }) => rejections[fault] ?? rejections.carrier },
  'carrier-failure': { who: 'failed', name: () => 'Carrier failed' },
  'gateway-failure': { who: 'failed', name: () => 'Gateway failed', detail: talkTime },
  'bot-failure': { who: 'failed', name: () => 'Bot failed', detail: talkTime },
  cancelled: { who: 'cancelled', name: () => 'Cancelled' },
  expired: { who: 'failed', name: () => 'Queued too long' },
  'not-permitted': {
    who: 'held',
    name: ({ rule }) =>
      rule === undefined ? 'Not permitted' : `Not permitted: ${briefRule(rule)}`,
  },
  unknown: { who: 'failed', name: () => 'Outcome unknown' },
};

/** With `disconnect`, no message was planned. */
const isHungUp = ({ machineDetection }) => machineDetection === 'disconnect';

function resultOfEnd(call) {
  const end = ends[call.outcome];
  // An outcome that this page doesn't know yet.
  if (end === undefined) return { who: 'unclear', name: call.outcome };
  const answer = pickedUp(call);
  const detail = (end.detail ?? (end.name === undefined ? talkTime : () => undefined))(call);
  if (end.name !== undefined) return { who: end.who, name: end.name(call), detail };
  // The gateway took whatever it was for a machine.
  const isOther = end.who !== undefined && (answer.who === 'person' || answer.name === 'Answered');
  return { who: end.who ?? answer.who, name: isOther ? 'Machine' : answer.name, detail };
}

function talkTime({ answeredAt, endedAt }) {
  const ms = between(answeredAt, endedAt);
  return ms === undefined ? undefined : secondsSoFar(ms);
}

function sentences(call) {
  if (call.outcome === undefined)
    return [call.answeredAt === undefined ? sentenceSoFar(call) : answerSentence(call)];
  const told =
    call.answeredAt === undefined
      ? [unansweredSentence(call)]
      : [answerSentence(call), endSentence(call)];
  return [...told, whyWords(call, told.join(' ')), faultSentence(call.fault)].filter(
    (text) => text !== undefined,
  );
}

/** The status line and the cause, unless they add nothing or say that all went well. */
function whyWords({ reason, cause, sipStatus, outcome }, told) {
  // A rule's reason repeats the rule.
  const isNew = !['', '200 OK'].includes(reason ?? '') && outcome !== 'not-permitted';
  const own = isNew && !told.includes(reason) ? reason : undefined;
  const words = [own, causeWords(cause)].filter((text) => text !== undefined).join(', ');
  if (words === '') return undefined;
  return `${sipStatus === undefined || sipStatus === 200 ? 'Reason' : 'The carrier’s response'}: ${words}.`;
}

function causeWords({ q850, text } = {}) {
  if (q850 === undefined) return text;
  return text === undefined ? `Q.850 cause ${q850}` : `Q.850 cause ${q850} (${text})`;
}
