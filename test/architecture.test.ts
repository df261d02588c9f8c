// The arrows of the architecture: who may import whom. A new arrow is a decision, made here.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const src = join(dirname(fileURLToPath(import.meta.url)), '..', 'src');

/** Area → the other areas that it may import. Files directly under src (main, app, cli, demo, media-worker) compose everything. */
const arrows: Readonly<Record<string, readonly string[]>> = {
  lib: [],
  calls: ['lib'],
  amd: ['calls'],
  media: ['calls', 'lib'],
  sip: ['calls', 'lib'],
  events: ['calls', 'lib'],
  store: ['calls', 'lib'],
  dialout: ['calls', 'lib'],
  notifier: ['calls', 'events', 'lib', 'store'],
  interactions: ['calls', 'events', 'lib', 'store'],
  api: ['calls', 'interactions', 'lib', 'store', 'notifier'],
  // Of the API: the building blocks of routes, which are the same for every area.
  companion: ['api', 'calls', 'events', 'lib', 'store'],
  embedded: ['lib', 'media', 'sip'],
  // What a gateway needs, asked before it starts and by `offhook doctor`.
  checks: ['embedded', 'events', 'lib', 'notifier', 'sip'],
  // What a person in front of it sees.
  terminal: ['calls', 'lib', 'notifier'],
  cli: [
    'api',
    'calls',
    'checks',
    'embedded',
    'events',
    'interactions',
    'lib',
    'notifier',
    'store',
    'amd',
    'media',
  ],
};

const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.ts'),
);

function importsOf(file: string): string[] {
  const text = readFileSync(join(src, file), 'utf8');
  return [...text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map((match) => match[1] ?? '');
}

function areaOf(path: string): string {
  const [first = '', second] = path.split('/');
  return second === undefined ? '' : first;
}

describe('the import arrows', () => {
  test.each(files.filter((file) => areaOf(file) !== ''))('%s', (file) => {
    const area = areaOf(file);
    const targets = importsOf(file)
      .filter((target) => target.startsWith('.'))
      .map((target) => relative(src, join(src, dirname(file), target)));
    const foreign = targets.map(areaOf).filter((target) => target !== area);
    const allowed = [...(arrows[area] ?? [])];
    // config.ts has types for everybody; what reads the environment is checked below.
    const strangers = foreign.filter(
      (target, index) => !allowed.includes(target) && targets[index] !== 'config.ts',
    );

    expect(arrows, `${area} is not in the table`).toHaveProperty(area);
    expect(strangers).toEqual([]);
  });
});

describe('what must not spread', () => {
  const usersOf = (packageName: RegExp) =>
    files.filter((file) => importsOf(file).some((target) => packageName.test(target)));
  const outside = (users: readonly string[], ...homes: readonly RegExp[]) =>
    users.filter((file) => !homes.some((home) => home.test(file)));

  test('drachtio-srf stays in sip and in the embedded parts', () => {
    expect(outside(usersOf(/^drachtio-srf/), /^sip\//, /^embedded\//)).toEqual([]);
  });

  test('fastify stays in api', () => {
    expect(outside(usersOf(/^@?fastify/), /^api\//, /^companion\//)).toEqual([]);
  });

  test('NATS stays in events', () => {
    // The context bucket is the interactions' own.
    expect(
      outside(
        usersOf(/^@nats-io/),
        /^events\//,
        /^embedded\/nats\//,
        /^companion\/result-files/,
        /^interactions\/context-store/,
      ),
    ).toEqual([]);
  });

  test('only config.ts reads the environment', () => {
    const readers = files.filter((file) =>
      /process\.env\b/.test(readFileSync(join(src, file), 'utf8')),
    );
    expect(outside(readers, /^config\.ts$/)).toEqual([]);
  });
});
