// Provides the files that the browser loads: the page's own modules, which we serve as they are in
// the source, but without comments, and the libraries that these modules import from node_modules.
// We read and compress each file once. There is no bundling, because an import map tells the
// browser where the modules are. A table of how numbers are written is the only file that we
// generate.

import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { extname } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';
import { internationalFormats } from '../lib/phone-numbers.ts';
import { withoutComments } from './page-text.ts';

export type Asset = {
  readonly type: string;
  readonly body: Buffer;
  readonly gzip: Buffer;
  readonly brotli: Buffer;
};

export type Assets = {
  readonly page: Asset;
  readonly contentSecurityPolicy: string;
  /** The files, keyed by their path below `/console/`: `assets/<version>/…`. */
  readonly files: ReadonlyMap<string, Asset>;
};

const pageFolder = new URL('../../src/console/page/', import.meta.url);

/** Maps the name under which the page imports a library to the npm module that provides it. */
const libraries = {
  preact: 'preact',
  'preact/hooks': 'preact/hooks',
  htm: 'htm',
  '@preact/signals': '@preact/signals',
  '@preact/signals-core': '@preact/signals-core',
  uplot: 'uplot',
} as const;

/** The module that says how numbers are written, in a quarter of libphonenumber's size. */
const numberFormats = 'number-formats';

/**
 * Libraries whose ES module is twice as long as this script, which declares the variable `name`.
 * We add an export of that variable. The page loads them when it needs them.
 */
const scripts: Readonly<Record<string, { readonly path: string; readonly name: string }>> = {
  uplot: { path: 'uplot/dist/uPlot.iife.min.js', name: 'uPlot' },
};

const styles = { 'library/uplot.css': 'uplot/dist/uPlot.min.css' } as const;

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.html': 'text/html; charset=utf-8',
};

export async function loadAssets(): Promise<Assets> {
  const own = await ownFiles();
  const vendored = await Promise.all(
    Object.values(libraries).map(
      async (name) => [libraryPath(name), await readLibrary(name)] as const,
    ),
  );
  const vendoredStyles = await Promise.all(
    Object.entries(styles).map(async ([name, path]) => [name, await readPackaged(path)] as const),
  );
  const formats = `export const formats = ${JSON.stringify(internationalFormats())};\n`;
  const texts = new Map([
    ...own,
    ...vendored,
    ...vendoredStyles,
    [libraryPath(numberFormats), Buffer.from(formats)] as const,
  ]);
  const hash = createHash('sha256');
  for (const [name, text] of [...texts].sort(([a], [b]) => (a < b ? -1 : 1)))
    hash.update(name).update(text);
  // The path contains a hash, so after a change all files have new addresses, even for relative
  // imports. Browsers can therefore cache the files forever.
  const base = `assets/${hash.digest('base64url').slice(0, 12)}/`;
  const html = texts.get('index.html');
  if (html === undefined) throw new Error('src/console/page contains no index.html');
  texts.delete('index.html');
  const map = importMap(base);
  const files = await Promise.all(
    [...texts].map(async ([name, text]) => [base + name, await toAsset(name, text)] as const),
  );
  return {
    page: await toAsset(
      'index.html',
      buildPage(html.toString('utf8'), base, map, [...texts.keys()]),
    ),
    contentSecurityPolicy: policyFor(map),
    files: new Map(files),
  };
}

async function ownFiles(): Promise<readonly (readonly [string, Buffer])[]> {
  const names = await readdir(pageFolder, { recursive: true });
  const files = names.filter((name) => types[extname(name)] !== undefined);
  return await Promise.all(files.map(async (name) => [name, await readOwn(name)] as const));
}

async function readOwn(name: string): Promise<Buffer> {
  const text = await readFile(new URL(name, pageFolder), 'utf8');
  return Buffer.from(/\.(js|css)$/.test(name) ? withoutComments(text) : text);
}

/** The module that the browser runs as soon as it has it. */
const first = 'early.js';

/** Not needed before the page's words are there. */
const late: ReadonlySet<string> = new Set(Object.keys(scripts).map(libraryPath));

function libraryPath(library: string): string {
  return `library/${library.replaceAll(/[@/]/g, '-')}.js`;
}

export function isLibrary(name: string): boolean {
  return name in libraries;
}

async function readPackaged(path: string): Promise<Buffer> {
  return await readFile(createRequire(import.meta.url).resolve(path));
}

export async function readLibrary(name: string): Promise<Buffer> {
  const script = scripts[name];
  if (script !== undefined) {
    const text = await readPackaged(script.path);
    return Buffer.concat([text, Buffer.from(`\nexport default ${script.name};\n`)]);
  }
  const [scopeOrName = '', second = ''] = name.split('/');
  const packageName = name.startsWith('@') ? `${scopeOrName}/${second}` : scopeOrName;
  const require = createRequire(import.meta.url);
  // Prefer the package's ES module to the file that `require` would load.
  const path = new URL(import.meta.resolve(name));
  const text = await readFile(path, 'utf8').catch(() =>
    readFile(require.resolve(packageName), 'utf8'),
  );
  // Drop the reference to the source map, since we don't serve it.
  return Buffer.from(text.replace(/\n?\/\/# sourceMappingURL=.*\s*$/, '\n'));
}

function importMap(base: string): string {
  const entries = Object.keys(libraries).map((name) => [
    name,
    `./console/${base}${libraryPath(name)}`,
  ]);
  const imports: unknown = Object.fromEntries(entries);
  return JSON.stringify({ imports });
}

/**
 * Returns the page, with preloads for all modules. Otherwise the browser couldn't request a module
 * until it had loaded the module that imports it. The first module runs before all of them have
 * come, because the gateway needs time for what it asks.
 */
function buildPage(html: string, base: string, map: string, names: readonly string[]): string {
  const preloads = names
    .filter((name) => name.endsWith('.js') && ![first, 'app.js'].includes(name) && !late.has(name))
    .map((name) => `<link rel="modulepreload" href="console/${base}${name}">`)
    .join('\n');
  return html
    .replace(
      '<!-- modules -->',
      () =>
        `<script type="importmap">${map}</script>\n<script type="module" async src="{{base}}${first}"></script>`,
    )
    .replace('<!-- preloads -->', () => preloads)
    .replaceAll('{{base}}', `console/${base}`);
}

/**
 * Allows only the page's own scripts and styles, and requests to its own origin, which also serves
 * the recordings. With Trusted
 * Types, text can't become markup.
 */
function policyFor(map: string): string {
  const hash = createHash('sha256').update(map).digest('base64');
  return [
    "default-src 'none'",
    `script-src 'self' 'sha256-${hash}'`,
    "style-src 'self'",
    "img-src 'self'",
    "media-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
}

async function toAsset(name: string, content: Buffer | string): Promise<Asset> {
  const body = Buffer.from(content);
  return {
    type: types[extname(name)] ?? 'application/octet-stream',
    body,
    gzip: await promisify(gzip)(body, { level: 9 }),
    brotli: await promisify(brotliCompress)(body),
  };
}
