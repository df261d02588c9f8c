// The side door of the command line: `offhook apps`, `bots`, `tables` and `nodes` on the embedded database, which only this
// process can open.

import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import type { AdminStores } from '../api/admin/admin-operations.ts';
import { createAdminServer } from '../api/admin/admin-server.ts';
import type { Environment } from './environment.ts';

/** `http://:key@127.0.0.1:port`; undefined with PostgreSQL, where the command line goes to the database itself. */
export async function openAdmin(
  { config, logger, closers }: Environment,
  stores: AdminStores,
): Promise<string | undefined> {
  if (config.databaseUrl !== undefined) return undefined;
  // Made anew at each start, for users who may read runtime.json.
  const key = randomBytes(24).toString('hex');
  const server = createAdminServer({ stores, key, logger });
  await server.listen({ host: '127.0.0.1', port: 0 });
  closers.add('admin HTTP', () => server.close());
  const { port } = server.server.address() as AddressInfo;
  return `http://:${key}@127.0.0.1:${port}`;
}
