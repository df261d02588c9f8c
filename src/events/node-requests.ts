// Requests and replies between nodes.
//
// - If a node can't reach a leg's SIP engine, it asks another node to hang up or cancel the leg.
//   NATS picks that node. If it can't reach the engine either, a retry may reach another node.
// - If a person views a call of another node, this node requests the call's capture from its owner
//   on `<prefix>.capture.<owner>`.

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

/** Longer than a node needs to end a leg, including retransmissions of the BYE. */
const legTimeoutMs = 6_000;
/** Short, because a page waits for the capture and soon requests it again. */
const captureTimeoutMs = 2_000;
const maxCallIdLength = 128;

/**
 * Serves requests to end legs.
 *
 * @param end must return within a few seconds, or the requester times out
 */
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

/** @returns `unreachable` also if no valid reply arrived in time, or if NATS is unreachable */
export async function askForLegEnd(
  connection: EventConnection,
  leg: StoredLeg,
): Promise<LegEndResult> {
  const subject = legSubject(connection.prefix);
  const reply = await ask(connection, subject, JSON.stringify(leg), legTimeoutMs);
  return legEndReply.safeParse(reply).data?.result ?? 'unreachable';
}

/**
 * Serves requests for captures of this node's calls.
 *
 * @param viewOf returns undefined if the call is not up here
 */
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
    async (text) => (await viewOf(text.slice(0, maxCallIdLength) as CallId)) ?? null,
  );
}

/**
 * @returns null if the owner has no capture of the call; undefined if no reply arrived in time, or
 *   if NATS is unreachable
 */
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
        logger.warn({ err: error, subject }, 'the subscription for requests of other nodes failed');
        return;
      }
      const answering = answerTo(message.string())
        .then((answer) => message.respond(JSON.stringify(answer)))
        // Sends no reply. The requester times out.
        .catch((error: unknown) =>
          logger.warn({ err: error, subject }, 'cannot answer a request of another node'),
        );
      inBackground(answering, logger, 'answering another node');
    },
  });
  return { stop: () => subscription.unsubscribe() };
}

/** @returns undefined if no reply arrived in time, or if NATS is unreachable */
async function ask(
  connection: EventConnection,
  subject: string,
  body: string,
  timeout: number,
): Promise<unknown> {
  // Otherwise the request would wait for the reconnect until its time-out.
  if (!connection.connected()) return undefined;
  try {
    return (await connection.nats.request(subject, body, { timeout })).json<unknown>();
  } catch {
    return undefined;
  }
}
