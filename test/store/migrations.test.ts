import type { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { silentLogger } from '../../src/lib/logger.ts';
import { openDatabase } from '../../src/store/database.ts';
import { migrate, migrations } from '../../src/store/migrations/migrate.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { recordedLogger } from '../support/recorded-logger.ts';

describe.each(databaseKinds)('migrations on %s', (kind) => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await openTestDatabase(kind, { own: true });
  });

  afterAll(async () => {
    await database.remove();
  });

  // `npx vitest -u` writes the page.
  test('create the tables, columns and indexes that the page lists', async () => {
    await expect(await listed(database.pool)).toMatchFileSnapshot('../../src/store/tables.txt');
  });

  test('do nothing on a database that has them', async () => {
    const before = await database.pool.query('select * from schema_migrations');

    await migrate(database.pool, silentLogger, 'shared');

    const after = await database.pool.query('select * from schema_migrations');
    expect(after.rows).toEqual(before.rows);
    expect(after.rowCount).toBe(migrations.length);
  });

  test('leave nothing behind when one step fails', async () => {
    const steps = [
      ...migrations,
      { version: 1001, name: 'good', sql: 'create table good (id text)' },
      { version: 1002, name: 'bad', sql: 'create table bad (id nonsense)' },
    ];

    await expect(migrate(database.pool, silentLogger, 'shared', steps)).rejects.toThrow(
      'could not be migrated',
    );

    const found = await database.pool.query("select to_regclass('good') as good");
    expect(found.rows).toEqual([{ good: null }]);
    expect((await database.pool.query('select * from schema_migrations')).rowCount).toBe(
      migrations.length,
    );
  });
});

test.each(databaseKinds)(
  'apps from before there was a cap on the life of tokens have none, on %s',
  async (kind) => {
    await using database = await openTestDatabase(kind, { own: true });
    const sharing = kind === 'pglite' ? 'alone' : 'shared';
    await database.pool.query('drop schema public cascade; create schema public');
    await migrate(
      database.pool,
      silentLogger,
      sharing,
      migrations.filter(({ version }) => version < 17),
    );
    await database.pool.query(
      `insert into apps (app_id, account_id, name, bots, scopes, jwt_algorithm, created_at)
       values ('app-old', 'acme', 'dialer', '["*"]', '[]', 'HS256', now())`,
    );

    await migrate(database.pool, silentLogger, sharing);

    const { rows } = await database.pool.query('select app_id, token_max_ttl_s from apps');
    expect(rows).toEqual([{ app_id: 'app-old', token_max_ttl_s: null }]);
  },
);

test('nodes that start together migrate an empty PostgreSQL once', async () => {
  await using database = await openTestDatabase('postgres');
  await database.pool.query('drop schema public cascade; create schema public');

  const nodes = await Promise.all(
    [1, 2, 3, 4].map(() => openDatabase({ ...database.location, logger: silentLogger })),
  );

  await Promise.all(nodes.map((node) => node.close()));
  const done = await database.pool.query('select version from schema_migrations order by version');
  expect(done.rows).toEqual(migrations.map(({ version }) => ({ version })));
});

test('are one line of the log, and none where there was nothing to do', async () => {
  await using database = await openTestDatabase('postgres');
  await database.pool.query('drop schema public cascade; create schema public');
  const { logger, lines } = recordedLogger();

  await migrate(database.pool, logger, 'shared');
  await migrate(database.pool, logger, 'shared');

  expect(lines).toEqual([
    expect.objectContaining({ msg: 'database migrated', from: 0, to: migrations.at(-1)?.version }),
  ]);
});

/** Each table with its columns, then its indexes. */
async function listed(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ name: string; columns: string; indexes: string }>(`
    select relname as name, (
        select string_agg('  ' || attname || ' ' || format_type(atttypid, atttypmod)
          || case when attnotnull then ' not null' else '' end, E'\\n' order by attnum)
        from pg_attribute where attrelid = t.oid and attnum > 0 and not attisdropped
      ) as columns, (
        select string_agg('  ' || case when indisprimary then 'primary key' else 'index ' || i.relname end
            || case when indisunique and not indisprimary then ' unique ' else ' ' end
            || substring(pg_get_indexdef(indexrelid) from 'USING (?:btree )?(.*)$'),
          E'\\n' order by not indisprimary, i.relname)
        from pg_index join pg_class i on i.oid = indexrelid where indrelid = t.oid
      ) as indexes
    from pg_class t where relnamespace = 'public'::regnamespace and relkind = 'r' and relname <> 'schema_migrations'
    order by relname collate "C"`);
  const tables = rows.map(({ name, columns, indexes }) => `${name}\n${columns}\n${indexes}\n`);
  return `What the migrations make, on either database.\n\n${tables.join('\n')}`;
}

describe('an index that comes later, on a database that others use', () => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await openTestDatabase('postgres', { own: true });
  });

  afterAll(async () => {
    await database.remove();
  });

  const steps = [
    ...migrations,
    { version: 1001, name: 'a large table', sql: 'create table large (id integer)' },
    {
      ...{ version: 1002, name: 'its index', sql: '' },
      indexes: [{ name: 'large_by_id', on: 'large (id) where id > 0' }],
    },
  ];
  const isValid = async (): Promise<boolean | undefined> => {
    const { rows } = await database.pool.query<{ indisvalid: boolean }>(
      "select indisvalid from pg_index where indexrelid = to_regclass('large_by_id')",
    );
    return rows[0]?.indisvalid;
  };

  test('is built while they write', async () => {
    await migrate(database.pool, silentLogger, 'shared', steps.slice(0, -1));
    const writer = await database.pool.connect();
    await writer.query('begin; insert into large values (1)');

    const migrated = migrate(database.pool, silentLogger, 'shared', steps);
    await eventually(async () => (await isValid()) !== undefined, 'it is being built');
    // Behind a lock of the table this would wait for the writer above.
    await database.pool.query('insert into large values (2)');
    expect(await isValid()).toBe(false);
    await writer.query('commit');
    writer.release();
    await migrated;

    expect(await isValid()).toBe(true);
  });

  test('is built anew where that was broken off, and left alone where it was not', async () => {
    await database.pool.query(
      "update pg_index set indisvalid = false where indexrelid = 'large_by_id'::regclass",
    );
    const { logger, lines } = recordedLogger();

    await migrate(database.pool, logger, 'shared', steps);
    await migrate(database.pool, logger, 'shared', steps);

    expect(await isValid()).toBe(true);
    expect(lines).toEqual([expect.objectContaining({ index: 'large_by_id' })]);
  });
});
