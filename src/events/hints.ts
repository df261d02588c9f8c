// Wakes a process that has room for calls: one of the queue group gets a hint, and does nothing where it has none. A hint that is
// lost costs the second until the next sweep.

import { z } from 'zod';
import type { CallSource } from '../calls/dialout-ports.ts';
import type { Logger } from '../lib/logger.ts';
import type { EventConnection } from './connection.ts';
import { hintSubject } from './subjects.ts';

const hint = z.object({ trunk: z.string().exactOptional() });

/** Never throws: while NATS is unreachable there is the sweep. */
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
  const subscription = connection.nats.subscribe(hintSubject(connection.prefix), {
    queue: 'dialers',
    callback: (error, message) => {
      if (error !== null) {
        logger.warn({ err: error }, 'subscription for hints failed');
        return;
      }
      const read = hint.safeParse(parsed(message.string()));
      if (read.success) wake(read.data.trunk);
    },
  });
  return { stop: () => subscription.unsubscribe() };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// Tells that events of calls were published, by whichever process: their readers look into SQL at once. What is lost here
// costs the time until they look by themselves.

/** What is published is not read here: it says only that there is something. */
export function watchEvents(
  { nats, prefix }: EventConnection,
  onPublished: () => void,
): { stop(): void } {
  const subscription = nats.subscribe(`${prefix}.call.>`, { callback: () => onPublished() });
  return { stop: () => subscription.unsubscribe() };
}
