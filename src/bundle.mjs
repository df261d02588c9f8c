// After the compiler: each program and each thread becomes a file of its own and a share of what several have in common, packages
// included. A start that reads a dozen files instead of 1,300 takes a sixth less CPU, and a command half. What the compiler made of
// every other module stays beside it.

import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const src = dirname(fileURLToPath(import.meta.url));
const dist = join(src, '..', 'dist');
const bundled = join(dist, 'bundle');

/** Not wanted at every start, with files of their own beside them, or looked into by a bench that counts what is said to a server. */
const packagesAsInstalled = [
  '@echogarden/*',
  '@electric-sql/*',
  '@fastify/swagger',
  '@fastify/swagger-ui',
  '@opentelemetry/*',
  'drachtio-srf',
  'pg',
  'pino',
  'pino-pretty',
];

/** What CommonJS packages expect to be there. */
const commonJs = [
  "import { createRequire as requireFrom } from 'node:module';",
  'const require = requireFrom(import.meta.url);',
  'const __dirname = import.meta.dirname, __filename = import.meta.filename;',
].join(' ');

/** Where processes and threads begin. */
const programs = withNamesOfTheirOwn([
  'main.ts',
  'cli.ts',
  'demo.ts',
  ...filesEndingIn(/-(worker|creation-process)\.ts$/),
]);

/** A module's address is that of what the compiler made of it, whichever file its text has come to. */
const ownAddresses = {
  name: 'own addresses',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const address = JSON.stringify(`../${javaScript(relative(src, path))}`);
      const contents = readFileSync(path, 'utf8').replaceAll(
        'import.meta.url',
        `new URL(${address}, import.meta.url).href`,
      );
      return { contents, loader: 'ts' };
    });
  },
};

rmSync(bundled, { recursive: true, force: true });
await build({
  entryPoints: Object.fromEntries(programs.map((path) => [nameOf(path), join(src, path)])),
  // One folder, so that addresses are counted from the same place everywhere.
  ...{ outdir: bundled, chunkNames: 'shared-[hash]' },
  ...{ bundle: true, splitting: true, format: 'esm', platform: 'node', target: 'node20' },
  ...{ sourcemap: true, sourcesContent: false, logLevel: 'warning' },
  external: packagesAsInstalled,
  banner: { js: commonJs },
  plugins: [ownAddresses],
});
for (const path of programs) {
  const program = join(dist, javaScript(path));
  const [firstLine = ''] = readFileSync(join(src, path), 'utf8').split('\n');
  const address = relative(dirname(program), join(bundled, `${nameOf(path)}.js`));
  writeFileSync(
    program,
    `${firstLine.startsWith('#!') ? `${firstLine}\n` : ''}import '${address.startsWith('.') ? '' : './'}${address}';\n`,
  );
}

function filesEndingIn(ending) {
  return readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((path) =>
    ending.test(path),
  );
}

/** They come to one folder. */
function withNamesOfTheirOwn(paths) {
  if (new Set(paths.map(nameOf)).size < paths.length)
    throw new Error(`two programs have one name: ${paths.join(', ')}`);
  return paths;
}

function nameOf(path) {
  return basename(path, '.ts');
}

function javaScript(path) {
  return path.replace(/\.ts$/, '.js');
}
