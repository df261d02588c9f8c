// What /ready asks: can this process take requests, and if not, what keeps it from that.

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
      failure: 'the database does not answer, or only reads',
      check: async () => {
        await checkWritable(database);
        return { ok: true };
      },
    },
    {
      name: 'nats',
      failure: 'NATS is not connected',
      // Calls are accepted, dialled and notified without it; what is published waits.
      degradedAs: 'NATS',
      check: async () => ({ ok: nats.connected() }),
    },
    {
      name: 'sip',
      failure: 'no SIP engine is connected',
      check: async () => ({ ok: sip.ready() }),
    },
    {
      // A process that was paused, or whose renewals do not reach the database, places no call until it holds it again.
      name: 'lease',
      failure: 'the lease of this node is not held',
      check: async () => ({ ok: node.lease.isHeld }),
    },
    {
      // The API answers before runtime.json says where: who waits for this looks there next.
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
