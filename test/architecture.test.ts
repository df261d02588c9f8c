// The architecture: which folders in src may import which, and which folders may query each table.
// If you really need a new dependency between folders, add it here.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { hasSql } from './support/sql-texts.ts';

const src = join(dirname(fileURLToPath(import.meta.url)), '..', 'src');

/** The files directly under src: processes, plus modules that every folder may import. */
const looseFiles = ['cli.ts', 'config.ts', 'demo.ts', 'main.ts', 'version.ts'];
/** Every folder may import the configuration's types and the version number. */
const importableByAll = ['config.ts', 'version.ts'];

/**
 * For each folder, the other folders that it may import, type imports included. `app` composes
 * everything, and only processes import it.
 */
const allowedImports: Readonly<Record<string, readonly string[]>> = {
  lib: [],
  calls: ['lib'],
  // The variables, which only src/config.ts reads.
  config: ['lib', 'store'],
  amd: ['calls', 'lib'],
  media: ['calls', 'lib'],
  // Media workers call streams through src/media/stream-port.ts.
  streams: ['calls', 'lib', 'media'],
  sounds: ['calls', 'lib', 'media', 'store'],
  // Writes and stores recordings. Media workers call it through src/media/recorder-port.ts.
  recording: ['calls', 'lib', 'media', 'store'],
  sip: ['calls', 'lib'],
  events: ['calls', 'lib'],
  // Decides by the calling rules of an account. Pure.
  rules: ['calls', 'lib'],
  store: ['calls', 'lib', 'rules'],
  dialout: ['calls', 'lib'],
  recovery: ['calls', 'dialout', 'lib'],
  notifier: ['calls', 'events', 'lib', 'store'],
  interactions: ['calls', 'events', 'lib', 'store'],
  // Streams stored events to the clients that follow them.
  live: ['calls', 'lib', 'store'],
  // Knows the state of the servers under the gateway, and puts it into words.
  servers: ['events', 'lib', 'store'],
  http: ['calls', 'lib', 'servers', 'store'],
  api: [
    'calls',
    'http',
    'interactions',
    'lib',
    'live',
    'notifier',
    'recording',
    'rules',
    'servers',
    'sounds',
    'store',
  ],
  // Keeps records of calls for people who investigate them.
  capture: ['calls', 'lib'],
  console: [
    'api',
    'calls',
    'capture',
    'http',
    'interactions',
    'lib',
    'notifier',
    'servers',
    'store',
  ],
  companion: ['api', 'calls', 'events', 'http', 'lib', 'store'],
  embedded: ['lib', 'media', 'sip'],
  tracing: ['calls', 'lib'],
  // Checks what a gateway needs, before it starts and in `offhook doctor`.
  checks: ['amd', 'embedded', 'events', 'lib', 'notifier', 'recording', 'sip', 'store'],
  // Prints what a person at the terminal sees.
  terminal: ['calls', 'lib', 'notifier'],
  cli: [
    'amd',
    'api',
    'calls',
    'checks',
    // The page of `offhook amd --plot` uses the console's drawing code.
    'console',
    'embedded',
    'events',
    'http',
    'interactions',
    'lib',
    'media',
    'notifier',
    'recording',
    'servers',
    'sounds',
    'store',
    // For the names by which bots know an app.
    'streams',
  ],
};

/** For each table, the folders that query it, apart from the schema. */
const tableUsers: Readonly<Record<string, readonly string[]>> = {
  app_usage: ['store'],
  apps: ['store'],
  bots: ['store'],
  call_legs: ['store'],
  call_records: ['store'],
  call_captures: ['capture', 'store'],
  campaigns: ['store'],
  campaign_totals: ['store'],
  console_links: ['console'],
  console_sessions: ['console'],
  call_events: ['interactions', 'live', 'notifier', 'store'],
  call_takes: ['store'],
  called_numbers: ['store'],
  call_totals: ['interactions', 'store'],
  caller_totals: ['interactions', 'store'],
  calls: ['capture', 'companion', 'interactions', 'live', 'notifier', 'store'],
  connections: ['companion'],
  conversations: ['companion', 'store'],
  data_rows: ['companion', 'store'],
  data_tables: ['store'],
  delivery_attempts: ['interactions', 'notifier', 'store'],
  idempotency_keys: ['store'],
  imported_records: ['companion'],
  message_counts: ['companion'],
  messages: ['companion', 'store'],
  nodes: ['notifier', 'store'],
  notification_endpoints: ['notifier', 'store'],
  notification_lanes: ['interactions', 'notifier', 'store'],
  notification_replays: ['interactions', 'notifier', 'store'],
  notifications: ['interactions', 'notifier', 'store'],
  recording_keys: ['store'],
  recording_notices: ['notifier', 'store'],
  recordings: ['store'],
  ruled_accounts: ['store'],
  rule_sets: ['store'],
  schema_migrations: ['store'],
  sounds: ['sounds'],
  suppressions: ['store'],
  test_runs: ['companion', 'store'],
  trunk_pacing: ['store'],
  trunk_slots: ['store'],
  webhook_secrets: ['store'],
};

