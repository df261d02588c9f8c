// Copies contexts from events to the `call-context` bucket, where bot flows read them. An older
// context never replaces a newer one, even if two processes are writing at the same time, because
// each stored context contains its event's sequence, and a write succeeds only if the entry still
// has the revision that the writer last read.

import { LRUCache } from 'lru-cache';
import type { CallEvent } from '../calls/contract/call-event.ts';
import { contextOf } from '../calls/contract/event-table.ts';
import { type ContextStore, contextKey } from './context-store.ts';

/**
 * Cache size. A process has far fewer live calls, and a cache miss only costs one more read.
 */
const maxRemembered = 5_000;
/**
 * Retries are rare, because two processes write the same context only while one of them is taking
 * over the call.
 */
const maxTries = 5;

type KnownContext = {
  readonly eventSequence: number;
  readonly revision: number;
  /**
   * The context in the bucket, as JSON. Undefined if another process may have written the entry.
   */
  readonly content?: string;
};

/**
 * Returns a function that resolves once the bucket contains the event's context or a newer one. For
 * events without a context, the function doesn't do anything.
 */
export function createContextWriter(
  contexts: Pick<ContextStore, 'replace' | 'revisionOf'>,
): (event: CallEvent) => Promise<void> {
  const remembered = new LRUCache<string, KnownContext>({ max: maxRemembered });

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
