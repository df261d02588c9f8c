// Says in words what the codes of the API mean. Each list below has words for every code of one
// list in the source (`test/console/code-words.test.ts` checks that). A code without words, e.g.
// from a later version, is shown as it is.

import { duration, plural } from './format.js';

// ── Detection ───────────────────────────────────────────────────────────────────────────────────

const seconds = (ms, otherwise) => (ms === undefined ? otherwise : duration(ms));
const spokenWords = ({ words }) => (words === undefined ? 'words' : plural(words, 'word'));

/** Pauses that add up to less than this are the gaps between words. */
const gapsMs = 300;

function pausesOf({ spanMs, speechMs }) {
  if (spanMs === undefined || speechMs === undefined) return 'with hardly a pause';
  return spanMs - speechMs < gapsMs ? 'without a pause' : 'with hardly a pause';
}

/** Why detection took somebody for a person or a machine. Each gets the evidence. */
export const verdictReasonWords = {
  'short-greeting': (amd) =>
    amd.words === undefined ? 'a short greeting' : `a short greeting of ${spokenWords(amd)}`,
  'greeting-then-silence': ({ pauseMs }) => `a greeting, then ${seconds(pauseMs, '')} silence`,
  'word-count': (amd) => `${spokenWords(amd)}, counted as the request asks`,
  'long-greeting': ({ spanMs }) => `somebody talked for ${seconds(spanMs, 'a long time')}`,
  'dense-speech': (amd) => `${spokenWords(amd)} ${pausesOf(amd)}`,
  'many-words': (amd) => `${spokenWords(amd)} in ${seconds(amd.spanMs, 'a short time')}`,
  'several-sentences': ({ spanMs }) =>
    `several sentences with a pause between them, ${seconds(spanMs, 'too long')} in all`,
  'voicemail-phrase': () => 'words that only a mailbox says',
  'call-screening': () => 'it asked who is calling',
  tone: ({ tone }) => `a beep${tone === undefined ? '' : ` of ${Math.round(tone.hz)} Hz`}`,
  'fax-tone': () => 'the tone of a fax machine',
  'sit-tone': () => 'the three tones before an announcement',
  'no-speech': ({ elapsedMs }) => `nobody spoke for ${seconds(elapsedMs, 'a long time')}`,
  undecided: () => 'what was said fits a person and a machine',
};

export const detectionFaultWords = {
  'audio-unheard': ({ unheardMs }) =>
    `the gateway was overloaded and did not hear ${seconds(unheardMs, 'a part')} of the call`,
  'detector-failed': () => 'the detector failed',
  'media-lost': () => 'the call lost its audio',
  'media-failed': () => 'the gateway’s media process died',
};

export const greetingReasonWords = {
  silence: ({ pauseMs }) => `silence for ${seconds(pauseMs, 'a while')}`,
  tone: () => 'a beep ended it',
  beep: ({ tone }) =>
    tone === undefined
      ? 'a beep'
      : `a beep of ${Math.round(tone.hz)} Hz, ${Math.round(tone.ms)} ms`,
};

export const detectionStopWords = {
  human: () => 'it was a person, and no beep followed',
  tone: () => 'the beep was heard',
  'fax-tone': () => 'it was a fax machine',
  'no-speech': () => 'nobody spoke',
  'decision-timeout': () => 'the time to decide was over',
  'greeting-timeout': () => 'the greeting did not end',
  'tone-timeout': () => 'no beep came',
  'human-after-screening': () => 'a person spoke after the call screener',
  'machine-after-screening': () => 'a machine spoke after the call screener',
  'nobody-after-screening': () => 'nobody spoke after the call screener',
  screened: () => 'the call screener is answered, and detection begins again',
  'plans-over': () => 'nothing is left to wait for',
  error: () => 'detection failed',
  'call-ended': () => 'the call ended',
  'session-closed': () => 'the call’s audio ended',
  'gateway-restarted': () => 'the gateway restarted',
  'gateway-lost': () => 'the gateway was lost',
  'gateway-failed': () => 'the gateway failed',
  'recording-ended': () => 'the recording ended',
};

/** What the request asks of detection. */
export const detectionModeWords = {
  detect: 'on',
  disconnect: 'on, and hangs up on machines',
  disabled: 'off',
};

