// Looks up where a call's notifications go, in the calls table. Events do not carry this, because
// the headers are secrets.

import { LRUCache } from 'lru-cache';
import type { CallNotifying } from '../store/calls/call-reads.ts';

export type Recipient = CallNotifying;

/** Unknown calls are absent from the result. */
export type RecipientLookup = (
  callIds: readonly string[],
) => Promise<ReadonlyMap<string, Recipient>>;

/**
 * Returns the live webhook secrets of an app, `whsec_…`. Every attempt asks for them, so the
 * implementation caches them.
 */
export type SecretLookup = (appId: string) => Promise<readonly string[]>;

/**
 * Number of recipients in the cache: the calls of some minutes at full load, at about 1 kB each.
 */
const maxRemembered = 5_000;

export type Recipients = {
  readonly lookup: RecipientLookup;
  /** Stores the recipient of a call that this process accepted, so that SQL need not be asked. */
  readonly remember: (callId: string, recipient: Recipient) => void;
};

/**
 * Caches recipients: a call's recipient never changes, and each of its notifications asks for it.
 */
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
