import type { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { silentLogger } from '../../src/lib/logger.ts';
import { openDatabase } from '../../src/store/database.ts';
import { ensureSchema, type Schema } from '../../src/store/schema.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../support/databases.ts';
import { recordedLogger } from '../support/recorded-logger.ts';

const home = { name: 'the database', remedy: 'name an empty one' };
const anew = 'drop schema public cascade; create schema public';

/** Returns a schema like this version's own: a table, and a function with this text. */
function schemaWith(body: string, version = '0.9'): Schema {
  return {
    version,
    tables: ['create table known (id text)'],
    functions: { answer: `create function answer() returns ${body}` },
  };
}

const number = 'integer language sql as $$ select 1 $$';

describe.each(databaseKinds)('the schema on %s', (kind) => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await openTestDatabase(kind, { own: true });
  });

  afterAll(() => database.remove());

  const ensure = (schema?: Schema, logger = silentLogger) =>
    ensureSchema(database.pool, { logger, home }, schema);
  const noted = async () =>
    (await database.pool.query<{ name: string }>('select * from schema_migrations')).rows;

  // `npx vitest -u` writes the page.
  test('has exactly the tables, columns and indexes that the page lists', async () => {
    await expect(await listed(database.pool)).toMatchFileSnapshot('../../src/store/tables.txt');
  });

  test('is not created again', async () => {
    const before = await noted();

    await ensure();

    expect(await noted()).toEqual(before);
    expect(before.map(({ name }) => name)).toEqual([
      ...['tables', 'take_calls', 'take_slot', 'lock_calls', 'lock_campaigns'],
    ]);
  });

  test('leaves nothing behind if a part of it fails', async () => {
    await database.pool.query(anew);

    await expect(ensure(schemaWith('nonsense'))).rejects.toThrow('did not accept the schema');

    const { rows } = await database.pool.query("select to_regclass('known') as known");
    expect(rows).toEqual([{ known: null }]);
  });

  test('replaces a function if its text has changed, including its return type', async () => {
    await database.pool.query(anew);
    const { logger, lines } = recordedLogger();
    const changed = schemaWith(`text language sql as $$ select 'two' $$`);

    for (const schema of [schemaWith(number), changed, changed]) await ensure(schema, logger);

    expect((await database.pool.query('select answer()')).rows).toEqual([{ answer: 'two' }]);
    expect(lines).toMatchObject([{ made: ['tables', 'answer'] }, { made: ['answer'] }]);
  });

  test('is refused if a newer version created it', async () => {
    await database.pool.query(anew);
    await ensure(schemaWith(number, '0.10'));

    await expect(ensure(schemaWith(number))).rejects.toThrow(
      'the database was made by Offhook 0.10, and this is 0.9: start Offhook 0.10 or later',
    );
  });

  test('is refused if an earlier version created it', async () => {
    await database.pool.query(anew);
    await ensure(schemaWith(number));

    await expect(ensure(schemaWith(number, '0.10'))).rejects.toThrow(
      'the database was made by Offhook 0.9, and 0.10 cannot read its data: name an empty one',
    );
  });

  test('is refused if another build of this version, with other tables, created it', async () => {
    await database.pool.query(anew);
    const schema = schemaWith(number);
    await ensure(schema);

    const other = { ...schema, tables: [...schema.tables, 'create table more (id text)'] };
    await expect(ensure(other)).rejects.toThrow(
      'the database was made by another build of Offhook 0.9, and this one cannot read its data: name an empty one',
    );
    const reworded = { ...schema, tables: ['-- Why.\ncreate table known\n  (id text)'] };
    await expect(ensure(reworded)).resolves.toBeUndefined();
  });

  test('is refused if a build that recorded no hash created it', async () => {
    await database.pool.query(anew);
    await ensure();
    await database.pool.query(`update schema_migrations set version = '0.9' where name = 'tables'`);

    await expect(ensure()).rejects.toThrow('was made by another build of Offhook 0.9');
  });

  test('is refused if a version with numbered migrations created it', async () => {
    await database.pool.query(`${anew};
      create table schema_migrations (
        version integer primary key, name text not null, applied_at timestamptz(3) not null);
      insert into schema_migrations values (1, 'calls-and-notifications', now())`);

    await expect(ensure()).rejects.toThrow(
      'the database was made by Offhook 0.2 or earlier, and 0.9 cannot read its data: name an empty one',
    );
    expect(await noted()).toHaveLength(1);
  });
});

test('the schema is created once by nodes that start together on an empty PostgreSQL', async () => {
  await using database = await openTestDatabase('postgres');
  await database.pool.query(anew);

  const nodes = await Promise.all(
    [1, 2, 3, 4].map(() => openDatabase({ ...database.location, logger: silentLogger })),
  );

  await Promise.all(nodes.map((node) => node.close()));
  const { rows } = await database.pool.query('select distinct applied_at from schema_migrations');
  expect(rows).toHaveLength(1);
});

/** Lists each table with its columns, then its indexes. */
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
    from pg_class t where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
      and relname <> 'schema_migrations'
    order by relname collate "C"`);
  const tables = rows.map(({ name, columns, indexes }) => `${name}\n${columns}\n${indexes}\n`);
  return `What the schema makes, on either database.\n\n${tables.join('\n')}`;
}
