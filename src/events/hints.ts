// Hints tell other processes that the database contains something new. A dial hint wakes one
// process in a queue group, which then claims queued calls if it has room. Losing a hint doesn't
// delay a call by more than a second, because the next sweep finds it.

import { z } from 'zod';
import type { CallSource } from '../calls/dialout-ports.ts';
import type { Logger } from '../lib/logger.ts';
import type { EventConnection } from './connection.ts';
import { hintSubject, rulesHintSubject } from './subjects.ts';

const hint = z.object({ trunk: z.string().exactOptional() });

/** Never throws. While NATS is unreachable, only the sweep finds the calls. */
export function sendDialHint(connection: EventConnection, source: CallSource): void {
  if (!connection.connected()) return;
  const body = source === undefined ? {} : { trunk: source };
  connection.nats.publish(hintSubject(connection.prefix), JSON.stringify(body));
}

export function serveDialHints(
  connection: EventConnection,
  wake: (source: CallSource) => void,
  logger: Logger,
): { stop(): void } {
  return connection.subscribe(hintSubject(connection.prefix), {
    queue: 'dialers',
    callback: (error, message) => {
      if (error !== null) {
        logger.warn({ err: error }, 'the subscription for hints failed');
        return;
      }
      const read = hint.safeParse(parsed(message.string()));
      if (read.success) wake(read.data.trunk);
    },
  });
}

/**
 * Tells the other nodes that calling rules have changed. Never throws. While NATS is unreachable,
 * they find out within seconds.
 */
export function sendRulesHint(connection: EventConnection): void {
  if (connection.connected()) connection.nats.publish(rulesHintSubject(connection.prefix));
}

/** Calls `onChanged` when calling rules have changed on any node. */
export function watchRules(connection: EventConnection, onChanged: () => void): { stop(): void } {
  return connection.subscribe(rulesHintSubject(connection.prefix), { callback: () => onChanged() });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Calls `onPublished` when any process has published an event, so callers can query the database
 * right away. Callers must also query periodically, because messages can get lost.
 */
export function watchEvents(
  connection: EventConnection,
  onPublished: () => void,
): { stop(): void } {
  return connection.subscribe(`${connection.prefix}.call.>`, { callback: () => onPublished() });
}
