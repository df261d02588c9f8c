// Asks the node that has a call what it has kept of it so far, for those who look into the call through another node: request and
// reply on `<prefix>.capture.<owner>`.

import type { Msg } from '@nats-io/transport-node';
import type { CallId } from '../calls/contract/identity.ts';
import { inBackground } from '../lib/in-background.ts';
import type { Logger } from '../lib/logger.ts';
import type { EventConnection } from './connection.ts';
import { captureSubject } from './subjects.ts';

/** A page waits for it, and asks again soon. */
const replyTimeoutMs = 2_000;
const longestCallId = 128;

/** `viewOf`: undefined where the call is not up here. */
export function serveCaptureRequests(
  connection: EventConnection,
  ownerId: string,
  viewOf: (callId: CallId) => Promise<unknown>,
  logger: Logger,
): { stop(): void } {
  const answer = async (message: Msg): Promise<void> => {
    try {
      const callId = message.string().slice(0, longestCallId) as CallId;
      message.respond(JSON.stringify((await viewOf(callId)) ?? null));
    } catch (error) {
      // No reply: who asked sees its own time-out.
      logger.warn({ err: error }, 'what was kept of a call was not told to another node');
    }
  };
  const subscription = connection.nats.subscribe(captureSubject(connection.prefix, ownerId), {
    callback: (error, message) => {
      if (error === null)
        inBackground(answer(message), logger, 'answering a request for a capture');
      else logger.warn({ err: error }, 'subscription for captures failed');
    },
  });
  return { stop: () => subscription.unsubscribe() };
}

/** Null: it has nothing of the call. Undefined: no answer came in time, or NATS is unreachable. */
export async function askForCapture(
  connection: EventConnection,
  ownerId: string,
  callId: CallId,
): Promise<unknown> {
  // A request would wait for NATS until its time is over.
  if (!connection.connected()) return undefined;
  try {
    const subject = captureSubject(connection.prefix, ownerId);
    const reply = await connection.nats.request(subject, callId, { timeout: replyTimeoutMs });
    return reply.json<unknown>();
  } catch {
    return undefined;
  }
}
