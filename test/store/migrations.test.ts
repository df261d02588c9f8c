import { getTableName, is, type SQL } from 'drizzle-orm';
import { getTableConfig, PgDialect, PgTable } from 'drizzle-orm/pg-core';
import type { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { silentLogger } from '../../src/lib/logger.ts';
import { openDatabase } from '../../src/store/database.ts';
import { migrate, migrations } from '../../src/store/migrations/migrate.ts';
import * as schema from '../../src/store/schema.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../support/databases.ts';
import { recordedLogger } from '../support/recorded-logger.ts';

const tables = Object.values(schema).filter((value) => is(value, PgTable));

describe.each(databaseKinds)('migrations on %s', (kind) => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await openTestDatabase(kind, { own: true });
  });

  afterAll(async () => {
    await database.remove();
  });

  test('create exactly the tables, columns and indexes of the schema', async () => {
    expect(await columnsIn(database.pool)).toEqual(tables.flatMap(columnsOf).toSorted());
    expect(await indexesIn(database.pool)).toEqual(tables.flatMap(indexesOf).toSorted());
  });

  test('do nothing on a database that has them', async () => {
    const before = await database.pool.query('select * from schema_migrations');

    await migrate(database.pool, silentLogger);

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

    await expect(migrate(database.pool, silentLogger, steps)).rejects.toThrow(
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
    await database.pool.query('drop schema public cascade; create schema public');
    await migrate(
      database.pool,
      silentLogger,
      migrations.filter(({ version }) => version < 17),
    );
    await database.pool.query(
      `insert into apps (app_id, account_id, name, bots, scopes, jwt_algorithm, created_at)
       values ('app-old', 'acme', 'dialer', '["*"]', '[]', 'HS256', now())`,
    );

    await migrate(database.pool, silentLogger);

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

  await migrate(database.pool, logger);
  await migrate(database.pool, logger);

  expect(lines).toEqual([
    expect.objectContaining({ msg: 'database migrated', from: 0, to: migrations.length }),
  ]);
});

function columnsOf(table: PgTable): string[] {
  return getTableConfig(table).columns.map((column) => {
    const type = column.getSQLType().replace('timestamp (3) with', 'timestamp(3) with');
    return `${getTableName(table)}.${column.name} ${type}${column.notNull ? ' not null' : ''}`;
  });
}

async function columnsIn(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ column: string }>(`
    select relname || '.' || attname || ' ' || format_type(atttypid, atttypmod)
      || case when attnotnull then ' not null' else '' end as column
    from pg_attribute join pg_class on pg_class.oid = attrelid
    where relnamespace = 'public'::regnamespace and relkind = 'r' and relname <> 'schema_migrations'
      and attnum > 0 and not attisdropped`);
  return rows.map((row) => row.column).toSorted();
}

function indexesOf(table: PgTable): string[] {
  const { name, columns, primaryKeys, indexes } = getTableConfig(table);
  const single = columns.filter((column) => column.primary).map((column) => [column.name]);
  const several = primaryKeys.map((key) => key.columns.map((column) => column.name));
  return [
    ...[...single, ...several].map((key) => `primary key of ${name} (${key.join(', ')})`),
    ...indexes.map(({ config }) => {
      const keys = config.columns.map((column) => {
        if (!('indexConfig' in column)) return textOf(column as SQL);
        const { order, opClass } = column.indexConfig;
        return [column.name, opClass, order === 'desc' && 'DESC'].filter(Boolean).join(' ');
      });
      const where = config.where === undefined ? '' : ` WHERE (${textOf(config.where)})`;
      return `${config.name} on ${name} (${keys.join(', ')})${where}`.toLowerCase();
    }),
  ];
}

function textOf(sql: SQL): string {
  return new PgDialect().sqlToQuery(sql).sql;
}

async function indexesIn(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ index: string }>(`
    select case when indisprimary then 'primary key of ' || t.relname || ' '
        || substring(pg_get_indexdef(indexrelid) from 'USING btree (.*)$')
      else i.relname || ' on ' || t.relname || ' '
        || lower(substring(pg_get_indexdef(indexrelid) from 'USING (?:btree|gin) (.*)$')) end as index
    from pg_index join pg_class i on i.oid = indexrelid join pg_class t on t.oid = indrelid
    where t.relnamespace = 'public'::regnamespace and t.relname <> 'schema_migrations'`);
  return rows.map((row) => row.index).toSorted();
}
