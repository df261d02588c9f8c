// Says in one badge what became of a call. `who` is the colour: who picked up. `words` say why, and
// `explanation` says it in whole sentences, on hover and to screen readers. Pure: the badge itself
// is in `result-badge.js`.

import { between, secondsSoFar, statusWord } from './format.js';
import { briefRule, ruleWord, untilWords } from './rule-words.js';

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

function sentencesSoFar({ state, waitsFor, queuePosition, verdict, answeredAt, machineDetection }) {
  if (waitsFor !== undefined)
    return [
      `A calling rule holds the call: ${ruleWord(waitsFor.rule)}. It is checked again${untilWords(waitsFor.until, 'at')}.`,
    ];
  if (state === 'queued')
    return [
      'The call waits for its trunk.',
      ...(queuePosition === undefined ? [] : [`It is number ${queuePosition} in the queue.`]),
    ];
  if (answeredAt !== undefined) {
    if (verdict !== undefined) return [pickUpSentences[verdict] ?? pickUpUnknown];
    return [
      machineDetection === 'disabled'
        ? 'The call was answered. Detection is off.'
        : 'The call was answered. Detection has not decided yet who it is.',
    ];
  }
  return [state === 'ringing' ? 'The phone rings.' : 'The gateway dials the number.'];
}

// ── Calls that have ended ─────────────────────────────────────────────────────────────────────

const rejections = {
  carrier: ['Rejected by carrier', 'The carrier refused the call.'],
  gateway: ['Trunk login refused', 'The carrier refused the trunk’s credentials.'],
  callee: ['Rejected by callee', 'The callee’s device refused the call.'],
};
const rejectionOf = ({ fault }) => rejections[fault] ?? rejections.carrier;

/** Each outcome: who, the words of the badge, and a sentence. */
const ends = {
  completed: { sentence: ({ reasonCode }) => hangUpSentences[reasonCode] ?? 'The call ended.' },
  transferred: {
    detail: () => 'transferred',
    sentence: () => 'The carrier connected the call to an agent.',
  },
  machine: {
    who: 'machine',
    detail: (call) => (isHungUp(call) ? 'hung up' : 'no message left'),
    sentence: (call) =>
      isHungUp(call)
        ? 'The gateway hung up because a machine had answered.'
        : 'The call ended without a message.',
  },
  'voicemail-left': {
    who: 'machine',
    detail: () => 'message left',
    sentence: () => 'The message was left.',
  },
  busy: { who: 'nobody', name: () => 'Busy', sentence: () => 'The line was busy.' },
  declined: {
    who: 'nobody',
    name: () => 'Declined',
    sentence: () => 'The callee declined the call.',
  },
  blocked: {
    who: 'failed',
    name: () => 'Blocked by carrier',
    sentence: ({ block }) =>
      block?.by === undefined
        ? 'A carrier’s filter blocked the call.'
        : `A filter blocked the call: ${block.by}.`,
  },
  'no-answer': { who: 'nobody', name: () => 'No answer', sentence: () => 'Nobody answered.' },
  unavailable: {
    who: 'nobody',
    name: () => 'Unavailable',
    sentence: () => 'The phone could not be reached, for example because it is switched off.',
  },
  'invalid-number': {
    who: 'failed',
    name: () => 'No such number',
    sentence: () => 'The carrier says that the number does not exist.',
  },
  rejected: {
    who: 'failed',
    name: (call) => rejectionOf(call)[0],
    sentence: (call) => rejectionOf(call)[1],
  },
  'carrier-failure': {
    who: 'failed',
    name: () => 'Carrier failed',
    sentence: () => 'The carrier could not place the call, or it could not be reached.',
  },
  'gateway-failure': {
    who: 'failed',
    name: () => 'Gateway failed',
    detail: talkTime,
    sentence: () => 'The gateway ended the call because of a failure of its own.',
  },
  'bot-failure': {
    who: 'failed',
    name: () => 'Bot failed',
    detail: talkTime,
    sentence: () => 'The gateway ended the call because the bot could not be reached.',
  },
  cancelled: {
    who: 'cancelled',
    name: () => 'Cancelled',
    sentence: () => 'The application cancelled the call before it was answered.',
  },
  expired: {
    who: 'failed',
    name: () => 'Queued too long',
    sentence: () => 'The call waited in the queue for too long. No phone rang.',
  },
  'not-permitted': {
    who: 'held',
    name: ({ rule }) =>
      rule === undefined ? 'Not permitted' : `Not permitted: ${briefRule(rule)}`,
    sentence: ({ rule, notBefore }) =>
      rule === undefined
        ? 'A calling rule forbids the call. No phone rang.'
        : `A calling rule forbids the call: ${ruleWord(rule)}${untilWords(notBefore)}. No phone rang.`,
  },
  unknown: {
    who: 'failed',
    name: () => 'Outcome unknown',
    sentence: () => 'The gateway was lost while it placed the call. The phone may have rung.',
  },
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

const pickUpSentences = {
  amd_human_detected: 'A person picked up.',
  amd_machine_detected: 'A machine picked up.',
  amd_tone_detected: 'A machine picked up, as its beep showed.',
  amd_machine_stopped_speaking: 'A machine picked up.',
  amd_no_speech_detected: 'The call was answered, but nobody spoke.',
  amd_decision_timeout: 'The call was answered, but it did not become clear who spoke.',
  amd_error: 'The call was answered, but detection failed.',
};
const pickUpUnknown = 'The call was answered.';

const machineSentences = {
  'fax-tone': 'A fax machine picked up.',
  'sit-tone': 'An announcement of the telephone network was heard.',
  'call-screening': 'A call screener picked up.',
};

const hangUpSentences = {
  'Caller-disconnected': 'The callee hung up.',
  'Bot-disconnected': 'The bot or the application hung up.',
  'Gateway-disconnected': 'The gateway hung up.',
};

const faultSentences = {
  caller: 'At fault: the application that requested the call.',
  callee: 'At fault: the callee.',
  carrier: 'At fault: the carrier.',
  gateway: 'At fault: this gateway or its trunk.',
};

function sentences(call) {
  if (call.outcome === undefined) return sentencesSoFar(call);
  const end = ends[call.outcome];
  return [
    answerSentence(call),
    end === undefined ? `The call ended: ${call.outcome}.` : end.sentence(call),
    whyWords(call),
    faultSentences[call.fault],
  ].filter((text) => text !== undefined);
}

function answerSentence({ answeredAt, verdict, verdictReason }) {
  if (answeredAt === undefined) return undefined;
  const isMachine = verdict === 'amd_machine_detected';
  return (
    (isMachine && machineSentences[verdictReason]) || (pickUpSentences[verdict] ?? pickUpUnknown)
  );
}

/** The status line and the cause, unless they say no more than that a call ended well. */
function whyWords({ reason, cause, sipStatus, outcome }) {
  const line = [undefined, '', '200 OK'].includes(reason) ? undefined : reason;
  // A rule's reason repeats the rule.
  const own = outcome === 'not-permitted' ? undefined : line;
  const words = [own, causeWords(cause)].filter((text) => text !== undefined).join(', ');
  if (words === '') return undefined;
  return `${sipStatus === undefined || sipStatus === 200 ? 'Reason' : 'The carrier’s response'}: ${words}.`;
}

function causeWords({ q850, text } = {}) {
  if (q850 === undefined) return text;
  return text === undefined ? `Q.850 cause ${q850}` : `Q.850 cause ${q850} (${text})`;
}
