// Copies the contexts of events to the bucket that bot flows read. An older context never replaces
// a newer one, even if two processes write: each stored context has the sequence of its event, and
// a write succeeds only if the bucket still has the revision that the writer last saw.

import { LRUCache } from 'lru-cache';
import type { CallEvent } from '../calls/contract/call-event.ts';
import { contextOf } from '../calls/contract/event-table.ts';
import { type ContextStore, contextKey } from './context-store.ts';

/**
 * Size of the cache: far more than the live calls of one process. A miss costs one more read.
 */
const maxRemembered = 5_000;
/** Retries are rare: two processes write the same context only while one takes over the call. */
const maxTries = 5;

type Written = {
  readonly eventSequence: number;
  readonly revision: number;
  /** The written context as JSON. Absent if another process may have written the entry. */
  readonly content?: string;
};

/**
 * Returns a function that resolves when the bucket has the event's context or a newer one. It does
 * nothing for an event without a context.
 */
export function createContextWriter(
  contexts: Pick<ContextStore, 'replace' | 'revisionOf'>,
): (event: CallEvent) => Promise<void> {
  const remembered = new LRUCache<string, Written>({ max: maxRemembered });

  return async (event) => {
    const context = contextOf(event);
    if (context === undefined) return;
    const { eventSequence } = event;
    const key = contextKey(event);
    const content = JSON.stringify(context);
    for (let tries = 1; tries <= maxTries; tries += 1) {
      const known = remembered.get(key) ?? { eventSequence: 0, revision: 0 };
      if (known.eventSequence >= eventSequence || known.content === content) return;
      const revision = await contexts.replace(key, { ...context, eventSequence }, known.revision);
      if (revision !== undefined) {
        remembered.set(key, { eventSequence, revision, content });
        return;
      }
      remembered.set(key, await contexts.revisionOf(key));
    }
    throw new Error(`the context of a call changed ${maxTries} times while it was written`);
  };
}
