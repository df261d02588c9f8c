// A notification in one line for people.

import { z } from 'zod';
import { lineOf } from '../calls/contract/event-table.ts';
import type { ReceivedNotification } from './receiver.ts';

/** What is shown of a body; receivers in the wild see other senders' too, so that nothing is taken for granted. */
const shownBody = z.object({
  callId: z.string(),
  sequence: z.number(),
  status: z.string(),
  timestamp: z.string(),
  reason: z.string().optional(),
  reasonCode: z.string().optional(),
  machineDetection: z.string().optional(),
  outcome: z.string().optional(),
  callDuration: z.number().optional(),
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

export function describeNotification(notification: ReceivedNotification, name?: string): string {
  const mark = notification.verified ? '✓ signed' : faultOf(notification.reason);
  const body = readBody(notification.body);
  if (body === undefined) return `${mark}  ${notification.rawBody.slice(0, 200)}`;
  const time = body.timestamp.slice(11, 23);
  const who = name ?? body.callId.slice(0, 13);
  return `${time}  ${who.padEnd(16)} #${body.sequence} ${body.status.padEnd(17)} ${detailsOf(body).padEnd(58)} ${mark}`;
}

/** Signed, but not over this body with this secret; or not signed at all. */
function faultOf(reason: string | undefined): string {
  return reason === 'no-match' ? '✗ WRONG SIGNATURE (another secret?)' : `✗ NOT SIGNED (${reason})`;
}

function detailsOf(body: ShownBody): string {
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
      return [body.reasonCode, callDuration(body), body.machineDetection]
        .filter((part) => part !== undefined)
        .join(', ');
    default:
      return [body.reason, body.reasonCode, body.outcome]
        .filter((part) => part !== undefined)
        .join(', ');
  }
}

/** To the millisecond, unless an older version stated the end. */
function callDuration({ callDuration: seconds = 0, callDurationMs }: ShownBody): string {
  return callDurationMs === undefined ? `${seconds} s` : exactSeconds(callDurationMs);
}

function exactSeconds(ms: number): string {
  return `${(ms / 1_000).toFixed(3)} s`;
}

function seconds(ms: number | undefined): string {
  return `${((ms ?? 0) / 1_000).toFixed(1)} s`;
}
