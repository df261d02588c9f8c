// `offhook records`: exports through a gateway's API, and checks of exported files.

import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { ExportCheck } from '../../src/cli/rules/export-check.ts';
import { exportRecords, verifyRecords } from '../../src/cli/rules/records-commands.ts';
import { createCallRecords } from '../../src/store/rules/call-records.ts';

const rows = '{"callId":"call-1"}\n{"callId":"call-2"}\n';
const sha256 = createHash('sha256').update(rows).digest('hex');
const trailer = `{"trailer":true,"records":2,"sha256":"${sha256}"}\n`;

function checkOf(text: string, partBytes = text.length) {
  const check = new ExportCheck();
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += partBytes)
    check.add(bytes.subarray(at, at + partBytes));
  return check.finish();
}

import { forCliSuite } from './rig.ts';

describe('an exported file', () => {
  test.each([1, 2, 7, 19, 20, 21, 1_000])('is whole, read in parts of %i bytes', (partBytes) => {
    expect(checkOf(rows + trailer, partBytes)).toEqual({ ok: true, records: 2, sha256 });
  });

  test('is whole as CSV', () => {
    const text = 'callId\r\ncall-1\r\n';
    const hash = createHash('sha256').update(text).digest('hex');

    expect(checkOf(`${text}# records=1 sha256=${hash}\r\n`)).toMatchObject({
      ok: true,
      records: 1,
    });
  });

  test.each([
    ['without its last line', rows, /incomplete/],
    ['cut in its last line', `${rows}${trailer}`.slice(0, -1), /incomplete/],
    ['with a line after the last one', `${rows}${trailer}{}\n`, /incomplete/],
    ['that is empty', '', /incomplete/],
    ['with a line longer than any record', 'x'.repeat(1_100_000), /incomplete/],
    ['with a changed record', rows.replace('call-2', 'call-3') + trailer, /changed/],
    ['without a record', rows.slice(20) + trailer, /changed/],
  ])('%s is found out', (_which, text, problem) => {
    expect(checkOf(text)).toMatchObject({ ok: false, problem: expect.stringMatching(problem) });
  });
});

describe('offhook records', () => {
  const { rig, printed, notes, context, folder } = forCliSuite(async ({ database }) => ({
    records: createCallRecords(database),
  }));

  async function insertRecords(count: number): Promise<void> {
    await rig.database.pool.query(
      `insert into call_records (account_id, accepted_at, call_id, app_id, bot_id, caller, ended_at, outcome)
       select 'acme', timestamptz '2026-11-20T09:00:00Z' + n * interval '1 s', 'call-' || n, 'app-1', 'st-1', '1', now(), 'busy'
       from generate_series(1, $1::integer) n`,
      [count],
    );
  }

  function memory(): { readonly output: Writable; readonly text: () => string } {
    const parts: Buffer[] = [];
    const output = new Writable({
      write: (part: Buffer, _encoding, done) => {
        parts.push(part);
        // A slow reader: the export waits for it.
        setImmediate(done);
      },
    });
    return { output, text: () => Buffer.concat(parts).toString() };
  }

  test.each(['ndjson', 'csv'])('exports a period as %s, which can be verified', async (format) => {
    await insertRecords(1_200);
    const { output, text } = memory();
    const period = { from: '2026-11-20T09:00:11Z', to: '2026-11-20T09:19:00Z' };

    await exportRecords(context(), { ...period, format }, output);
    const path = join(folder(), `export.${format}`);
    await writeFile(path, text());
    await verifyRecords(context(), path);

    expect(notes).toEqual([expect.stringMatching(/^1129 records, sha256 [0-9a-f]{64}$/)]);
    expect(printed).toEqual([`${path} is whole: ${notes[0]}`]);
  });

  test('says what is wrong with a file, and with a request', async () => {
    const path = join(folder(), 'cut.ndjson');
    await writeFile(path, rows);
    const { output, text } = memory();
    const wrong = { from: 'yesterday', format: 'csv' };

    await expect(verifyRecords(context(), path)).rejects.toThrow('is incomplete');
    await expect(verifyRecords(context(), join(folder(), 'none'))).rejects.toThrow(
      'cannot be read',
    );
    await expect(exportRecords(context(), wrong, output)).rejects.toThrow(
      /400: .*\n {2}from: must/,
    );
    expect(text()).toBe('');
  });
});
