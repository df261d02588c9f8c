// Where a call's notifications go. Implemented over the calls table; no part of any event, because the headers are secrets.

import { LRUCache } from 'lru-cache';
import type { CallNotifying } from '../store/calls/call-reads.ts';

export type Recipient = CallNotifying;

/** Calls that are unknown are absent. */
export type RecipientLookup = (
  callIds: readonly string[],
) => Promise<ReadonlyMap<string, Recipient>>;

/** Live webhook secrets of an app, `whsec_…`. Every attempt asks: cached by the answering side. */
export type SecretLookup = (appId: string) => Promise<readonly string[]>;

/** Calls remembered: those of some minutes at full load, at about 1 kB each. */
const maxRemembered = 5_000;

export type Recipients = {
  readonly lookup: RecipientLookup;
  /** Of a call that this process accepted: SQL need not be asked. */
  readonly remember: (callId: string, recipient: Recipient) => void;
};

/** A call's recipient never changes, and it is asked for with each of its notifications. */
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
