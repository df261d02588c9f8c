// Tells that events of calls were published, by whichever process: their readers look into SQL at once. What is lost here
// costs the time until they look by themselves.

import type { EventConnection } from './connection.ts';

/** What is published is not read here: it says only that there is something. */
export function watchEvents(
  { nats, prefix }: EventConnection,
  onPublished: () => void,
): { stop(): void } {
  const subscription = nats.subscribe(`${prefix}.call.>`, { callback: () => onPublished() });
  return { stop: () => subscription.unsubscribe() };
}
