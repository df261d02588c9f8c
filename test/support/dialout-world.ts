// What outlives a process, played in memory: the rows of SQL and the stream. Tests let a process die at any point and
// look at what the next one makes of what is left.

import type { CallEvent, TerminalEvent } from '../../src/calls/contract/call-event.ts';
import type { CallId } from '../../src/calls/contract/identity.ts';
import type { StoredLeg } from '../../src/calls/contract/stored-leg.ts';
import type { CallLedger, EventPublisher, UnfinishedCall } from '../../src/calls/ports.ts';
import type { RecoveryPorts } from '../../src/recovery/recovery.ts';

type End = {
  readonly event: TerminalEvent;
  readonly unpublished: readonly CallEvent[];
  published: boolean;
  /** Of a lost process: nobody has hung up. */
  readonly leg?: StoredLeg | undefined;
};

type WorldLedger = RecoveryPorts['ledger'] & Pick<CallLedger, 'claimEnd' | 'claimEndOfQueued'>;

export class DialoutWorld {
  /** What `publish` stored, each id once, as JetStream drops what it knows. */
  readonly stream: CallEvent[] = [];
  /** Every publish, repetitions included. */
  readonly published: CallEvent[] = [];
  readonly unfinished = new Map<CallId, UnfinishedCall>();
  readonly ends = new Map<CallId, End>();
  /** Nobody has claimed them. */
  readonly queued = new Set<CallId>();
  /** NATS is away while it is false: publishes wait. */
  isPublishing = true;
  readonly #waiting: (() => void)[] = [];

  readonly publisher: EventPublisher = {
    publish: async (event) => {
      this.published.push(event);
      if (!this.isPublishing) await new Promise<void>((resolve) => this.#waiting.push(resolve));
      this.put(event);
    },
  };

  readonly ledger: WorldLedger = {
    unfinished: async (owners, limit) =>
      [...this.unfinished.values()]
        .filter(({ call }) => !('callIds' in owners) || owners.callIds.includes(call.callId))
        .slice(0, limit),
    endsToPublish: async (_ownerId, except, limit) =>
      [...this.ends]
        .filter(([callId, end]) => !end.published && !except.includes(callId))
        .slice(0, limit)
        .map(([callId, { unpublished, event, leg }]) => ({
          callId,
          events: [...unpublished, event],
          ...(leg === undefined ? {} : { leg }),
        })),
    markEndPublished: async (callId) => {
      const end = this.ends.get(callId);
      if (end !== undefined) end.published = true;
    },
    claimEnd: async (callId, event, unpublished) => {
      if (this.ends.has(callId)) return false;
      const leg = this.unfinished.get(callId)?.leg;
      this.unfinished.delete(callId);
      this.queued.delete(callId);
      this.ends.set(callId, { event, unpublished, leg, published: false });
      return true;
    },
    claimEndOfQueued: async (callId, event, unpublished) =>
      this.queued.has(callId) && (await this.ledger.claimEnd(callId, event, unpublished)),
  };

  put(...events: readonly CallEvent[]): void {
    for (const event of events) {
      if (!this.stream.some((known) => known.id === event.id)) this.stream.push(event);
    }
  }

  factsOf(callId: CallId): readonly CallEvent[] {
    return this.stream.filter((event) => event.callId === callId);
  }

  /** NATS is back. */
  resumePublishing(): void {
    this.isPublishing = true;
    for (const resume of this.#waiting.splice(0)) resume();
  }
}

/** Lets promises settle; nothing in this world waits on real time. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
