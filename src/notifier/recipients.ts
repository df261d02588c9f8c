// Looks up where a call's notifications go, in the calls table. Events don't carry the recipient
// because its headers are secret.

import { LRUCache } from 'lru-cache';
import type { CallNotifying } from '../store/calls/call-reads.ts';

export type Recipient = CallNotifying;

/** Finds the calls' recipients. Skips unknown calls. */
export type RecipientLookup = (
  callIds: readonly string[],
) => Promise<ReadonlyMap<string, Recipient>>;

/**
 * Returns an app's live webhook secrets, `whsec_…`. Implementations should cache them, because
 * every attempt calls this.
 */
export type SecretLookup = (appId: string) => Promise<readonly string[]>;

/** Cache size: a few minutes' worth of calls at full load, at about 1 kB each. */
const maxRemembered = 5_000;

export type Recipients = {
  readonly lookup: RecipientLookup;
  /** Caches the recipient of a call that this process accepted, which saves a query. */
  readonly remember: (callId: string, recipient: Recipient) => void;
};

/** Caches recipients. That's safe, because a call's recipient never changes. */
export function rememberRecipients(lookup: RecipientLookup): Recipients {
  const remembered = new LRUCache<string, Recipient>({ max: maxRemembered });
  const lookupOnce: RecipientLookup = async (callIds) => {
    const known = callIds.flatMap((callId) => {
      const recipient = remembered.get(callId);
      return recipient === undefined ? [] : [[callId, recipient] as const];
    });
    if (known.length === callIds.length) return new Map(known);
    const found = await lookup(callIds.filter((callId) => !remembered.has(callId)));
    for (const [callId, recipient] of found) remembered.set(callId, recipient);
    return new Map([...known, ...found]);
  };
  return {
    lookup: lookupOnce,
    remember: (callId, recipient) => {
      remembered.set(callId, recipient);
    },
  };
}
