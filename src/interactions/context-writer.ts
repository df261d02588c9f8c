// Writes calls' contexts to the `call-context` bucket, where bot flows read them. An older context
// never replaces a newer one, even if two processes are writing at the same time, because each
// stored context contains its event's sequence, and a write succeeds only if the entry still has
// the revision that the writer last read.
//
// The events don't contain contexts. A context is built from all of a call's events so far, which
// the writer remembers from the answer on. For a call whose earlier events another process has
// stored, it reads them from the database.

import { LRUCache } from 'lru-cache';
import type { AcceptedCall } from '../calls/call-types.ts';
import { type CallEvent, isEnd } from '../calls/contract/call-event.ts';
import { changesContext, contextOf } from '../calls/contract/event-table.ts';
import { upTo } from '../lib/growing-cache.ts';
import type { ContextFacts } from './context-facts.ts';
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

type KnownEntry = { readonly eventSequence: number; readonly revision: number };
const noEntry: KnownEntry = { eventSequence: 0, revision: 0 };

export type ContextWriterPorts = {
  readonly contexts: Pick<ContextStore, 'replace' | 'revisionOf'>;
  /** Reads a call's facts from the database. */
  readonly readFacts: (callId: string) => Promise<ContextFacts | undefined>;
};

export class ContextWriter {
  readonly #ports: ContextWriterPorts;
  readonly #facts = new LRUCache<string, ContextFacts>(upTo(maxRemembered));
  /** The entries in the bucket. */
  readonly #entries = new LRUCache<string, KnownEntry>(upTo(maxRemembered));

  constructor(ports: ContextWriterPorts) {
    this.#ports = ports;
  }

  /** Remembers an event that this process has stored. A call's events must come in order. */
  note({ callId, request }: AcceptedCall, event: CallEvent): void {
    if (!changesContext(event.type)) return;
    const known = this.#facts.get(callId);
    if (known === undefined) {
      // The call may have earlier events that this process doesn't know.
      if (event.type === 'amd') return;
      this.#facts.set(callId, { metadata: request.metadata, events: [event] });
      return;
    }
    const { eventSequence: last = 0 } = known.events.at(-1) ?? {};
    if (event.eventSequence <= last) return;
    this.#facts.set(callId, { ...known, events: [...known.events, event] });
  }

  /**
   * Resolves once the bucket contains the context that the event leads to, or a newer one. If the
   * event doesn't change the context, this doesn't do anything.
   */
  async write(event: CallEvent): Promise<void> {
    if (changesContext(event.type)) await this.#write(event);
    if (!isEnd(event)) return;
    this.#facts.delete(event.callId);
    this.#entries.delete(contextKey(event));
  }

  async #write({ eventSequence, ...event }: CallEvent): Promise<void> {
    const { contexts } = this.#ports;
    const key = contextKey(event);
    for (let tries = 1; tries <= maxTries; tries += 1) {
      const known = this.#entries.get(key) ?? noEntry;
      if (known.eventSequence >= eventSequence) return;
      const facts = await this.#factsOf(event.callId);
      // Retention has deleted the call, e.g. after a very long outage of NATS.
      if (facts === undefined) return;
      const events = facts.events.filter((fact) => fact.eventSequence <= eventSequence);
      const context = contextOf(facts.metadata, events);
      const revision = await contexts.replace(key, { ...context, eventSequence }, known.revision);
      if (revision !== undefined) {
        this.#entries.set(key, { eventSequence, revision });
        return;
      }
      this.#entries.set(key, await contexts.revisionOf(key));
    }
    throw new Error(`the context of a call changed ${maxTries} times while it was written`);
  }

  async #factsOf(callId: string): Promise<ContextFacts | undefined> {
    const known = this.#facts.get(callId);
    if (known !== undefined) return known;
    const stored = await this.#ports.readFacts(callId);
    if (stored !== undefined) this.#facts.set(callId, stored);
    return stored;
  }
}
