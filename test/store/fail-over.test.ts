// PostgreSQL with a standby, behind HAProxy with the configuration that sip-config ships.

import { Client } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Logger, silentLogger } from '../../src/lib/logger.ts';
import { checkWritable, openDatabase } from '../../src/store/database.ts';
import { acceptedCall } from '../support/call-records.ts';
import { eventually } from '../support/eventually.ts';
import { openLedger } from '../support/ledger.ts';
import { forSuite } from '../support/opened.ts';
import { startPostgresPair } from '../support/postgres-pair.ts';
import { recordedLogger } from '../support/recorded-logger.ts';

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

describe('a gateway', () => {
  const open = async (databaseUrl: string, logger: Logger = silentLogger) => {
    const database = await openDatabase({
      ...{ databaseUrl, dataDir: '/nonexistent', logger },
    });
    onTestFinished(() => database.close());
    return database;
  };

  test('knows which calls were not stored during a fail-over, and has the others after it', async () => {
    const database = await open(pair.url);
    const ledger = openLedger(database);
    const before = acceptedCall();
    expect(await ledger.accept(before, {})).toEqual({ kind: 'accepted' });

    await pair.primary.kill();
    await eventually(() => database.pool.totalCount === 0, 'the connections are closed');
    expect(await ledger.accept(acceptedCall(), {})).toMatchObject({ kind: 'not-stored' });
    await pair.promote();
    await pair.untilReachable();

    const after = acceptedCall();
    expect(await ledger.accept(after, {})).toEqual({ kind: 'accepted' });
    const { rows } = await database.pool.query<{ call_id: string }>('select call_id from calls');
    expect(rows.map((row) => row.call_id).sort()).toEqual([before.callId, after.callId].sort());
    await pair.rebuild();
  });

  test('that starts at a standby waits until it is promoted', async () => {
    const { logger, lines } = recordedLogger();
    const opening = open(pair.standby.url, logger);
    let isOpen = false;
    void opening.then(() => {
      isOpen = true;
    });
    // The SQLSTATE of a server that only reads.
    const waits = { msg: 'waiting for the database', code: '25006' };
    await eventually(
      () => lines.some(({ msg, code }) => msg === waits.msg && code === waits.code),
      'the gateway waits for the standby',
    );
    expect(isOpen).toBe(false);

    await pair.promote();

    await checkWritable((await opening).pool);
  });
});
