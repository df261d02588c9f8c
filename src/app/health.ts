// The checks behind /ready: can this process accept requests, and if not, why?

import type { HealthCheck } from '../http/health-routes.ts';
import { isNatsImpaired } from '../servers/server-words.ts';
import type { Events } from './events.ts';
import type { Servers } from './servers.ts';

export type HealthSources = {
  readonly database: Pick<Servers, 'probeDatabase'>;
  readonly nats: Pick<Events, 'status'>;
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
      failure: 'the database does not respond, or is read-only',
      check: async () => {
        await database.probeDatabase();
        return { ok: true };
      },
    },
    {
      name: 'nats',
      failure: 'NATS is not connected, or stores no events',
      // Without NATS we still accept and dial calls, and we still send notifications. Only the
      // publication of events is delayed.
      degradedAs: 'NATS',
      check: async () => {
        const status = nats.status();
        return { ok: status.isConnected && !isNatsImpaired(status, new Date()) };
      },
    },
    {
      name: 'sip',
      failure: 'no SIP engine is connected',
      check: async () => ({ ok: sip.ready() }),
    },
    {
      // A process can't place calls without its lease, which expires if the process is paused or
      // its renewals don't reach the database.
      name: 'lease',
      failure: 'the lease of this node is not held',
      check: async () => ({ ok: node.lease.isHeld }),
    },
    {
      // The API comes up before runtime.json exists. Programs that are waiting for /ready may read
      // the file next, so this check fails until we've written it.
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