export const transcriptionWords = {
  used: 'its words were counted',
  late: 'its words came too late, so the sound alone was judged',
  failed: 'it failed, so the sound alone was judged',
  unconfigured: 'this gateway has no such provider, so the sound alone was judged',
};

const withTranscription = /-transcription-(late|failed|unconfigured)$/;

/** Explains a detection event by its reason and its evidence. */
export function amdReasonWords(amd) {
  const reason = amd.reason.replace(withTranscription, '');
  const lists = amd.event === 'amd_stopped' ? [detectionStopWords] : [];
  const isGreeting = /^amd_(tone|machine_stopped)/.test(amd.event);
  lists.push(...(isGreeting ? [greetingReasonWords] : []), verdictReasonWords, detectionFaultWords);
  const words = lists.find((list) => Object.hasOwn(list, reason));
  return words === undefined ? amd.reason : words[reason](amd).replace(/ {2,}/g, ' ');
}

// ── Abandoned calls, opting out. For calling rules, see `rule-words.js`. ────────────────────────

/** The bot or agent that didn't reach the person in time. */
export const missingWords = {
  agent: 'no agent',
  'bot-or-agent': 'neither a bot nor an agent',
  message: 'no message',
};

export const optOutWords = { key: 'by pressing a key', command: 'by a command of the application' };

// ── Sounds, transfers, recordings ───────────────────────────────────────────────────────────────

/** The sound, by the plan or command that plays it. */
export const soundWords = {
  command: 'A sound',
  voicemail: 'Your message',
  screening: 'The answer to the call screener',
  announcement: 'An announcement',
  recording: 'The announcement of the recording',
};

export const soundEndWords = {
  done: 'played to its end',
  stopped: 'stopped before its end',
  failed: 'could not be played',
};

export const recordingBeginWords = {
  answer: 'from the answer',
  person: 'from when a person was heard',
  command: 'from a command',
};
export const recordingStopWords = { command: 'by a command', 'call-ended': 'the call ended' };
export const recordingPauseWords = {
  command: 'by a command',
  keys: 'while the person presses keys',
};

/** Why a call couldn't be recorded, or its recording couldn't be stored. */
export const recordingFailureWords = {
  'disk-full': 'the gateway’s disk is full',
  'spool-unusable': 'the gateway cannot write to its spool',
  'disk-slow': 'the gateway’s disk is too slow',
  'thread-failed': 'the gateway’s recording thread died',
  key: 'the key could not be used',
  'media-failed': 'the gateway’s media process died',
  announcement: 'the announcement was not played to its end',
  'store-unreachable': 'the store did not respond for 24 hours',
  'store-refused': 'the store refused it',
  'store-full': 'the store is full',
  lost: 'the gateway died, and its spool cannot be read',
};

// ── How calls end ───────────────────────────────────────────────────────────────────────────────

/** As in "The transfer failed: the line was busy." */
export const outcomeWords = {
  completed: 'the call was answered and ended',
  transferred: 'the person was transferred',
  machine: 'a machine answered',
  'voicemail-left': 'a message was left',
  busy: 'the line was busy',
  declined: 'the call was declined',
  blocked: 'a carrier blocked the call',
  'no-answer': 'nobody answered',
  unavailable: 'the phone could not be reached',
  'invalid-number': 'the number does not exist',
  rejected: 'the call was refused',
  'carrier-failure': 'the carrier failed',
  'gateway-failure': 'the gateway failed',
  'bot-failure': 'the bot could not be reached',
  cancelled: 'the call was cancelled',
  expired: 'it waited too long for its trunk',
  'not-permitted': 'a calling rule forbids it',
  unknown: 'nobody knows how it ended',
};

/** The side that hung up, by reason code. */
export const reasonCodeWords = {
  OK: 'answered',
  'Busy here': 'busy',
  'Service Unavailable': 'not placed',
  'Temporarily Unavailable': 'not answered',
  'Caller-disconnected': 'the far end hung up',
  'Bot-disconnected': 'the application or its bot hung up',
  'Gateway-disconnected': 'the gateway hung up',
};

export const faultWords = {
  caller: 'the application',
  callee: 'the called phone',
  carrier: 'the carrier',
  gateway: 'the gateway',
};

// ── Bots and receivers ──────────────────────────────────────────────────────────────────────────

