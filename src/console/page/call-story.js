// Tells what happened in a call, in a few sentences: who answered and how sure that is, what was
// done, and how it ended. Pure. A sentence says only what the call's data says.

import { answererWords, hangUpWords, sentenceSoFar, unansweredSentence } from './call-sentences.js';
import {
  amdReasonWords,
  missingWords,
  optOutWords,
  outcomeWords,
  streamReasonWords,
  wordOf,
} from './code-words.js';
import { duration, numberOf, plural } from './format.js';

/**
 * @param call as in `GET …/calls/{callId}`
 * @param write formats a number for people
 * @returns sentences as `{ text, code }`. `code` is the API's code for what the sentence says, if
 * there is one
 */
export function storyOf(call, write = (number) => number) {
  const known = { call, write, end: last(call, 'completed', 'failed')?.data, amd: amdOf(call) };
  const sentences =
    call.answeredAt === undefined
      ? [...placing(known), gatewaysTried(known)]
      : [...answerers(known), ...deeds(known), ending(known)];
  return sentences
    .filter((sentence) => sentence !== undefined)
    .map(([text, code]) => (code === undefined ? { text } : { text, code }));
}

const amdOf = ({ timeline }) =>
  timeline.filter(({ type }) => type === 'amd').map(({ data }) => data.amd);
const last = ({ timeline }, ...types) => timeline.findLast(({ type }) => types.includes(type));

// ── Before the answer ───────────────────────────────────────────────────────────────────────────

function placing({ call, end }) {
  if (call.state !== 'ended') return [[sentenceSoFar(call), call.waitsFor?.rule]];
  const { outcome = 'unknown', rule } = call;
  const facts = {
    ringMs: end?.ringDurationInMS,
    wasDialled: last(call, 'dialing') !== undefined,
  };
  const sipStatus = call.sipStatus ?? end?.sipStatus;
  const codes = [outcome, rule, call.sipStatus].filter((code) => code !== undefined);
  return [[unansweredSentence({ ...call, sipStatus }, facts), codes.join(' ')]];
}

function gatewaysTried({ call, end }) {
  const failed = (end ?? last(call, 'dialing')?.data)?.failedAttempts ?? [];
  if (failed.length === 0) return undefined;
  return [`Before that, ${plural(failed.length, 'other gateway')} of the trunk failed.`];
}

// ── Who answered ────────────────────────────────────────────────────────────────────────────────

const verdictEvents = [
  ...['amd_human_detected', 'amd_machine_detected', 'amd_no_speech_detected'],
  ...['amd_decision_timeout', 'amd_error'],
];

function answerers({ call, amd }) {
  const verdicts = amd.filter(({ event }) => verdictEvents.includes(event));
  if (verdicts.length === 0) return [unjudged(call)];
  const correction = amd.find(({ corrects }) => corrects !== undefined);
  if (correction !== undefined) return corrected(verdicts[0], correction);
  return [
    ...verdicts.map((verdict, index) => verdictSentence(verdict, index > 0)),
    afterScreening(amd),
  ];
}

function unjudged(call) {
  const ringMs = Date.parse(call.answeredAt) - Date.parse(call.ringingAt ?? call.answeredAt);
  const after = ringMs > 0 ? ` after ringing for ${duration(ringMs)}` : '';
  if (call.machineDetection === 'disabled') return [`The call was answered${after}.`];
  return call.state === 'ended'
    ? [`The call was answered${after}, and ended before it was known by whom.`]
    : [`The call was answered${after}. Detection is listening.`];
}

function verdictSentence(amd, isLater) {
  const then = (text) => (isLater ? `Then ${text[0].toLowerCase()}${text.slice(1)}` : text);
  const why = amdReasonWords(amd);
  const codes = `${amd.event} ${amd.reason}`;
  switch (amd.event) {
    case 'amd_human_detected':
    case 'amd_machine_detected': {
      const who = answererWords(amd.event, amd.reason);
      return [then(`${who}, recognised after ${evidence(amd, why)}.`), codes];
    }
    case 'amd_no_speech_detected':
      return [then(`The call was answered, but ${why}.`), codes];
    case 'amd_decision_timeout':
      return [`It is not known who answered: after ${evidence(amd, why)}.`, codes];
    default:
      return [`It is not known who answered: ${why}.`, codes];
  }
}

/** E.g. 1.1 s (95 % sure, 11 words without a pause). */
function evidence({ elapsedMs, confidence }, why) {
  const sure = confidence === undefined ? [] : [`${Math.round(confidence * 100)} % sure`];
  return `${duration(elapsedMs)} (${[...sure, why].join(', ')})`;
}

function corrected(first, correction) {
  return [
    [
      `At first it sounded like a person, after ${evidence(first, amdReasonWords(first))}.`,
      `${first.event} ${first.reason}`,
    ],
    [
      `After ${duration(correction.elapsedMs)}, ${amdReasonWords(correction)} showed that it was a machine.`,
      `${correction.event} ${correction.reason}`,
    ],
  ];
}

const screenings = {
  'human-after-screening': 'After its question, a person spoke.',
  'machine-after-screening': 'After its question, a machine spoke.',
  'nobody-after-screening': 'After its question, nobody spoke.',
};

function afterScreening(amd) {
  const reason = amd.findLast(({ event }) => event === 'amd_stopped')?.reason;
  return Object.hasOwn(screenings, reason ?? '') ? [screenings[reason], reason] : undefined;
}

