// Asks another node to hang up or cancel a leg whose SIP engine cannot be reached from here: request and reply, one node
// answers. A node that cannot reach it either says so, and the next request may find another one.

import type { Msg } from '@nats-io/transport-node';
import {
  type LegEndResult,
  legEndReply,
  type StoredLeg,
  storedLeg,
} from '../calls/contract/stored-leg.ts';
import { inBackground } from '../lib/in-background.ts';
import type { Logger } from '../lib/logger.ts';
import type { EventConnection } from './connection.ts';
import { legSubject } from './subjects.ts';

/** Longer than a node needs for a BYE that is not answered at first. */
const replyTimeoutMs = 6_000;

/** `end` bounds its own time: the requester waits some seconds. */
export function serveLegRequests(
  connection: EventConnection,
  end: (leg: StoredLeg) => Promise<LegEndResult>,
  logger: Logger,
): { stop(): void } {
  const answer = async (message: Msg): Promise<void> => {
    try {
      const leg: StoredLeg = storedLeg.parse(message.json<unknown>());
      message.respond(JSON.stringify({ result: await end(leg) }));
    } catch (error) {
      // No reply: the requester sees its own time-out.
      logger.warn({ err: error }, 'leg of another node not ended');
    }
  };
  const subscription = connection.nats.subscribe(legSubject(connection.prefix), {
    queue: 'legs',
    callback: (error, message) => {
      if (error === null) inBackground(answer(message), logger, 'answering a request to end a leg');
      else logger.warn({ err: error }, 'subscription for legs failed');
    },
  });
  return { stop: () => subscription.unsubscribe() };
}

/** `unreachable` too where no answer came in time, or NATS is unreachable. */
export async function askForLegEnd(
  connection: EventConnection,
  leg: StoredLeg,
): Promise<LegEndResult> {
  // A request would wait for NATS until its time is over.
  if (!connection.connected()) return 'unreachable';
  try {
    const reply = await connection.nats.request(
      legSubject(connection.prefix),
      JSON.stringify(leg),
      { timeout: replyTimeoutMs },
    );
    return legEndReply.parse(reply.json<unknown>()).result;
  } catch {
    return 'unreachable';
  }
}
