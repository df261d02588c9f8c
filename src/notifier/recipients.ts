// Looks up in the calls table where a call's notifications should be sent. Events don't contain the
// recipient, because the recipient's headers are secret.

import { LRUCache } from 'lru-cache';
import { upTo } from '../lib/growing-cache.ts';
import type { CallNotifying } from '../store/calls/call-reads.ts';

export type Recipient = CallNotifying;

/** Finds the calls' recipients. Skips unknown calls. */
export type RecipientLookup = (
  callIds: readonly string[],
) => Promise<ReadonlyMap<string, Recipient>>;

/**
 * Returns an app's live webhook secrets, `whsec_…`. Implementations should cache the secrets,
 * because we look them up for every attempt.
 */
export type SecretLookup = (appId: string) => Promise<readonly string[]>;

/** That's a few minutes' worth of calls at full load, and each takes about 1 kB. */
const maxRemembered = 5_000;

export type Recipients = {
  readonly lookup: RecipientLookup;
  /** Caches the recipient of a call that this process accepted, which saves a query. */
  readonly remember: (callId: string, recipient: Recipient) => void;
};

/** Caches recipients, which is safe because a call's recipient never changes. */
export function rememberRecipients(lookup: RecipientLookup): Recipients {
  const remembered = new LRUCache<string, Recipient>(upTo(maxRemembered));
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
