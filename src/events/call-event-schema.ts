// What a message on the calls stream must look like to be believed. The envelope and what consumers rest decisions on
// are checked; members that only travel through are not.

import { z } from 'zod';
import { type CallEvent, callEventTypes } from '../calls/call-events.ts';
import { amdEventNames } from '../calls/call-types.ts';

const instant = z.iso.datetime({ offset: true });
const count = z.number().int().min(1);
const durationMs = z.number().min(0);

const identity = {
  callId: z.string().min(1),
  sid: z.string().min(1),
  conversationId: z.string().min(1),
  botId: z.string().min(1),
  accountId: z.string().min(1),
  appId: z.string().min(1),
  id: z.string().min(1),
  time: instant,
  eventSequence: count,
};

const context = z.looseObject({
  session: z.looseObject({ UserSession: z.looseObject({ amd: z.array(z.enum(amdEventNames)) }) }),
  metadata: z.record(z.string(), z.unknown()),
});
const answerTimes = {
  callConnectTime: instant,
  ringDurationInMS: durationMs,
  connectDurationInMS: durationMs,
  notificationSequence: count.optional(),
};
const end = z.looseObject({
  outcome: z.string().min(1),
  reason: z.string(),
  reasonCode: z.string(),
  callConnectTime: instant.optional(),
  ringDurationInMS: durationMs,
  connectDurationInMS: durationMs,
  callDisconnectTime: instant,
  callDurationS: z.number().min(0).optional(),
  callDurationMs: durationMs.optional(),
  sessionId: z.string().optional(),
  machineDetection: z.enum(amdEventNames).optional(),
  notificationSequence: count.optional(),
  context,
});

const envelopes = z.discriminatedUnion('type', [
  z.looseObject({ ...identity, type: z.literal('queued'), data: z.looseObject({}) }),
  z.looseObject({ ...identity, type: z.literal('dialing'), data: z.looseObject({}) }),
  z.looseObject({ ...identity, type: z.literal('ringing'), data: z.looseObject({}) }),
  z.looseObject({ ...identity, type: z.literal('dtmf'), data: z.looseObject({}) }),
  z.looseObject({
    ...identity,
    type: z.literal('answered'),
    data: z.looseObject({ ...answerTimes, context }),
  }),
  z.looseObject({
    ...identity,
    type: z.literal('amd'),
    data: z.looseObject({
      ...answerTimes,
      context,
      amd: z.looseObject({
        event: z.enum(amdEventNames),
        reason: z.string(),
        elapsedMs: z.number(),
      }),
    }),
  }),
  z.looseObject({ ...identity, type: z.literal('completed'), data: end }),
  z.looseObject({ ...identity, type: z.literal('failed'), data: end }),
]);

export type ParsedEvent =
  | { readonly ok: true; readonly event: CallEvent }
  | { readonly ok: false; readonly reason: string };

export function parseCallEvent(text: string): ParsedEvent {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { ok: false, reason: 'not JSON' };
  }
  const type =
    typeof value === 'object' && value !== null && 'type' in value ? value.type : undefined;
  // A type of a later version is told apart from rubbish: it is somebody else's to read.
  if (typeof type === 'string' && !callEventTypes.some((known) => known === type)) {
    return { ok: false, reason: `unknown event type ${JSON.stringify(type.slice(0, 64))}` };
  }
  const parsed = envelopes.safeParse(value);
  if (!parsed.success) return { ok: false, reason: z.prettifyError(parsed.error).slice(0, 1_000) };
  // The schema checks what decisions rest on; the brand and the members that only travel are taken as published.
  return { ok: true, event: parsed.data as unknown as CallEvent };
}
