// Builds a single-file page that works offline. The file contains the console's modules and
// libraries as data: URLs in an import map, plus the styles and the data that a script displays.

import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { isLibrary, readLibrary } from './assets.ts';

type StandalonePage = {
  readonly title: string;
  /** Renders the data from `#data` into `#app`. It may import the console page's modules. */
  readonly script: URL;
  readonly styles: readonly URL[];
  readonly data: unknown;
};

export async function standalonePage(page: StandalonePage): Promise<string> {
  const modules = new Map<string, string>();
  const entry = await addModule(modules, page.script);
  const styles = await Promise.all(page.styles.map((url) => readFile(url, 'utf8')));
  const imports = Object.fromEntries(
    [...modules].map(([name, text]) => [
      name,
      `data:text/javascript;base64,${Buffer.from(text).toString('base64')}`,
    ]),
  );
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>${page.title.replaceAll(/[&<]/g, (letter) => `&#${letter.charCodeAt(0)};`)}</title>`,
    `<style>${styles.join('\n')}</style>`,
    `<script type="importmap">${JSON.stringify({ imports })}</script></head><body>`,
    '<div id="app"></div>',
    // Escape `<`, because text in the data could otherwise close the element.
    `<script type="application/json" id="data">${JSON.stringify(page.data).replaceAll('<', '\\u003c')}</script>`,
    `<script type="module">import '${entry}';</script></body></html>\n`,
  ].join('\n');
}

/**
 * Adds a module with all its imports, and returns its name. We replace relative imports with names
 * from the import map, because they can't be resolved against a data: URL.
 */
async function addModule(modules: Map<string, string>, file: URL): Promise<string> {
  const name = `page/${basename(file.pathname)}`;
  if (modules.has(name)) return name;
  let text = await readFile(file, 'utf8');
  modules.set(name, text);
  for (const [, imported = ''] of text.matchAll(/^import .* from '([^']+)';$/gm)) {
    if (isLibrary(imported)) modules.set(imported, (await readLibrary(imported)).toString('utf8'));
    else {
      const other = await addModule(modules, new URL(imported, file));
      text = text.replaceAll(`'${imported}'`, `'${other}'`);
    }
  }
  modules.set(name, text);
  return name;
}
