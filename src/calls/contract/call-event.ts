// What a call states, as it stands on JetStream: `<prefix>.call.<accountId>.<botId>.<callId>.<type>`. Past-tense and
// self-contained: a reader needs no other source to build a notification, a timeline row or the context. Ids derive from the
// call id, so that an event that is published again is recognised. A new type needs its data here and a row in
// `event-table.ts`.

import { z } from 'zod';
import { identifier } from '../../lib/ids.ts';
import { amdEvent, amdEventNames } from '../detection/amd-event.ts';
import { transferNames, transferSummary } from '../transfer/transfer-summary.ts';
import { callContextSchema } from './call-context.ts';
import {
  type CallOutcome,
  callOutcomes,
  type PlaybackEndReason,
  type PlaybackSource,
  playbackEndReasons,
  playbackSources,
  type ReasonCode,
  reasonCodes,
} from './call-words.ts';
import { callIdentity } from './identity.ts';
import {
  durationMs,
  type Immutable,
  instant,
  type Mismatch,
  matching,
  sequence,
  wordOf,
} from './schema.ts';

/**
 * Adds `notificationSequence`, which is set if the call has a notify URL and the event is notified:
 * an answer, a subscribed AMD event, an event that the request selects, the end. The call gives the
 * number, so that the body never depends on who builds it.
 */
function eventData<Shape extends z.ZodRawShape>(shape: Shape) {
  const notificationSequence = sequence
    .exactOptional()
    .describe('1, 2, … over the notifications of the call; absent where the event is not notified');
  return z.object({ ...shape, notificationSequence });
}

const failedAttempt = z.object({
  gateway: z.string().describe('host:port, and the transport where it is not UDP'),
  sipStatus: z.number().int().exactOptional(),
  reason: z.string().describe('phrase without the status, or what failed'),
  durationMs,
});
/** What came of an INVITE over one gateway, after which another gateway was tried. */
export type FailedAttempt = Immutable<z.infer<typeof failedAttempt>>;

const failedAttempts = z
  .array(failedAttempt)
  .exactOptional()
  .describe('what the call tried before in vain, in order; absent where the first gateway took it');

/** Of the answer; repeated on every later event of the call. */
const answerTimes = {
  callConnectTime: instant,
  ringDurationInMS: durationMs,
  connectDurationInMS: durationMs,
};
export type AnswerTimes = Immutable<z.infer<z.ZodObject<typeof answerTimes>>>;

/** A message that a plan left, or began to leave. */
export const voicemailLeft = z.object({
  startedAt: instant.describe('of the last start'),
  durationMs: durationMs.describe('what went out of it since then'),
  complete: z.boolean().describe('from its first sample to its last'),
  afterBeep: z.boolean().describe('false: no beep was heard in time'),
});
export type VoicemailLeft = Immutable<z.infer<typeof voicemailLeft>>;
const outcome = wordOf<CallOutcome>(callOutcomes);

/** The one terminal event of a call, `completed` or `failed`. */
const end = eventData({
  outcome,
  reason: z.string(),
  reasonCode: wordOf<ReasonCode>(reasonCodes),
  sipStatus: z.number().int().exactOptional().describe('absent where no SIP status led to the end'),
  callConnectTime: instant.exactOptional().describe('absent where the call was never answered'),
  ringDurationInMS: durationMs.describe('first 18x to the answer, or to the end; 0 without a ring'),
  connectDurationInMS: durationMs.describe('INVITE to answer; 0 when never answered'),
  callDisconnectTime: instant,
  callDurationS: durationMs
    .exactOptional()
    .describe('whole seconds from answer to end; only on `completed`'),
  callDurationMs: durationMs.exactOptional().describe('the same in milliseconds, not rounded'),
  sessionId: z
    .string()
    .exactOptional()
    .describe('only on `completed`: `GET …/conversations/sessions/{sessionId}` is asked with it'),
  machineDetection: z
    .enum(amdEventNames)
    .exactOptional()
    .describe('the verdict where detection ran and has one, never `amd_stopped`'),
  machineDetected: z
    .boolean()
    .exactOptional()
    .describe('true when the call was ended because a machine picked up'),
  playedMs: durationMs
    .exactOptional()
    .describe('of all sounds, what went out; absent where none was played'),
  voicemail: voicemailLeft.exactOptional().describe('absent where no message was begun'),
  transfer: transferSummary
    .exactOptional()
    .describe('what became of the last transfer; absent where there was none'),
  failedAttempts,
  context: callContextSchema,
});

