// The wire format of audio streams as a grammar: what a gateway may send to a bot, and a bot to a
// gateway. The fake gateway and the real one must follow the same grammar.

import { z } from 'zod';

const count = z.string().regex(/^[1-9][0-9]*$/);
const sid = (kind: 'AC' | 'CA' | 'MZ') => z.string().regex(new RegExp(`^${kind}[0-9a-f]{32}$`));
const streamSid = sid('MZ');
const numbered = { sequenceNumber: count, streamSid };
const base64 = z.string().regex(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/);

const connected = z.strictObject({
  event: z.literal('connected'),
  protocol: z.literal('Call'),
  version: z.literal('1.0.0'),
});
const start = z.strictObject({
  event: z.literal('start'),
  ...numbered,
  start: z.strictObject({
    accountSid: sid('AC'),
    streamSid,
    callSid: sid('CA'),
    tracks: z.tuple([z.literal('inbound')]),
    // These are numbers, because the OpenAI Agents SDK compares with `=== 8000`.
    mediaFormat: z.strictObject({
      encoding: z.literal('audio/x-mulaw'),
      sampleRate: z.literal(8_000),
      channels: z.literal(1),
    }),
    customParameters: z.record(z.string(), z.string()),
  }),
});
const media = z.strictObject({
  event: z.literal('media'),
  ...numbered,
  media: z.strictObject({
    track: z.literal('inbound'),
    chunk: count,
    timestamp: z.string().regex(/^(?:0|[1-9][0-9]*)$/),
    payload: base64,
  }),
});
const dtmf = z.strictObject({
  event: z.literal('dtmf'),
  ...numbered,
  dtmf: z.strictObject({
    track: z.literal('inbound_track'),
    digit: z.string().regex(/^[0-9A-D*#]$/),
  }),
});
const mark = z.strictObject({
  event: z.literal('mark'),
  ...numbered,
  mark: z.strictObject({ name: z.string().min(1) }),
});
const amd = z.strictObject({
  event: z.literal('amd'),
  ...numbered,
  amd: z.looseObject({ event: z.string().startsWith('amd_') }),
});
const stop = z.strictObject({
  event: z.literal('stop'),
  ...numbered,
  stop: z.strictObject({ accountSid: sid('AC'), callSid: sid('CA') }),
});

const gatewayMessage = z.discriminatedUnion('event', [
  connected,
  start,
  media,
  dtmf,
  mark,
  amd,
  stop,
]);
export type ToBot = z.infer<typeof gatewayMessage>;

const botMessage = z.discriminatedUnion('event', [
  z.object({
    event: z.literal('media'),
    streamSid,
    media: z.object({ payload: base64.min(4) }),
  }),
  z.object({
    event: z.literal('mark'),
    streamSid,
    mark: z.object({ name: z.string().min(1) }),
  }),
  z.object({ event: z.literal('clear'), streamSid }),
]);
export type FromBot = z.infer<typeof botMessage>;

/** @returns undefined if a gateway would ignore the text */
export function readBotMessage(text: string): FromBot | undefined {
  try {
    return botMessage.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/**
 * Lists in words what is wrong with the messages of one connection. `isOver`: the connection has
 * ended, so `stop` must be its last message.
 */
export function problemsOfStream(
  texts: readonly string[],
  { isOver }: { readonly isOver: boolean },
): readonly string[] {
  const problems: string[] = [];
  const order = { sequence: 0, chunk: 0, timestampMs: 0, streamSid: '', callSid: '' };
  for (const [index, text] of texts.entries()) {
    const parsed = gatewayMessage.safeParse(JSON.parse(text));
    const problem = parsed.success
      ? problemInOrder(parsed.data, index, order)
      : z.prettifyError(parsed.error);
    if (problem !== undefined)
      problems.push(`message ${index}: ${problem} in ${text.slice(0, 200)}`);
    const isStop = parsed.data?.event === 'stop';
    if (isStop && index !== texts.length - 1) problems.push('something follows stop');
    if (isOver && index === texts.length - 1 && !isStop) problems.push('the last is not stop');
  }
  return problems;
}

type Order = {
  sequence: number;
  chunk: number;
  timestampMs: number;
  streamSid: string;
  callSid: string;
};

function problemInOrder(message: ToBot, index: number, order: Order): string | undefined {
  const expected = ['connected', 'start'][index];
  const isFirstTwo = message.event === 'connected' || message.event === 'start';
  if (expected === undefined ? isFirstTwo : message.event !== expected) return 'out of order';
  if (message.event === 'connected') return undefined;
  order.sequence += 1;
  if (message.sequenceNumber !== String(order.sequence)) return 'a gap in sequenceNumber';
  if (message.event === 'start') {
    order.streamSid = message.start.streamSid;
    order.callSid = message.start.callSid;
  }
  return message.streamSid === order.streamSid ? problemIn(message, order) : 'another streamSid';
}

function problemIn(message: ToBot, order: Order): string | undefined {
  if (message.event === 'media') return problemOfMedia(message.media, order);
  const isOther = message.event === 'stop' && message.stop.callSid !== order.callSid;
  return isOther ? 'another callSid' : undefined;
}

/**
 * Checks a 20 ms frame. A bot that reads too slowly misses frames, and sees the gap in the
 * timestamps.
 */
function problemOfMedia(
  { chunk, timestamp, payload }: Extract<ToBot, { event: 'media' }>['media'],
  order: Order,
): string | undefined {
  order.chunk += 1;
  const isFirst = order.chunk === 1;
  const timestampMs = Number(timestamp);
  if (chunk !== String(order.chunk)) return 'a gap in chunk';
  if (Buffer.from(payload, 'base64').length !== 160) return 'not 20 ms of audio';
  if (isFirst ? timestampMs !== 0 : timestampMs <= order.timestampMs) return 'time stands still';
  if (timestampMs % 20 !== 0) return 'time between frames';
  order.timestampMs = timestampMs;
  return undefined;
}