/** Why a bot's stream ended although it didn't fail. */
export const streamStopWords = {
  'call-ended': 'the call ended',
  'bot-closed': 'the bot hung up',
  command: 'a command ended it',
  replaced: 'another bot took over',
  transferred: 'the person was transferred',
  voicemail: 'a message for the machine took over',
  announcement: 'an announcement took over',
  'media-failed': 'the gateway’s media process died',
};

export const streamFaultWords = {
  timeout: 'it did not respond in time',
  silent: 'it no longer responds',
  backlog: 'it does not read its audio fast enough',
  'address-not-allowed': 'its address is private or reserved, and not allowed',
  'settings-unreadable': 'its settings could not be read',
  failed: 'the connection failed',
};

/** Why the gateway gave up on a notification. */
export const deliveryFailureWords = {
  expired: 'the receiver did not accept it within 24 hours',
  gone: 'the receiver wants no more notifications of this call (410)',
  forbidden: 'the gateway may not send to this address',
};

/** Errors of connections, by the codes of Node.js and undici. */
const connectionErrors = {
  ECONNREFUSED: 'nothing listens at its address',
  ECONNRESET: 'it broke the connection',
  ECONNABORTED: 'it broke the connection',
  EPIPE: 'it broke the connection',
  ETIMEDOUT: 'it did not respond in time',
  EHOSTUNREACH: 'there is no way to its host',
  ENETUNREACH: 'there is no way to its network',
  EHOSTDOWN: 'its host is down',
  ENOTFOUND: 'its host name does not exist',
  EAI_AGAIN: 'its host name could not be looked up',
  EADDRNOTAVAIL: 'the gateway has no free port',
  EMFILE: 'the gateway has too many open connections',
  EPROTO: 'TLS failed',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is self-signed',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is from nobody whom the gateway trusts',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate is from nobody whom the gateway trusts',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
};

const errorFamilies = [
  [/^UND_ERR_\w*TIMEOUT$/, 'it did not respond in time'],
  [/^(ERR_SSL|ERR_TLS|ERR_OSSL|CERT_|UNABLE_TO_)/, 'TLS failed'],
  [/^HPE_/, 'it does not speak HTTP'],
  [/^UND_ERR/, 'the connection broke'],
  [/^E[A-Z0-9_]+$/, 'the connection failed'],
];

/** Says why nothing could be sent to a receiver or a bot. Text that isn't a code stays as it is. */
export function connectionWords(code) {
  if (Object.hasOwn(connectionErrors, code)) return connectionErrors[code];
  return errorFamilies.find(([pattern]) => pattern.test(code))?.[1] ?? code;
}

const statuses = {
  401: 'it does not accept the signature or the credentials',
  403: 'it does not allow it',
  404: 'it does not know the address',
  405: 'it does not accept POST',
  408: 'it waited too long for the request',
  410: 'it wants no more notifications of this call',
  413: 'it finds the notification too long',
  429: 'it asks for fewer requests',
  502: 'a proxy in front of it got no answer',
  503: 'it is not available at the moment',
  504: 'a proxy in front of it got no answer in time',
};

/** Says what a receiver's or a bot's HTTP status means. */
export function httpStatusWords(status) {
  if (Object.hasOwn(statuses, status)) return statuses[status];
  if (status >= 500) return 'it failed';
  if (status >= 400) return 'it refused the request';
  if (status >= 300) return 'it points to another address, which the gateway does not follow';
  return status >= 200 ? 'it accepted' : `it responded with ${status}`;
}

const closes = {
  1001: 'it went away',
  1006: 'the connection broke',
  1009: 'a message was too long',
  1011: 'it failed',
  1012: 'it restarts',
  1013: 'it is overloaded',
};

/** Says why a bot couldn't be reached, or why its stream broke or ended. */
export function streamReasonWords(reason) {
  for (const list of [streamStopWords, streamFaultWords])
    if (Object.hasOwn(list, reason)) return list[reason];
  const [, kind, number] = /^(status|closed)-(\d+)$/.exec(reason) ?? [];
  if (kind === 'status') return httpStatusWords(Number(number));
  if (kind === 'closed') return closes[number] ?? 'it closed the connection';
  return connectionWords(reason);
}

/** Looks a code up, or returns it as it is. */
export const wordOf = (list, code) => (Object.hasOwn(list, code) ? list[code] : code);