/** Of a sound. */
const playback = {
  playbackId: z.string().describe('of the command or of the plan that plays it'),
  commandId: z.string().exactOptional().describe('where a command plays it; as `playbackId`'),
  sound: z.string().describe('`sound:<name>`, or a URL without its query'),
  source: wordOf<PlaybackSource>(playbackSources),
};

const count = z.number().int().min(0);

/** Of a stream. */
const ofStream = {
  commandId: z
    .string()
    .exactOptional()
    .describe('of the command that began it; absent for that of the request'),
};

/**
 * Of each type what its event carries as `data`, and when it is stated: the table of src/events/README.md. Durations in ms,
 * instants ISO 8601 UTC.
 */
export const callEventData = {
  queued: eventData({ trunk: z.string().exactOptional() }).describe('the request is stored'),
  dialing: eventData({
    trunk: z.string().exactOptional(),
    gateway: z.string(),
    attempt: z.number().int().min(1).describe('counts the gateways from 1'),
    failedAttempts,
  }).describe('an INVITE was sent; one event for each gateway that is tried'),
  ringing: eventData({
    sipStatus: z.number().int(),
    sipReason: z.string(),
    earlyMedia: z.boolean(),
  }).describe('the first 18x response'),
  answered: eventData({ ...answerTimes, context: callContextSchema }).describe(
    'the 200 OK was stored and acknowledged',
  ),
  amd: eventData({ ...answerTimes, amd: amdEvent, context: callContextSchema }).describe(
    'answering machine detection reports something',
  ),
  dtmf: eventData({
    digit: z.string(),
    durationMs: durationMs.exactOptional(),
    source: z.enum(['rtp', 'info']),
  }).describe('a digit was pressed'),
  'dtmf-sent': eventData({
    commandId: z.string(),
    digits: z.string().describe('those that were pressed'),
    complete: z.boolean().describe('false: it was stopped, or the call ended'),
  }).describe('the keys of a command were pressed'),
  'stream-started': eventData({
    ...ofStream,
    connection: count.min(1).describe('1, and one more each time that it was made again'),
    openMs: durationMs.describe('from the try that succeeded to `start`'),
  }).describe('the bot took the audio stream'),
  'stream-stopped': eventData({
    ...ofStream,
    stoppedBy: z.string().exactOptional().describe('the command that ended or replaced it'),
    reason: z.string().describe('`call-ended`, `bot-closed`, `replaced`, `command`, …'),
    connections: count.exactOptional(),
    playedMs: durationMs.exactOptional().describe('audio of the bot that went out'),
    droppedMs: durationMs.exactOptional().describe('audio of the bot beyond what is kept'),
    underruns: count.exactOptional().describe('gaps of under 200 ms in what the bot said'),
    unheardMs: durationMs.exactOptional().describe('audio that the bot did not take in time'),
    ignoredMessages: count.exactOptional().describe('messages of the bot that were wrong'),
  }).describe('the audio stream is over; without numbers where they were not told in time'),
  'stream-failed': eventData({
    ...ofStream,
    reason: z.string().describe('a code: `ECONNREFUSED`, `status-404`, `closed-1012`, …'),
    willRetry: z
      .boolean()
      .describe('false: the call is hung up, or goes on without a bot where a command began it'),
  }).describe('the bot could not be reached, or its connection broke'),
  'playback-started': eventData({
    ...playback,
    restart: count.min(1).exactOptional().describe('of a message that starts anew: 1, 2, …'),
    afterBeep: z.boolean().exactOptional().describe('of a message: whether a beep was heard'),
  }).describe('the first packet of a sound was sent'),
  'playback-finished': eventData({
    ...playback,
    reason: wordOf<PlaybackEndReason>(playbackEndReasons),
    playedMs: durationMs.describe('what went out of it'),
  }).describe('the last packet of a sound was sent, or it was stopped'),
  'transfer-ringing': eventData({
    ...transferNames,
    sipStatus: z.number().int().describe('the first 18x of the second leg'),
    earlyMedia: z.boolean().describe('the person hears its ringback instead of ours'),
  }).describe('the phone of whom the person is to be connected to rings'),
  'transfer-answered': eventData(transferNames).describe(
    'the person is connected: the second 200 OK was stored and acknowledged',
  ),
  'transfer-completed': eventData(transferSummary.shape).describe(
    'a connection that was made is over',
  ),
  'transfer-failed': eventData({
    ...transferNames,
    outcome,
    reason: z.string().describe('phrase without the status, or what failed'),
    sipStatus: z.number().int().exactOptional(),
  }).describe(
    'no agent was connected; the call goes on where there is a bot, or `onFailure: stay`',
  ),
  completed: end.describe('an answered call ended'),
  failed: end.describe('a call ended before it was answered'),
} as const;

