// Formats a notification as a single line for humans.

import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { lineOf } from '../calls/contract/event-table.ts';
import { type Detected, whoPickedUp } from './picked-up.ts';
import type { ReceivedNotification } from './receiver.ts';

/**
 * The fields of a body that the line shows. We validate every body, because anybody could send a
 * request to a receiver.
 */
const shownBody = z.object({
  callId: z.string(),
  sequence: z.number(),
  status: z.string(),
  timestamp: z.string(),
  reason: z.string().optional(),
  reasonCode: z.string().optional(),
  machineDetection: z.string().optional(),
  outcome: z.string().optional(),
  callDurationMs: z.number().optional(),
  ringDurationInMS: z.number().optional(),
  transfer: z
    .object({ outcome: z.string(), msToTwoWayAudio: z.number().optional() })
    .optional()
    .catch(undefined),
  amd: z.object({ reason: z.string().optional(), words: z.number().optional() }).optional(),
  event: z.object({ type: z.string(), data: z.unknown() }).optional().catch(undefined),
});
export type ShownBody = z.infer<typeof shownBody>;

export function readBody(body: unknown): ShownBody | undefined {
  return shownBody.safeParse(body).data;
}

/** Developers don't have this many calls at the same time. */
const maxCalls = 1_000;

/**
 * Formats a notification. The line starts with `name`, or with the first characters of the call's
 * id.
 */
export type NotificationLines = (notification: ReceivedNotification, name?: string) => string;

/**
 * Creates a formatter that remembers each call's detection result. It has to, because the last
 * notification only contains the verdict, but neither the reason nor the beep.
 */
export function createNotificationLines(): NotificationLines {
  const heardOf = new LRUCache<string, Detected>({ max: maxCalls });
  return (notification, name) => {
    const body = readBody(notification.body);
    const mark = notification.verified ? '✓ signed' : describeFault(notification.reason);
    if (body === undefined) return `${mark}  ${notification.rawBody.slice(0, 200)}`;
    const { callId, sequence, status, timestamp } = body;
    const heard = afterNotification(heardOf.get(callId) ?? {}, body);
    if (status === 'completed' || status === 'Failed') heardOf.delete(callId);
    else heardOf.set(callId, heard);
    const who = (name ?? callId.slice(0, 13)).padEnd(16);
    return `${timestamp.slice(11, 23)}  ${who} #${sequence} ${status.padEnd(17)} ${describeDetails(body, heard).padEnd(58)} ${mark}`;
  };
}

/** Returns the detection result, updated with another notification. */
function afterNotification(heard: Detected, { machineDetection, amd }: ShownBody): Detected {
  if (machineDetection === 'amd_tone_detected') return { ...heard, beep: true };
  const reason = amd?.reason;
  return machineDetection === 'amd_machine_detected' && reason !== undefined
    ? { ...heard, reason }
    : heard;
}

/**
 * Describes a failed verification. `no-match` means that the signature doesn't match the body and
 * the secret. Other reasons (e.g. an old timestamp) are printed unchanged.
 */
function describeFault(reason: string | undefined): string {
  return reason === 'no-match' ? '✗ WRONG SIGNATURE (another secret?)' : `✗ NOT SIGNED (${reason})`;
}

function describeDetails(body: ShownBody, heard: Detected): string {
  switch (body.status) {
    case 'Answered':
      return `after ringing ${seconds(body.ringDurationInMS)}`;
    case 'Call-In-Progress':
      return `${body.machineDetection ?? ''}${body.amd?.reason === undefined ? '' : ` (${body.amd.reason})`}`;
    case 'Event':
      return body.event === undefined
        ? ''
        : `${body.event.type} ${lineOf(body.event.type, body.event.data)}`.trim();
    case 'completed':
      return [
        body.reasonCode,
        exactSeconds(body.callDurationMs ?? 0),
        whoPickedUp({ verdict: body.machineDetection, ...heard }) ?? body.machineDetection,
      ]
        .filter((part) => part !== undefined)
        .join(', ');
    default:
      return [body.reason, body.reasonCode, body.outcome]
        .filter((part) => part !== undefined)
        .join(', ');
  }
}

function exactSeconds(ms: number): string {
  return `${(ms / 1_000).toFixed(3)} s`;
}

function seconds(ms: number | undefined): string {
  return `${((ms ?? 0) / 1_000).toFixed(1)} s`;
}
