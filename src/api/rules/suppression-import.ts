// Imports suppressions from NDJSON or CSV of any length. Lines are stored in batches. While one
// batch is stored, the next one is read, and no more, so memory doesn't grow with the body. Wrong
// lines are reported, and the others accepted.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { SuppressingApp, Suppression } from '../../calls/rules/suppression.ts';
import type { NumberReading } from '../../calls/target/number-reading.ts';
import { memberErrors } from '../../http/validation.ts';
import { describeIssues } from '../../lib/issues.ts';
import { csvCells, type Line, linesOf } from './import-lines.ts';
import { importedSuppression, readSuppressedNumber, toSuppression } from './suppression-schemas.ts';

const batchLines = 1_000;
/** Reading this many lines takes 4 ms. Calls and other requests then have their turn. */
const linesPerTurn = 250;
/** More mistakes than anybody reads, and few enough for one response. */
const maxWrongLines = 1_000;
const csvColumns = ['number', 'reason', 'source', 'until'] as const;

export type WrongLine = { readonly line: number; readonly message: string };

export type ImportResult = {
  /** Lines that were stored. */
  accepted: number;
  /** Stored lines whose number had a suppression, or was in an earlier line too. */
  replaced: number;
  wrongTotal: number;
  readonly wrong: WrongLine[];
};

export type ImportFormat = 'ndjson' | 'csv';

export class BadHeaderError extends Error {}

type Read =
  | { readonly ok: true; readonly address: string; readonly suppression: Suppression }
  | { readonly ok: false; readonly message: string };

/**
 * Imports a body. `result` counts what has been stored, also if the body breaks off and this
 * rejects.
 *
 * @throws BadHeaderError if the first line of a CSV body isn't its header; nothing is stored then
 */
export async function importSuppressions(
  body: AsyncIterable<Buffer>,
  {
    app,
    format,
    result,
    store,
  }: {
    readonly app: SuppressingApp & NumberReading;
    readonly format: ImportFormat;
    readonly result: ImportResult;
    readonly store: (suppressions: ReadonlyMap<string, Suppression>) => Promise<number>;
  },
): Promise<void> {
  let batch = new Map<string, Suppression>();
  let lines = 0;
  const storeBatch = async (
    suppressions: ReadonlyMap<string, Suppression>,
    count: number,
  ): Promise<void> => {
    const replaced = await store(suppressions);
    result.accepted += count;
    result.replaced += replaced + count - suppressions.size;
  };
  let storing = Promise.resolve();
  /** Resolves when the batch before is stored. */
  const flush = async (): Promise<void> => {
    await storing;
    if (lines > 0) storing = storeBatch(batch, lines);
    // `flush` or the end of the import awaits it.
    storing.catch(() => undefined);
    batch = new Map();
    lines = 0;
  };
  let columns: readonly string[] | undefined;
  let linesRead = 0;
  const take = async (line: Line): Promise<void> => {
    const read = readLine(line, columns, app);
    if (read.ok) {
      batch.set(read.address, read.suppression);
      lines += 1;
    } else noteWrong(result, { line: line.number, message: read.message });
    if (lines === batchLines) await flush();
    linesRead += 1;
    if (linesRead % linesPerTurn === 0) await nextTurn();
  };
  try {
    for await (const some of linesOf(body)) {
      for (const line of some) {
        if (format === 'csv' && columns === undefined) columns = headerOf(line);
        else await take(line);
      }
    }
    await flush();
  } finally {
    // Also if the body breaks off: `result` then counts what was stored.
    await storing;
  }
}

function noteWrong(result: ImportResult, wrong: WrongLine): void {
  result.wrongTotal += 1;
  if (result.wrong.length < maxWrongLines) result.wrong.push(wrong);
}

function headerOf({ text = '' }: Line): readonly string[] {
  const columns = csvCells(text) ?? [];
  const isKnown = columns.every((name) => csvColumns.some((column) => column === name));
  const hasRequired = ['number', 'reason', 'source'].every((name) => columns.includes(name));
  if (!isKnown || !hasRequired || new Set(columns).size < columns.length) {
    throw new BadHeaderError(`must begin with the header ${csvColumns.join(',')}`);
  }
  return columns;
}

function readLine(
  { text, problem }: Line,
  columns: readonly string[] | undefined,
  reading: NumberReading,
): Read {
  if (text === undefined) return { ok: false, message: problem ?? 'cannot be read' };
  const members = columns === undefined ? membersOfJson(text) : membersOfCsv(text, columns);
  if (typeof members === 'string') return { ok: false, message: members };
  const parsed = importedSuppression.safeParse(members, { error: describeIssues });
  if (!parsed.success) {
    const errors = memberErrors(parsed.error, []);
    return { ok: false, message: errors.map(describe).join('; ') };
  }
  const read = readSuppressedNumber(parsed.data.number, reading);
  return read.ok
    ? { ok: true, address: read.address, suppression: toSuppression(parsed.data) }
    : { ok: false, message: `number: ${read.message}` };
}

function describe({ path, message }: { readonly path: string; readonly message: string }): string {
  return path === '' ? message : `${path.slice(0, 64)}: ${message}`;
}

function membersOfJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'string' ? 'is not a JSON object' : value;
  } catch {
    return 'is not JSON';
  }
}

function membersOfCsv(text: string, columns: readonly string[]): object | string {
  const cells = csvCells(text);
  if (cells === undefined) return 'has a quote without its counterpart';
  if (cells.length !== columns.length) return `must have ${columns.length} cells`;
  const members: Record<string, string> = {};
  for (const [index, name] of columns.entries()) {
    const cell = cells[index] ?? '';
    if (name !== 'until' || cell !== '') members[name] = cell;
  }
  return members;
}