export type CallEventType = keyof typeof callEventData;
export const callEventTypes = Object.keys(callEventData) as readonly CallEventType[];

export type DataOf<Type extends CallEventType> = Immutable<z.infer<(typeof callEventData)[Type]>>;
export type EndData = DataOf<'completed'>;

/** What every event has beside its `type` and `data`. */
export const callEventEnvelope = z.object({
  ...callIdentity.shape,
  id: identifier,
  time: instant.describe('when it happened, not when it was published'),
  eventSequence: sequence.describe('1, 2, … over all events of the call'),
});

export type EventOf<Type extends CallEventType> = Immutable<z.infer<typeof callEventEnvelope>> & {
  readonly type: Type;
  readonly data: DataOf<Type>;
};
export type CallEvent = { [Type in CallEventType]: EventOf<Type> }[CallEventType];
export type TerminalEvent = EventOf<'completed'> | EventOf<'failed'>;

/** What is published of a type: the message of JetStream, and `data` of a server-sent event. */
export function callEventSchema(type: CallEventType) {
  return z.object({ ...callEventEnvelope.shape, type: z.literal(type), data: callEventData[type] });
}

/** Made once: a schema costs more to make than to hold a message against. */
const messages: ReadonlyMap<unknown, z.ZodType> = new Map(
  callEventTypes.map((type) => [
    type,
    z.object({ ...callEventEnvelope.shape, data: callEventData[type] }),
  ]),
);

/** A message on the calls stream as far as it can be believed. */
export function parseCallEvent(
  text: string,
): { readonly ok: true; readonly event: CallEvent } | Mismatch {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { ok: false, reason: 'not JSON' };
  }
  const type = memberOf(value, 'type');
  const schema = messages.get(type);
  if (schema === undefined) return { ok: false, reason: unknownType(type) };
  const parsed = matching(schema, value);
  // The schema was chosen by the type that stands in it.
  return parsed.ok ? { ok: true, event: value as CallEvent } : parsed;
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined;
}

/** One of a later version is told apart from rubbish: it is for another version to read. */
function unknownType(type: unknown): string {
  return typeof type === 'string'
    ? `unknown event type ${JSON.stringify(type.slice(0, 64))}`
    : 'an event without a type';
}

/** The last event of its call. */
export function isEnd({ type }: { readonly type: CallEventType }): boolean {
  return type === 'completed' || type === 'failed';
}

/** By sequence, except the end, which has one id, by whichever process it is stated (the call, or a recovery after a crash). */
export function callEventId(callId: string, type: CallEventType, eventSequence: number): string {
  const suffix = isEnd({ type }) ? 'end' : String(eventSequence);
  return `evt-${callId.replace(/^call-/, '')}-${suffix}`;
}

/** Undefined: not the id of an event. */
export function callIdOfEvent(eventId: string): string | undefined {
  const [, rest] = /^evt-(.+)-(?:end|\d+)$/.exec(eventId) ?? [];
  return rest === undefined ? undefined : `call-${rest}`;
}
