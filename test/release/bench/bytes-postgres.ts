// Reads how many bytes a load adds to PostgreSQL: to each table and index, and to the WAL. The
// partitions of a table count as one.

import { Client } from 'pg';
import { eventually } from '../../support/eventually.ts';

export type TableGrowth = {
  readonly name: string;
  readonly rows: number;
  /** Sum of the rows' sizes, compressed as they are stored, without what is stored in TOAST. */
  readonly rowBytes: number;
  /** The table with TOAST and maps, but without its indexes. */
  readonly heapBytes: number;
  readonly indexes: readonly { readonly name: string; readonly bytes: number }[];
};

export type WalPart = {
  /** The table or index, or the resource manager of records without one (`Transaction`, …). */
  readonly name: string;
  readonly records: number;
  readonly bytes: number;
  readonly imageBytes: number;
};

export type Growth = {
  readonly tables: readonly TableGrowth[];
  readonly wal: readonly WalPart[];
  readonly walBytes: number;
};

export type DatabaseSizes = AsyncDisposable & {
  start(): Promise<void>;
  finish(): Promise<Growth>;
};

const maxSettleMs = 60_000;

export async function openDatabaseSizes(url: string): Promise<DatabaseSizes> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query('create extension pg_walinspect');
  let start: { readonly lsn: string; readonly sizes: Sizes } | undefined;
  return {
    start: async () => {
      await untilSettled(client);
      await client.query('vacuum');
      const sizes = await readSizes(client);
      await client.query('checkpoint');
      start = { sizes, lsn: await walPosition(client) };
    },
    finish: async () => {
      if (start === undefined) throw new Error('call start first');
      await untilSettled(client);
      const end = await walPosition(client);
      const { wal, walBytes } = await readWal(client, start.lsn, end);
      await client.query('vacuum');
      return { tables: growthOf(start.sizes, await readSizes(client)), wal, walBytes };
    },
    [Symbol.asyncDispose]: () => client.end(),
  };
}

/** Waits for the writes that follow the end of a call: settled calls, notifications, captures. */
async function untilSettled(client: Client): Promise<void> {
  const isSettled = async (): Promise<boolean> => {
    const { rows } = await client.query<{ open: boolean }>(
      `select exists (select from calls where end_published_at is null)
         or exists (select from notification_lanes)
         or (select count(*) from call_captures) < (select count(*) from calls) as open`,
    );
    return rows[0]?.open === false;
  };
  await eventually(isSettled, 'all calls are settled', maxSettleMs);
}

async function walPosition(client: Client): Promise<string> {
  const { rows } = await client.query<{ lsn: string }>('select pg_current_wal_flush_lsn() as lsn');
  const [row] = rows;
  if (row === undefined) throw new Error('PostgreSQL has no WAL position');
  return row.lsn;
}

/** A partition's name ends with its day; a constraint's index has a name after that. */
const nameOfParent = (name: string): string =>
  `regexp_replace(${name}, '_(\\d{8}|rest)(_|$)', '\\2')`;

type Sizes = readonly (TableGrowth & { readonly heapBytes: number })[];

async function readSizes(client: Client): Promise<Sizes> {
  const { rows } = await client.query<{ name: string; heap: string; relations: string[] }>(`
    select ${nameOfParent('relname')} as name, sum(pg_table_size(oid)) as heap,
      array_agg(oid::regclass::text) as relations
    from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace
    group by 1 order by 1`);
  const sizes: TableGrowth[] = [];
  for (const { name, heap, relations } of rows) {
    const content: { readonly rows: string; readonly bytes: string }[] = [];
    for (const relation of relations) {
      const { rows: sums } = await client.query<{ rows: string; bytes: string }>(
        `select count(*) as rows, coalesce(sum(pg_column_size(t)), 0) as bytes from ${relation} t`,
      );
      content.push(...sums);
    }
    const { rows: indexes } = await client.query<{ name: string; bytes: string }>(
      `select ${nameOfParent('relname')} as name, sum(pg_relation_size(oid)) as bytes
       from pg_index join pg_class on oid = indexrelid
       where indrelid = any($1::text[]::regclass[]) group by 1 order by 1`,
      [relations],
    );
    const sum = (of: 'rows' | 'bytes') =>
      content.reduce((total, each) => total + Number(each[of]), 0);
    sizes.push({
      ...{ name, rows: sum('rows'), rowBytes: sum('bytes'), heapBytes: Number(heap) },
      indexes: indexes.map((index) => ({ name: index.name, bytes: Number(index.bytes) })),
    });
  }
  return sizes;
}

/** Returns the tables that have grown. */
function growthOf(before: Sizes, after: Sizes): readonly TableGrowth[] {
  return after
    .map((table) => {
      const earlier = before.find(({ name }) => name === table.name);
      if (earlier === undefined) return table;
      return {
        name: table.name,
        rows: table.rows - earlier.rows,
        rowBytes: table.rowBytes - earlier.rowBytes,
        heapBytes: table.heapBytes - earlier.heapBytes,
        indexes: table.indexes.map(({ name, bytes }) => {
          const known = earlier.indexes.find((index) => index.name === name);
          return { name, bytes: bytes - (known?.bytes ?? 0) };
        }),
      };
    })
    .filter(
      ({ rows, heapBytes, indexes }) =>
        rows > 0 || heapBytes > 0 || indexes.some(({ bytes }) => bytes > 0),
    );
}

async function readWal(
  client: Client,
  start: string,
  end: string,
): Promise<Pick<Growth, 'wal' | 'walBytes'>> {
  const { rows } = await client.query<Record<'name' | 'records' | 'bytes' | 'images', string>>(
    `select coalesce(${nameOfParent('relname')}, resource_manager) as name, count(*) as records,
       sum(record_length - fpi_length) as bytes, sum(fpi_length) as images
     from (
       select *, substring(block_ref from 'rel \\d+/\\d+/(\\d+)')::oid as filenode
       from pg_get_wal_records_info($1, $2)
     ) records
     left join pg_class on pg_class.oid = pg_filenode_relation(0, filenode)
     group by 1 order by 3 desc`,
    [start, end],
  );
  const { rows: sums } = await client.query<{ bytes: string }>(
    'select $2::pg_lsn - $1::pg_lsn as bytes',
    [start, end],
  );
  return {
    walBytes: Number(sums[0]?.bytes),
    wal: rows.map(({ name, records, bytes, images }) => ({
      ...{ name, records: Number(records), bytes: Number(bytes), imageBytes: Number(images) },
    })),
  };
}
