// Stores suppressions, and cancels the taken, unanswered calls that they concern, on all nodes.
// Calls that are still queued end when they are taken, because the check then finds the
// suppression. Calls that wait for a rule are released, so that they are taken and end soon.

import { setTimeout as pause } from 'node:timers/promises';
import type { CallId } from '../calls/contract/identity.ts';
import type { Suppressing } from '../calls/dialout-ports.ts';
import type { CallRegistry } from '../calls/life/call-registry.ts';
import type { SuppressingApp, Suppression } from '../calls/rules/suppression.ts';

/** Also cancels calls that another node asks this one to cancel. */
export type NodeSuppressing = Suppressing & {
  /** Cancels those of the calls that this process has and that nobody has answered. */
  cancelHere(callIds: readonly CallId[]): void;
};

type RingingCall = { readonly callId: CallId; readonly ownerId: string };

export type SuppressingPorts = {
  readonly store: {
    put(app: SuppressingApp, suppressions: ReadonlyMap<string, Suppression>): Promise<number>;
  };
  readonly calls: {
    release(accountId: string, address?: string): Promise<void>;
    ringing(accountId: string, address?: string): Promise<readonly RingingCall[]>;
    stillUp(callIds: readonly CallId[]): Promise<readonly CallId[]>;
  };
  readonly registry: Pick<CallRegistry, 'refuse'>;
  readonly ownerId: string;
  /** Asks another node to cancel its calls. The request may be lost, so it is repeated. */
  readonly askOwner: (ownerId: string, callIds: readonly CallId[]) => void;
};

const defaultLimits = {
  /** Long enough for a CANCEL to be answered, even if its first transmissions are lost. */
  patienceMs: 10_000,
  /**
   * A call may be claimed without being started yet, and a request to another node may be lost, so
   * each round searches and asks again.
   */
  roundMs: 250,
};

export function createSuppressing(
  ports: SuppressingPorts,
  { patienceMs, roundMs } = defaultLimits,
): NodeSuppressing {
  const { store, calls, registry, ownerId, askOwner } = ports;

  const cancelHere = (callIds: readonly CallId[]): void => {
    for (const callId of callIds) registry.refuse(callId, { rule: 'suppressed' });
  };

  const askOwners = (ringing: readonly RingingCall[]): void => {
    for (const owner of new Set(ringing.map((call) => call.ownerId))) {
      const callIds = ringing.filter((call) => call.ownerId === owner).map(({ callId }) => callId);
      if (owner === ownerId) cancelHere(callIds);
      else askOwner(owner, callIds);
    }
  };

  async function cancel(accountId: string, address?: string): Promise<readonly CallId[]> {
    const deadlineMs = performance.now() + patienceMs;
    await calls.release(accountId, address);
    let left = new Set<CallId>();
    for (;;) {
      const ringing = await calls.ringing(accountId, address);
      askOwners(ringing);
      for (const { callId } of ringing) left.add(callId);
      if (left.size > 0) left = new Set(await calls.stillUp([...left]));
      if (left.size === 0 || performance.now() > deadlineMs) return [...left];
      await pause(roundMs);
    }
  }

  return {
    async suppress(app, address, suppression) {
      await store.put(app, new Map([[address, suppression]]));
      return await cancel(app.accountId, address);
    },
    store: (app, suppressions) => store.put(app, suppressions),
    cancelSuppressed: cancel,
    cancelHere,
  };
}
