// Requests and replies between nodes.
//
// - If a node can't reach a leg's SIP engine, it asks another node to hang up or cancel the leg.
//   NATS picks the node. If that node can't reach the engine either, a retry may go to a different
//   node.
// - If somebody is viewing a call that another node owns, this node requests the capture from the
//   owner on `<prefix>.capture.<owner>`.
// - If a number is suppressed while another node calls it, this node asks the owner on
//   `<prefix>.cancel.<owner>` to cancel the call.
// - If a node's lease has expired, this node asks the node on `<prefix>.alive.<owner>` whether it's
//   alive (`src/recovery/late-nodes.ts`).

import { z } from 'zod';
import { type CallId, callIdentity } from '../calls/contract/identity.ts';
import {
  type LegEndResult,
  legEndReply,
  type StoredLeg,
  storedLeg,
} from '../calls/contract/stored-leg.ts';
import { inBackground } from '../lib/in-background.ts';
import type { Logger } from '../lib/logger.ts';
import type { EventConnection } from './connection.ts';
import { aliveSubject, cancelSubject, captureSubject, legSubject } from './subjects.ts';

/** Longer than a node needs to end a leg, including retransmissions of the BYE. */
const legTimeoutMs = 6_000;
/** Short, because a page is waiting for the capture and will soon request it again. */
const captureTimeoutMs = 2_000;
const maxCallIdLength = 128;
/** Keeps a request far below the 1 MB that a NATS server accepts. The sender repeats it. */
const maxCancelled = 5_000;
const cancellation = z.array(callIdentity.shape.callId).max(maxCancelled);
const maxQuestionLength = 1_024;

/**
 * Serves requests to end legs.
 *
 * @param end must return within a few seconds, otherwise the requester times out
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

/** @returns `unreachable` if NATS is unreachable, too, or if no valid reply arrived in time */
export async function requestLegEnd(
  connection: EventConnection,
  leg: StoredLeg,
): Promise<LegEndResult> {
  const subject = legSubject(connection.prefix);
  const reply = await request(connection, subject, JSON.stringify(leg), legTimeoutMs);
  return legEndReply.safeParse(reply).data?.result ?? 'unreachable';
}

/**
 * Serves requests for captures of this node's calls.
 *
 * @param viewOf returns undefined if the call isn't up on this node
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
 * @returns null if the owner doesn't have a capture for the call, or undefined if no reply arrived
 *   in time or NATS is unreachable
 */
export async function requestCapture(
  connection: EventConnection,
  ownerId: string,
  callId: CallId,
): Promise<unknown> {
  return await request(
    connection,
    captureSubject(connection.prefix, ownerId),
    callId,
    captureTimeoutMs,
  );
}

/** Serves requests to cancel calls to numbers that have been suppressed. */
export function serveCancellations(
  connection: EventConnection,
  ownerId: string,
  cancel: (callIds: readonly CallId[]) => void,
  logger: Logger,
): { stop(): void } {
  const place = { subject: cancelSubject(connection.prefix, ownerId) };
  return serve(connection, place, logger, async (text) => {
    cancel(cancellation.parse(JSON.parse(text)));
    return true;
  });
}

/** Asks a process to cancel calls. The request may be lost. */
export function sendCancellation(
  connection: EventConnection,
  ownerId: string,
  callIds: readonly CallId[],
): void {
  if (!connection.connected()) return;
  const subject = cancelSubject(connection.prefix, ownerId);
  connection.nats.publish(subject, JSON.stringify(callIds.slice(0, maxCancelled)));
}

/**
 * Serves questions whether this process is alive.
 *
 * @param answer returns undefined if this isn't a question to this process
 */
export function serveAliveQuestions(
  connection: EventConnection,
  ownerId: string,
  answer: (question: unknown) => object | undefined,
  logger: Logger,
): { stop(): void } {
  const place = { subject: aliveSubject(connection.prefix, ownerId) };
  return serve(
    connection,
    place,
    logger,
    async (text) => answer(JSON.parse(text.slice(0, maxQuestionLength))) ?? null,
  );
}

/**
 * Asks a process whether it's alive.
 *
 * @returns undefined if no reply arrived in time, at once if the process isn't connected to NATS or
 *   NATS is unreachable
 */
export async function requestNodeAlive(
  connection: EventConnection,
  ownerId: string,
  question: object,
  timeoutMs: number,
): Promise<unknown> {
  const subject = aliveSubject(connection.prefix, ownerId);
  return await request(connection, subject, JSON.stringify(question), timeoutMs);
}

function serve(
  connection: EventConnection,
  { subject, ...options }: { readonly subject: string; readonly queue?: string },
  logger: Logger,
  respond: (text: string) => Promise<unknown>,
): { stop(): void } {
  return connection.subscribe(subject, {
    ...options,
    callback: (error, message) => {
      if (error !== null) {
        logger.warn(
          { err: error, subject },
          'the subscription for requests from other nodes failed',
        );
        return;
      }
      const responding = respond(message.string())
        .then((response) => message.respond(JSON.stringify(response)))
        // Don't reply. The requester will time out.
        .catch((error: unknown) =>
          logger.warn({ err: error, subject }, 'cannot respond to a request from another node'),
        );
      inBackground(responding, logger, 'responding to another node');
    },
  });
}

/** @returns undefined if no reply arrived in time, or if NATS is unreachable */
async function request(
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
