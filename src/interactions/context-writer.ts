// Facts that carry a context → the bucket that bot flows read. The last fact of a call wins, also when an earlier one is
// delivered again after it.

import type { CallContext } from '../calls/contract/call-context.ts';
import type { CallEvent } from '../calls/contract/call-event.ts';
import { contextOf } from '../calls/contract/event-table.ts';
import { type ContextStore, contextKey } from './context-store.ts';

/** Calls whose last sequence is remembered: redeliveries come within seconds, and thousands of calls end in those. */
const mostRemembered = 20_000;
/** Puts under way at once: the bucket answers in a millisecond or so, and one slow put should not delay all. */
const concurrency = 64;

type Entry = {
  readonly key: string;
  readonly eventSequence: number;
  readonly context: CallContext;
};

/** A handler for `startFactConsumer`. */
export function createContextWriter(
  contexts: ContextStore,
): (facts: readonly CallEvent[]) => Promise<void> {
  const written = new Map<string, number>();

  const remember = ({ key, eventSequence }: Entry): void => {
    written.delete(key);
    written.set(key, eventSequence);
    const [oldest] = written.keys();
    if (written.size > mostRemembered && oldest !== undefined) written.delete(oldest);
  };

  return async (facts) => {
    const entries = latest(facts).filter(
      (entry) => (written.get(entry.key) ?? 0) < entry.eventSequence,
    );
    for (let start = 0; start < entries.length; start += concurrency) {
      await Promise.all(
        entries.slice(start, start + concurrency).map(async (entry) => {
          await contexts.put(entry.key, entry.context);
          remember(entry);
        }),
      );
    }
  };
}

/** Of each call in the batch only what stands at its end. */
function latest(facts: readonly CallEvent[]): readonly Entry[] {
  const byKey = new Map<string, Entry>();
  for (const fact of facts) {
    const context = contextOf(fact);
    if (context === undefined) continue;
    const entry = { key: contextKey(fact), eventSequence: fact.eventSequence, context };
    const before = byKey.get(entry.key);
    if (before === undefined || before.eventSequence < entry.eventSequence) {
      byKey.set(entry.key, entry);
    }
  }
  return [...byKey.values()];
}
