// Request and reply between nodes. One asks the others to hang up or cancel a leg whose SIP engine it cannot reach: one node
// answers, and if that cannot reach the leg either, the next request may find another. Or it asks the node that has a call what
// that has kept of it so far, for those who look into the call here: `<prefix>.capture.<owner>`.

import type { CallId } from '../calls/contract/identity.ts';
import {
  type LegEndResult,
  legEndReply,
  type StoredLeg,
  storedLeg,
} from '../calls/contract/stored-leg.ts';
import { inBackground } from '../lib/in-background.ts';
import type { Logger } from '../lib/logger.ts';
import type { EventConnection } from './connection.ts';
import { captureSubject, legSubject } from './subjects.ts';

/** Longer than a node needs for a BYE that is not answered at first. */
const legTimeoutMs = 6_000;
/** A page waits for it, and asks again soon. */
const captureTimeoutMs = 2_000;
const longestCallId = 128;

/** `end` bounds its own time: the requester waits some seconds. */
export function serveLegRequests(
  connection: EventConnection,
  end: (leg: StoredLeg) => Promise<LegEndResult>,
  logger: Logger,
): { stop(): void } {
  const place = { subject: legSubject(connection.prefix), queue: 'legs' };
  return serve(connection, place, logger, async (text) => ({
    result: await end(storedLeg.parse(JSON.parse(text))),
  }));
}

/** `unreachable` too where no answer came in time, or NATS is unreachable. */
export async function askForLegEnd(
  connection: EventConnection,
  leg: StoredLeg,
): Promise<LegEndResult> {
  const subject = legSubject(connection.prefix);
  const reply = await ask(connection, subject, JSON.stringify(leg), legTimeoutMs);
  return legEndReply.safeParse(reply).data?.result ?? 'unreachable';
}

/** `viewOf`: undefined where the call is not up here. */
export function serveCaptureRequests(
  connection: EventConnection,
  ownerId: string,
  viewOf: (callId: CallId) => Promise<unknown>,
  logger: Logger,
): { stop(): void } {
  const place = { subject: captureSubject(connection.prefix, ownerId) };
  return serve(
    connection,
    place,
    logger,
    async (text) => (await viewOf(text.slice(0, longestCallId) as CallId)) ?? null,
  );
}

/** Null: it has nothing of the call. Undefined: no answer came in time, or NATS is unreachable. */
export async function askForCapture(
  connection: EventConnection,
  ownerId: string,
  callId: CallId,
): Promise<unknown> {
  return await ask(
    connection,
    captureSubject(connection.prefix, ownerId),
    callId,
    captureTimeoutMs,
  );
}

function serve(
  { nats }: EventConnection,
  { subject, ...options }: { readonly subject: string; readonly queue?: string },
  logger: Logger,
  answerTo: (text: string) => Promise<unknown>,
): { stop(): void } {
  const subscription = nats.subscribe(subject, {
    ...options,
    callback: (error, message) => {
      if (error !== null) {
        logger.warn({ err: error, subject }, 'subscription for requests of other nodes failed');
        return;
      }
      const answering = answerTo(message.string())
        .then((answer) => message.respond(JSON.stringify(answer)))
        // No reply: the requester sees its own time-out.
        .catch((error: unknown) =>
          logger.warn({ err: error, subject }, 'a request of another node was not answered'),
        );
      inBackground(answering, logger, 'answering another node');
    },
  });
  return { stop: () => subscription.unsubscribe() };
}

/** @returns undefined if no answer came in time, or NATS is unreachable */
async function ask(
  connection: EventConnection,
  subject: string,
  body: string,
  timeout: number,
): Promise<unknown> {
  // A request would wait for NATS until its time is over.
  if (!connection.connected()) return undefined;
  try {
    return (await connection.nats.request(subject, body, { timeout })).json<unknown>();
  } catch {
    return undefined;
  }
}
