// Writes the contexts that events carry into the bucket that bot flows read. An older context never
// replaces a newer one, whichever process writes it: each context carries the sequence of its
// event, and a write replaces only the revision that the writer has seen.

import { LRUCache } from 'lru-cache';
import type { CallEvent } from '../calls/contract/call-event.ts';
import { contextOf } from '../calls/contract/event-table.ts';
import { type ContextStore, contextKey } from './context-store.ts';

/**
 * Far more than the live calls of one process. An event of a call that is not remembered costs one
 * more read.
 */
const mostRemembered = 5_000;
/** Two processes write the context of the same call only while one takes it over from the other. */
const mostTries = 5;

type Written = {
  readonly eventSequence: number;
  readonly revision: number;
  /** The written JSON. Absent if another process wrote the entry. */
  readonly content?: string;
};

/**
 * Returns a function that resolves when the bucket has the event's context, or a newer one. It
 * resolves at once if the event changes no context.
 */
export function createContextWriter(
  contexts: Pick<ContextStore, 'replace' | 'revisionOf'>,
): (event: CallEvent) => Promise<void> {
  const remembered = new LRUCache<string, Written>({ max: mostRemembered });

  return async (event) => {
    const context = contextOf(event);
    if (context === undefined) return;
    const { eventSequence } = event;
    const key = contextKey(event);
    const content = JSON.stringify(context);
    for (let tries = 1; tries <= mostTries; tries += 1) {
      const known = remembered.get(key) ?? { eventSequence: 0, revision: 0 };
      if (known.eventSequence >= eventSequence || known.content === content) return;
      const revision = await contexts.replace(key, { ...context, eventSequence }, known.revision);
      if (revision !== undefined) {
        remembered.set(key, { eventSequence, revision, content });
        return;
      }
      remembered.set(key, await contexts.revisionOf(key));
    }
    throw new Error(`the context of a call changed ${mostTries} times while it was written`);
  };
}
