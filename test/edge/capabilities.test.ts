// The page that compares the two SIP engines is true: each row of each table has a case, the case
// exists, and the trials of the first table find what the table says about the engine under test.

import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { RawApplication, RawPeer } from '../embedded/drachtio/raw-ends.ts';
import { drachtioBinary, startEngine } from '../support/sip-engine.ts';
import { embeddedTrials, type Trial, trials, trialsWithoutLogin } from './capability-trials.ts';
import { onlyEmbedded } from './engines.ts';

const page = readFileSync(
  new URL('../../src/embedded/drachtio/DIFFERENCES.md', import.meta.url),
  'utf8',
);
const tests = fileURLToPath(new URL('..', import.meta.url));

type Row = { readonly cells: readonly string[]; readonly heldBy: string };

/** A pipe that belongs to a cell's text has a backslash before it. */
function rowsOf(text: string): Row[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.endsWith('| held by |'))
    .map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim()))
    .map((cells) => ({ cells: cells.slice(1, -2), heldBy: cells.at(-2) ?? '' }));
}

const [, capabilities = ''] = /^## Capabilities\n([\s\S]*?)^## /m.exec(page) ?? [];
const table = rowsOf(capabilities);
const allRows = rowsOf(page);
const allTrials: Readonly<Record<string, Trial>> = { ...trials, ...trialsWithoutLogin };

const sources = new Map(
  readdirSync(tests, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => [basename(name), readFileSync(tests + name, 'utf8')]),
);
const recordings = readdirSync(`${tests}fixtures/drachtio`);

/** Whether the case in a row's last column exists. */
function isHeld({ cells: [name = ''], heldBy }: Row): boolean {
  if (heldBy === 'trial') return allTrials[name] !== undefined;
  if (heldBy === 'trial of the embedded engine alone') return embeddedTrials[name] !== undefined;
  const [, recording] = /^recording (\w+)$/.exec(heldBy) ?? [];
  if (recording !== undefined) return recordings.includes(`${recording}.control.txt`);
  const [, file = '', title = ''] = /^([\w-]+\.ts|[\w-]+\.test\.ts): (.+)$/.exec(heldBy) ?? [];
  return title !== '' && sources.get(file)?.includes(title) === true;
}

describe('the page that compares the engines', () => {
  test('has a case for each row', () => {
    expect(table.length).toBeGreaterThan(20);
    expect(allRows.length).toBeGreaterThan(table.length + 30);
    expect(allRows.filter((row) => !isHeld(row))).toEqual([]);
  });

  test('has a row for each trial', () => {
    const tried = table.filter(({ heldBy }) => heldBy.startsWith('trial'));

    expect(new Set(tried.map(({ cells: [name] }) => name))).toEqual(
      new Set([...Object.keys(allTrials), ...Object.keys(embeddedTrials)]),
    );
  });

  test('notices a row without a case', () => {
    const held = { cells: ['SIP over UDP'], heldBy: 'trial' };

    expect(isHeld(held)).toBe(true);
    expect(isHeld({ ...held, cells: ['teleportation'] })).toBe(false);
    for (const heldBy of ['', 'recording nothing', 'nothing.test.ts: x', 'tls.test.ts: no title']) {
      expect(isHeld({ ...held, heldBy })).toBe(false);
    }
  });
});

/** `if configured` is no for a drachtio-server with the settings of these tests. */
function expected(name: string): boolean {
  const cells = table.find((row) => row.cells[0] === name)?.cells ?? [];
  const cell = cells[drachtioBinary === undefined ? 2 : 1] ?? '';
  expect(cell).toMatch(/^(?:yes|no|if configured)$/);
  return cell === 'yes';
}

describe('the engine does what its column says', () => {
  test.for(Object.entries(allTrials))('%s', async ([name, trial]) => {
    const engine = await startEngine();
    const application = await (name in trialsWithoutLogin
      ? RawApplication.connectOnly(engine)
      : RawApplication.connect(engine));
    const peer = await RawPeer.open(engine);
    try {
      expect(await trial({ application, peer })).toBe(expected(name));
    } finally {
      application.close();
      await peer.close();
      await engine.close();
    }
  });

  onlyEmbedded.for(Object.entries(embeddedTrials))(
    '%s; drachtio needs more servers for this',
    ([name, trial]) => expect(trial()).toBe(expected(name)),
  );
});