const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter(
  (name) => name.endsWith('.ts') && !name.endsWith('.d.ts'),
);
const texts = new Map(files.map((file) => [file, readFileSync(join(src, file), 'utf8')]));

function importsOf(file: string): string[] {
  const text = texts.get(file) ?? '';
  return [...text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map((match) => match[1] ?? '');
}

/** Returns the files in src that a file imports, including type imports. */
function targetsOf(file: string): string[] {
  return importsOf(file)
    .filter((target) => target.startsWith('.'))
    .map((target) => relative(src, join(src, dirname(file), target)));
}

/** Returns the folder of a path, or an empty string for a file directly under src. */
function folderOf(path: string): string {
  const [first = '', second] = path.split('/');
  return second === undefined ? '' : first;
}

describe('the imports', () => {
  test('only processes and common modules are directly under src', () => {
    expect(files.filter((file) => folderOf(file) === '').sort()).toEqual(looseFiles);
  });

  test.each(files.filter((file) => !['', 'app'].includes(folderOf(file))))('%s', (file) => {
    const folder = folderOf(file);
    const foreign = targetsOf(file).filter(
      (target) => folderOf(target) !== folder && !importableByAll.includes(target),
    );

    expect(allowedImports, `${folder} is not in the table`).toHaveProperty(folder);
    expect(foreign.filter((target) => !allowedImports[folder]?.includes(folderOf(target)))).toEqual(
      [],
    );
  });

  test('only processes import `app`', () => {
    const importersOfApp = files.filter(
      (file) =>
        folderOf(file) !== 'app' && targetsOf(file).some((target) => folderOf(target) === 'app'),
    );
    expect(importersOfApp.filter((file) => !looseFiles.includes(file))).toEqual([]);
  });

  test('no file imports itself through other files, not even with type imports', () => {
    expect(cycles()).toEqual([]);
  });
});

/** Finds import cycles by walking the imports depth first while keeping the current path. */
function cycles(): readonly string[] {
  const found: string[] = [];
  const done = new Set<string>();
  const walk = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) {
      found.push([...path.slice(path.indexOf(file)), file].join(' → '));
      return;
    }
    if (done.has(file)) return;
    for (const target of targetsOf(file)) walk(target, [...path, file]);
    done.add(file);
  };
  for (const file of files) walk(file, []);
  return found;
}

describe('the tables', () => {
  const schema = files.filter((file) => file.startsWith('store/schema/'));
  const tables = [...schema, 'store/schema.ts'].flatMap((file) =>
    [...(texts.get(file) ?? '').matchAll(/create table (?:if not exists )?(\w+)/g)].map(
      (match) => match[1] ?? '',
    ),
  );

  test.each([...new Set(tables)])('only the listed folders have SQL that names %s', (table) => {
    const statement = new RegExp(`\\b(?:from|join|into|update)\\s+${table}\\b`);
    const users = files.filter(
      (file) => !schema.includes(file) && hasSql(texts.get(file) ?? '', statement),
    );

    expect([...new Set(users.map(folderOf))].sort()).toEqual(tableUsers[table] ?? []);
  });
});

describe('the boundaries of packages', () => {
  const usersOf = (packageName: RegExp) =>
    files.filter((file) => importsOf(file).some((target) => packageName.test(target)));
  const outside = (users: readonly string[], ...homes: readonly RegExp[]) =>
    users.filter((file) => !homes.some((home) => home.test(file)));

  test('only sip and the embedded parts import drachtio-srf', () => {
    expect(outside(usersOf(/^drachtio-srf/), /^sip\//, /^embedded\//)).toEqual([]);
  });

  test('only http, api, the companion and the console import fastify', () => {
    const homes = [/^http\//, /^api\//, /^companion\//, /^console\//];
    expect(outside(usersOf(/^@?fastify/), ...homes)).toEqual([]);
  });

  test('only events and a few files import NATS', () => {
    // The context bucket belongs to interactions.
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

  test('only tracing imports OpenTelemetry', () => {
    expect(outside(usersOf(/^@opentelemetry/), /^tracing\//)).toEqual([]);
  });

  test('only config.ts reads the environment', () => {
    const readers = files.filter((file) => /process\.env\b/.test(texts.get(file) ?? ''));
    expect(outside(readers, /^config\.ts$/)).toEqual([]);
  });
});
