// PostgreSQL with a standby, behind HAProxy with the configuration that sip-config ships.

import { Client } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { forSuite } from '../support/opened.ts';
import { startPostgresPair } from '../support/postgres-pair.ts';

const pair = forSuite(startPostgresPair);

describe('HAProxy', () => {
  type Session = { readonly port: string; isCut(): boolean };

  /** Opens a session through HAProxy, and returns the port of the server that it reached. */
  async function openSession(): Promise<Session> {
    const client = new Client({ connectionString: pair.url, connectionTimeoutMillis: 5_000 });
    let isCut = false;
    client.on('error', () => undefined);
    client.once('end', () => {
      isCut = true;
    });
    await client.connect();
    onTestFinished(() => client.end().catch(() => undefined));
    const { rows } = await client.query<{ port: string }>(`select current_setting('port') as port`);
    return { port: rows[0]?.port ?? '', isCut: () => isCut };
  }

  const portOfPrimary = () => new URL(pair.primary.url).port;

  test('cuts the sessions of a frozen primary, and finds the promoted standby', async () => {
    const before = await openSession();
    expect(before.port).toBe(portOfPrimary());

    pair.primary.freeze();
    await eventually(() => before.isCut(), 'the session is cut');
    await expect(openSession()).rejects.toThrow();
    await pair.promote();
    await pair.untilReachable();

    const after = await openSession();
    expect(after.port).toBe(portOfPrimary());
    expect(after.port).not.toBe(before.port);
    await pair.rebuild();
    expect(after.isCut()).toBe(false);
  });

  test('lets nobody connect to a primary that was made read-only', async () => {
    const before = await openSession();
    await pair.setReadOnly(true);
    await eventually(() => before.isCut(), 'the session is cut');
    await expect(openSession()).rejects.toThrow();

    await pair.setReadOnly(false);
    await pair.untilReachable();
  });

  test('lets nobody connect while an old primary is back beside the new one', async () => {
    await pair.promote({ isFenced: false });
    const isRefused = () =>
      openSession().then(
        () => false,
        () => true,
      );
    await eventually(isRefused, 'a session is refused');

    await pair.rebuild();
    await pair.untilReachable();
    expect((await openSession()).port).toBe(portOfPrimary());
  });
});
