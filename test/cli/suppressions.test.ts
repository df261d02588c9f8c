// `offhook suppressions` through a gateway's API, with a real database.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  addSuppression,
  checkSuppressions,
  importSuppressions,
  listSuppressions,
  removeSuppression,
} from '../../src/cli/rules/suppressions-commands.ts';
import { createSuppressions } from '../../src/store/rules/suppressions.ts';
import { forCliSuite } from './rig.ts';

describe('offhook suppressions', () => {
  const { rig, printed, notes, context, folder } = forCliSuite(async ({ database }) => {
    const suppressions = createSuppressions(database);
    return {
      suppressions,
      suppressing: {
        suppress: async (app, address, suppression) => {
          await suppressions.put(app, new Map([[address, suppression]]));
          return [];
        },
        store: (app, given) => suppressions.put(app, given),
        cancelSuppressed: async () => [],
      },
    };
  });
  const optOut = { reason: 'opt-out', source: 'letter' };

  async function fileWith(content: string): Promise<string> {
    const path = join(folder(), 'numbers');
    await writeFile(path, content);
    return path;
  }

  /** The suppressed numbers, as `list` prints them. */
  async function listed(): Promise<readonly string[]> {
    printed.length = 0;
    await listSuppressions(context(), {});
    return printed.splice(0);
  }

  test('add, check, list and remove a number', async () => {
    const until = '2999-01-01T00:00:00.000Z';
    await addSuppression(context(), '+12025550110', { ...optOut, until });
    const line = `+12025550110  opt-out  until ${until}  letter  ${rig.acme.appId}`;
    expect(printed).toEqual([line]);
    expect(await listed()).toEqual([line]);

    await checkSuppressions(context(), ['+12025550110', '+1-202-555-0111'], {});
    await removeSuppression(context(), 'tel:+1-202-555-0110', {});
    expect(printed.splice(0)).toEqual([
      `+12025550110  suppressed: opt-out  until ${until}`,
      '+12025550111  not suppressed',
      'removed +12025550110',
    ]);

    expect(await listed()).toEqual([]);
    expect(notes).toEqual(['No suppressed numbers.']);
  });

  test('manage a sip: URI', async () => {
    await addSuppression(context(), 'sip:bob@pbx.example:5070', optOut);
    expect(await listed()).toEqual([`sip:bob@pbx.example  opt-out  letter  ${rig.acme.appId}`]);
    await removeSuppression(context(), 'sip:bob@pbx.example', {});
    expect(await listed()).toEqual([]);
  });

  test('list more numbers than a page has, as text and as JSON', async () => {
    const numbers = Array.from({ length: 450 }, (_, index) => `+1202555${1_000 + index}`);
    await importSuppressions(
      context(),
      await fileWith(
        `number,reason,source\n${numbers.map((number) => `${number},other,x\n`).join('')}`,
      ),
      {},
    );
    expect(printed).toEqual(['accepted 450 (replaced 0), wrong 0']);

    expect((await listed()).map((line) => line.split(' ')[0])).toEqual(numbers);
    await listSuppressions(context(), { json: true });
    expect(printed).toHaveLength(450);
    expect(JSON.parse(printed[449] ?? '')).toMatchObject({ number: numbers[449], reason: 'other' });
  });

  test.each([
    ['CSV', '\uFEFFnumber,reason,source,until\r\n+12025550110,opt-out,old list,\r\n'],
    ['NDJSON', '\n  {"number":"+12025550110","reason":"opt-out","source":"old list"}\n'],
    ['NDJSON', '\uFEFF{"number":"+12025550110","reason":"opt-out","source":"old list"}'],
  ])('import recognises %s', async (_format, content) => {
    await importSuppressions(context(), await fileWith(content), {});
    await importSuppressions(context(), await fileWith(content), { json: true });

    expect(printed.splice(0)).toEqual([
      'accepted 1 (replaced 0), wrong 0',
      '{"accepted":1,"replaced":1,"wrongTotal":0,"wrong":[]}',
    ]);
    expect(await listed()).toEqual([`+12025550110  opt-out  old list  ${rig.acme.appId}`]);
  });

  test('import names wrong lines, stores the others, and fails', async () => {
    const lines = ['number,reason,source', '+123,other,x', '+12025550110,other,x', '+1,spite,x'];
    const imported = importSuppressions(context(), await fileWith(lines.join('\n')), {});

    await expect(imported).rejects.toThrow('2 of the lines are wrong and were not stored.');
    expect(notes).toEqual([
      expect.stringMatching(/^line 2: number: /),
      expect.stringMatching(/^line 4: reason: /),
    ]);
    expect(printed.splice(0)).toEqual(['accepted 1 (replaced 0), wrong 2']);
    expect(await listed()).toHaveLength(1);
  });

  test('import says how many wrong lines it does not show', async () => {
    const lines = ['number,reason,source', ...Array.from({ length: 1_200 }, () => 'x,other,x')];
    const imported = importSuppressions(context(), await fileWith(lines.join('\n')), {});

    await expect(imported).rejects.toThrow('1200 of the lines');
    await expect(imported).rejects.toThrow('The first 1000 are listed.');
    expect(notes).toHaveLength(1_000);
  });

  test('import sends a file that is larger than any other body', async () => {
    const line = `{"number":"+12025550110","reason":"opt-out","source":"${'x'.repeat(60)}"}\n`;

    await importSuppressions(context(), await fileWith(line.repeat(12_000)), {});

    expect(printed).toEqual(['accepted 12000 (replaced 11999), wrong 0']);
  });

  test('say what is wrong with a number, a file or a header', async () => {
    const longWithoutHeader = '+12025550110,opt-out,list\n'.repeat(100_000);
    const importing = async (content: string) =>
      await importSuppressions(context(), await fileWith(content), {});

    await expect(addSuppression(context(), '+123', optOut)).rejects.toThrow(
      /400: .*\n {2}number: /,
    );
    await expect(removeSuppression(context(), '+12025550110', {})).rejects.toThrow(
      '404: This number is not suppressed.',
    );
    await expect(importSuppressions(context(), join(folder(), 'none'), {})).rejects.toThrow(
      'none cannot be read',
    );
    await expect(importing('+12025550110,opt-out,list\n')).rejects.toThrow(
      'must begin with the header number,reason,source,until',
    );
    await expect(importing(longWithoutHeader)).rejects.toThrow('must begin with the header');
  });
});