// ── What was done ───────────────────────────────────────────────────────────────────────────────

function deeds(known) {
  return [message, bot, transfer, abandonment, optOut].map((deed) => deed(known));
}

/** The beep that a message may follow is at most this old. An older one was of something else. */
const beepAgeMs = 10_000;

function message({ call, end }) {
  const started = call.timeline.findLast(
    ({ type, data }) => type === 'playback-started' && data.source === 'voicemail',
  );
  if (started === undefined) return withoutMessage(call, end);
  const when = afterBeep(call, started);
  const again =
    started.data.restart === undefined ? '' : `, and began ${started.data.restart + 1} times`;
  const left = end?.voicemail;
  if (left === undefined) return [`Your message began ${when}${again}.`];
  return left.complete
    ? [`Your message (${duration(left.durationMs)}) was left ${when}${again}.`, end.outcome]
    : [
        `Only ${duration(left.durationMs)} of your message were left, ${when}${again}.`,
        end.outcome,
      ];
}

function withoutMessage(call, end) {
  const beep = beepOf(call)?.data.amd;
  const heard =
    beep === undefined || beep.corrects !== undefined
      ? ''
      : `A beep came after ${duration(beep.elapsedMs)}.`;
  const none = end?.outcome === 'machine' ? 'No message was left.' : '';
  const text = [heard, none].filter(Boolean).join(' ');
  return text === '' ? undefined : [text, none === '' ? 'amd_tone_detected' : 'machine'];
}

const beepOf = ({ timeline }) =>
  timeline.findLast(({ type, data }) => type === 'amd' && data.amd.event === 'amd_tone_detected');

function afterBeep(call, { time, data }) {
  if (data.afterBeep !== true) return 'without a beep';
  const beep = beepOf(call);
  const gapMs = beep === undefined ? -1 : Date.parse(time) - Date.parse(beep.time);
  if (data.restart !== undefined || gapMs < 0 || gapMs > beepAgeMs) return 'after the beep';
  return gapMs < 1_000 ? `${gapMs} ms after the beep` : `${duration(gapMs)} after the beep`;
}

function bot({ call }) {
  const failed = last(call, 'stream-failed');
  if (failed === undefined || failed.data.willRetry) return undefined;
  const { commandId, reason } = failed.data;
  const came = call.timeline.some(
    ({ type, data }) => type === 'stream-started' && data.commandId === commandId,
  );
  const what = came ? 'The bot was lost' : 'The bot did not come';
  return [`${what}: ${streamReasonWords(reason)}.`, reason];
}

function transfer({ call, write }) {
  const event = call.timeline.findLast(({ type }) => type.startsWith('transfer-'));
  if (event === undefined) return undefined;
  const { to, outcome, durationMs } = event.data;
  const agent = write(numberOf(to));
  switch (event.type) {
    case 'transfer-ringing':
      return [`The phone of ${agent} rings, for a transfer.`];
    case 'transfer-answered':
      return [`The person is connected to ${agent}.`];
    case 'transfer-completed':
      return outcome === 'transferred'
        ? [`The carrier connected the person to ${agent}.`, outcome]
        : [`The person was connected to ${agent} for ${duration(durationMs)}.`, outcome];
    default:
      return [`The transfer to ${agent} failed: ${wordOf(outcomeWords, outcome)}.`, outcome];
  }
}

function abandonment({ call, end }) {
  const event = last(call, 'abandoned');
  // Detection may have corrected its verdict since.
  if (event === undefined || (end !== undefined && end.abandoned !== true)) return undefined;
  const who = wordOf(missingWords, event.data.missing);
  return [`Abandoned: ${who} reached the person within two seconds.`, event.data.missing];
}

function optOut({ call }) {
  const event = last(call, 'opted-out');
  if (event === undefined) return undefined;
  const how = wordOf(optOutWords, event.data.by);
  return [`The person asked not to be called any more, ${how}. The number is suppressed.`];
}

// ── How it ended ────────────────────────────────────────────────────────────────────────────────

function ending({ call, end, amd }) {
  if (end === undefined) return undefined;
  const { outcome, reason, reasonCode } = end;
  const after = `after ${duration(Date.parse(call.endedAt) - Date.parse(call.answeredAt))}`;
  // The sentence about the bot says the rest.
  if (outcome === 'bot-failure') return [`The gateway hung up ${after}.`, outcome];
  if (outcome === 'transferred') return undefined;
  if (outcome === 'gateway-failure')
    return [`The gateway ended the call ${after}: ${reason}.`, outcome];
  if (outcome === 'completed' && reasonCode === 'Gateway-disconnected')
    return [`The call reached its longest duration and was ended ${after}.`, reasonCode];
  if (outcome !== 'completed') return [`The gateway hung up ${after}.`, reasonCode];
  return [`${whoHungUp(call, reasonCode, amd)} ${after}.`, reasonCode];
}

/** The page knows more than the words of the code: that it was a person, or the bot. */
function whoHungUp(call, reasonCode, amd) {
  const wasPerson =
    amd.some(({ event }) => event === 'amd_human_detected') &&
    !amd.some(({ corrects }) => corrects !== undefined);
  if (reasonCode === 'Caller-disconnected' && wasPerson) return 'The person hung up';
  const wasBot = last(call, 'stream-stopped')?.data.reason === 'bot-closed';
  return reasonCode === 'Bot-disconnected' && wasBot ? 'The bot hung up' : hangUpWords(reasonCode);
}
