// The checks behind /ready: can this process take requests, and if not, why?

import type { Pool } from 'pg';
import type { HealthCheck } from '../http/health-routes.ts';
import { checkWritable } from '../store/database.ts';

export type HealthSources = {
  readonly database: Pick<Pool, 'query'>;
  readonly nats: { connected(): boolean };
  readonly sip: { ready(): boolean };
  readonly node: {
    readonly lease: { readonly isHeld: boolean };
    isStarted(): boolean;
    isDraining(): boolean;
  };
};

export function healthChecks({ database, nats, sip, node }: HealthSources): readonly HealthCheck[] {
  return [
    {
      name: 'database',
      failure: 'the database does not answer, or is read-only',
      check: async () => {
        await checkWritable(database);
        return { ok: true };
      },
    },
    {
      name: 'nats',
      failure: 'NATS is not connected',
      // Without NATS, calls are still accepted and dialled, and notifications are sent. Only
      // published events wait.
      degradedAs: 'NATS',
      check: async () => ({ ok: nats.connected() }),
    },
    {
      name: 'sip',
      failure: 'no SIP engine is connected',
      check: async () => ({ ok: sip.ready() }),
    },
    {
      // A process places no calls without its lease. It loses the lease if the process is paused,
      // or if its renewals do not reach the database.
      name: 'lease',
      failure: 'the lease of this node is not held',
      check: async () => ({ ok: node.lease.isHeld }),
    },
    {
      // The API answers before runtime.json is written. A program that waits for /ready may read
      // the file next, so this check fails until the file exists.
      name: 'started',
      failure: 'this node is still starting',
      check: async () => ({ ok: node.isStarted() }),
    },
    {
      name: 'accepting',
      failure: 'this node is shutting down: it lets its calls end and takes no new ones',
      check: async () => ({ ok: !node.isDraining() }),
    },
  ];
}
