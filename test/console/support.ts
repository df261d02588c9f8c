// Starts the console's routes without the rest of a gateway, and browsers that send requests to
// them.

import { type ConsoleOptions, consoleRoutes } from '../../src/console/console.ts';
import { createSessionStore } from '../../src/console/session-store.ts';
import type { Database } from '../../src/store/database.ts';
import { type Harness, startHarness } from '../api/support.ts';

const own = 'calls.example.com';
export const origin = `https://${own}`;

type Setting = {
  readonly database: Pick<Database, 'pool'>;
  readonly now: () => Date;
  readonly services: Parameters<typeof startHarness>[0];
  readonly options: Pick<ConsoleOptions, 'appNow'> & Partial<ConsoleOptions>;
};

export async function startConsole({
  database,
  now,
  services,
  options,
}: Setting): Promise<Harness> {
  const all: ConsoleOptions = {
    sessions: createSessionStore(database, { now }),
    address: { publicUrl: origin, host: '127.0.0.1' },
    isDrachtio: false,
    isDatabaseAway: () => false,
    captureOf: async () => undefined,
    sandboxNumbers: [{ number: '+12025550100', name: 'person' }],
    receivers: async () => [],
    retryReceiver: async () => 0,
    held: async () => [],
    trunks: async () => [],
    trunkTotals: async () => ({ from: now().toISOString(), trunks: [] }),
    nodes: async () => [],
    servers: () => [],
    detection: async () => ({ calls: 0, since: now().toISOString(), verdicts: [] }),
    ...options,
  };
  return await startHarness(services, [consoleRoutes(all)]);
}

type Method = 'GET' | 'POST' | 'DELETE';

export function asker({ server }: Harness) {
  return (
    method: Method,
    path: string,
    headers: Readonly<Record<string, string>> = {},
    payload?: object,
  ) =>
    server.inject({
      method,
      url: `/console${path}`,
      headers: { host: own, ...headers },
      ...(payload === undefined ? {} : { payload }),
    });
}

/** Returns the cookie of an answer that signs in, as the next request sends it. */
export function cookieOf({
  headers,
}: {
  readonly headers: { readonly 'set-cookie'?: unknown };
}): string {
  return String(headers['set-cookie']).replace(/;.*/, '');
}
