// The page's files mean the same without their comments.

import { readdir, readFile } from 'node:fs/promises';
import { transform } from 'esbuild';
import { expect, test } from 'vitest';
import { withoutComments } from '../../src/console/page-text.ts';

const folder = new URL('../../src/console/page/', import.meta.url);

test('every file of the page is the same without comments, on the same lines', async () => {
  const names = (await readdir(folder)).filter((name) => /\.(js|css)$/.test(name));
  for (const name of names) {
    const text = await readFile(new URL(name, folder), 'utf8');
    const served = withoutComments(text);
    const loader = name.endsWith('.js') ? 'js' : 'css';
    const [given, shorter] = await Promise.all(
      [text, served].map((one) => transform(one, { loader, minifyWhitespace: true })),
    );
    expect(shorter?.code, name).toBe(given?.code);
    expect(served.split('\n').length, name).toBe(text.split('\n').length);
    expect(served, name).not.toMatch(/^\s*(\/\/|\/\*)/m);
  }
  expect(names.length).toBeGreaterThan(20);
});
