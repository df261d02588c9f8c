// Reads the truth about recordings: a CSV file with a header. The columns `file` and `label` are
// required; the others are optional.

import { readFile } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { readWav } from '../../../src/cli/amd/amd-wav.ts';

const labels = ['human', 'machine', 'silence', 'other'] as const;
export type Label = (typeof labels)[number];

export type Truth = {
  readonly label: Label;
  /** A kind of answer with figures of its own. */
  readonly class?: string;
  readonly greetingStartMs?: number;
  readonly greetingEndMs?: number;
  readonly words?: number;
  readonly beep?: { readonly startMs: number; readonly endMs: number; readonly hz?: string };
  /**
   * The expected results: `human`, `machine`, `stopped`, `tone`, `no tone`, `no_speech`,
   * `ambiguous`.
   */
  readonly expect: ReadonlySet<string>;
  /** The listed speech segments. If the manifest lists none, the greeting is one segment. */
  readonly segments: readonly (readonly [number, number])[];
  readonly transcript?: string;
};

export type Labelled = { readonly file: string; readonly truth: Truth };

/** Returns the recordings in the manifest's order, with paths relative to the working folder. */
export async function readManifest(path: string): Promise<readonly Labelled[]> {
  const [header = [], ...rows] = parseCsv(await readFile(path, 'utf8'));
  const columns = header.map((name) => name.trim().toLowerCase());
  if (!columns.includes('file') || !columns.includes('label')) {
    throw new Error(`${path} needs a header with the columns file and label`);
  }
  return rows.map((cells, index) => {
    const row = new Map(columns.map((name, column) => [name, (cells[column] ?? '').trim()]));
    const { file, truth } = readRow(row, `${path}, row ${index + 2}`);
    return { file: isAbsolute(file) ? file : join(dirname(path), file), truth };
  });
}

export async function readSamples(file: string): Promise<Int16Array> {
  const result = readWav(await readFile(file), 1);
  if (result.kind === 'unreadable') throw new Error(`${file}: ${result.problem}`);
  return result.recording.samples;
}

function readRow(row: ReadonlyMap<string, string>, place: string): Labelled {
  const file = row.get('file') ?? '';
  if (file === '') throw new Error(`${place}: no file`);
  const truth = truthFrom(row);
  if (truth !== undefined) return { file, truth };
  throw new Error(`${place}: label "${row.get('label')}" is not one of ${labels.join(', ')}`);
}

function truthFrom(row: ReadonlyMap<string, string>): Truth | undefined {
  const label = labels.find((known) => known === row.get('label')?.toLowerCase());
  if (label === undefined) return undefined;
  const number = (column: string): number | undefined => {
    const value = Number.parseFloat(row.get(column) ?? '');
    return Number.isFinite(value) ? value : undefined;
  };
  const greetingStartMs = number('greeting_start_ms');
  const greetingEndMs = number('greeting_end_ms');
  const words = number('words');
  const beep = beepFrom(number('beep_start_ms'), number('beep_end_ms'), row.get('beep_hz'));
  const transcript = row.get('transcript');
  const className = row.get('class') || row.get('kind');
  return {
    label,
    expect: new Set((row.get('expect') ?? '').split(';').map(withoutRemark)),
    segments: segmentsFrom(row.get('segments_ms') ?? '', greetingStartMs, greetingEndMs),
    ...(className ? { class: className } : {}),
    ...(greetingStartMs === undefined ? {} : { greetingStartMs }),
    ...(greetingEndMs === undefined ? {} : { greetingEndMs }),
    ...(words === undefined ? {} : { words }),
    ...(beep === undefined ? {} : { beep }),
    ...(transcript ? { transcript } : {}),
  };
}

/** Removes a remark: `machine(<9 words: hard)` becomes `machine`. */
function withoutRemark(expectation: string): string {
  return expectation.replace(/\(.*$/, '').trim();
}

function beepFrom(
  startMs: number | undefined,
  endMs: number | undefined,
  hz: string | undefined,
): Truth['beep'] {
  if (endMs === undefined) return undefined;
  return { startMs: startMs ?? endMs, endMs, ...(hz ? { hz } : {}) };
}

function segmentsFrom(text: string, startMs?: number, endMs?: number): Truth['segments'] {
  const listed = [...text.matchAll(/(\d+)-(\d+)/g)].map(
    ([, from, to]) => [Number(from), Number(to)] as const,
  );
  if (listed.length > 0 || startMs === undefined || endMs === undefined) return listed;
  return [[startMs, endMs]];
}

/** Parses CSV (RFC 4180) with either line end. Empty rows are skipped. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  // A cell and its end: a comma, a line end, or the end of the text.
  const cells = /(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r?\n|\r|$)/g;
  for (const [whole, quoted, plain, end] of text.replace(/^\uFEFF/, '').matchAll(cells)) {
    if (whole === '' && row.length === 0) continue;
    row.push(quoted === undefined ? (plain ?? '') : quoted.replaceAll('""', '"'));
    if (end === ',') continue;
    if (row.some((cell) => cell !== '')) rows.push(row);
    row = [];
  }
  return rows;
}
