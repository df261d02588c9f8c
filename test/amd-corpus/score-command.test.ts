// `npm run amd:score`: it reads a manifest and prints figures, compares two versions, and draws the
// truth beside what the detector heard.

import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeWav } from '../support/wav.ts';
import { runScore } from './score/run-score.ts';

const voices = fileURLToPath(new URL('../../src/embedded/sandbox/audio/', import.meta.url));

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'offhook-score-'));
  await mkdir(join(folder, 'deep', 'er'), { recursive: true });
  await copyFile(join(voices, 'person-name.wav'), join(folder, 'person.wav'));
  await copyFile(join(voices, 'announcement.wav'), join(folder, 'deep', 'machine.wav'));
  const silence = makeWav({ samples: [new Int16Array(8_000)] });
  await writeFile(join(folder, 'deep', 'er', 'quiet.WAV'), silence);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function score(manifest: string, ...options: readonly string[]): Promise<readonly string[]> {
  const path = join(folder, 'manifest.csv');
  await writeFile(path, manifest);
  const lines: string[] = [];
  await runScore([path, ...options], (line) => void lines.push(line));
  return lines;
}

const truth = `\uFEFF${[
  'file,label,greeting_start_ms,greeting_end_ms,beep_start_ms,beep_end_ms,transcript,expect',
  'person.wav,human,100,600,,,"""Amelia"", she says",human',
  'deep/machine.wav,machine,0,4500,6000,6400,,"machine;tone"',
  'deep/er/quiet.WAV,human,0,400,,,,human',
].join('\r\n')}\r\n`;

test('prints the figures and the mistakes, and stores them as JSON', async () => {
  const summary = join(folder, 'summary.json');
  const lines = await score(truth, '--summary', summary);

  expect(lines[0]).toMatch(/^truth +human +machine +no-speech +timeout +right$/);
  expect(lines[1]).toMatch(/^human +1 +0 +1 +0 +50\.0 % +\(1\/2\)$/);
  expect(lines[2]).toMatch(/^machine +0 +1 +0 +0 +100\.0 % +\(1\/1\)$/);
  expect(lines).toContainEqual(expect.stringMatching(/^beeps found +0\.0 % +\(0\/1\) +0–79 %$/));
  expect(lines.slice(-3)).toEqual([
    'Wrong (2):',
    `  ${join(folder, 'deep/machine.wav')}   beep missed`,
    `  ${join(folder, 'deep/er/quiet.WAV')}  human heard as no-speech`,
  ]);
  expect(JSON.parse(await readFile(summary, 'utf8'))).toMatchObject({
    overall: { count: 2, of: 3 },
    beepsFound: { count: 0, of: 1 },
  });
});

test('compares two versions: figures by class, and the recordings that became right or wrong', async () => {
  const labelled = (other: string) =>
    `file,label,class\nperson.wav,human,hello\ndeep/machine.wav,${other},greeting\n`;
  const before = join(folder, 'before.json');
  // The same recordings with another truth, as if the detector had changed.
  await score(labelled('human'), '--summary', before);
  const lines = await score(labelled('machine'), '--compare', before);

  const text = lines.join('\n');
  expect(lines[0]).toMatch(/^ +before +now +change$/);
  expect(text).toMatch(/right verdicts +50\.0 % \(9–91 %\) +100\.0 % \(34–100 %\) +\+50\.0/);
  expect(text).toMatch(/human: hello +100\.0 % \(21–100 %\) +100\.0 % \(21–100 %\) +\+0\.0/);
  expect(text).toMatch(/Right now \(1\):\n.*machine\.wav {2}was: human heard as machine/);
  expect(text).toContain('Wrong now (0):');
});

test('gives each kind of recording its own figures without classes', async () => {
  const lines = await score('file,label,kind\nperson.wav,human,real\ndeep/machine.wav,machine,x\n');

  expect(lines).toContainEqual(
    expect.stringMatching(/^human: real +100\.0 % +\(1\/1\) +21–100 % +1 of 1$/),
  );
  expect(lines).toContainEqual(expect.stringMatching(/^machine: x +100\.0 % +\(1\/1\)/));
});

test('takes the settings of a request', async () => {
  const one = 'file,label\nperson.wav,machine\n';

  expect((await score(one)).at(-1)).toContain('machine heard as human');
  expect((await score(one, '--threshold-word-count', '1')).at(-1)).toBe('Nothing wrong.');
});

test('draws the truth beside what was heard, with the mistakes', async () => {
  const plot = join(folder, 'page.html');
  await score(truth, '--plot', plot);
  const page = await readFile(plot, 'utf8');
  const data = /<script type="application\/json" id="data">(.*)<\/script>/.exec(page)?.[1] ?? '';

  expect(JSON.parse(data)).toMatchObject([
    {
      ...{ verdict: 'human', group: 'human', faults: [] },
      lanes: [
        ...[{}, {}, {}],
        { kind: 'truth', items: [{ atMs: 100, untilMs: 600, text: '“"Amelia", she says”' }] },
      ],
    },
    {
      ...{ verdict: 'machine', group: 'machine', faults: ['beep missed'] },
      lanes: [...[{}, {}, {}], { items: [{}, { atMs: 6_000, untilMs: 6_400, tone: 'beep' }] }],
    },
    { verdict: 'no-speech', group: 'human', faults: ['human heard as no-speech'] },
  ]);
});

test.each([
  [
    'a manifest without a header',
    'person.wav,human\n',
    'needs a header with the columns file and label',
  ],
  [
    'an unknown label',
    'file,label\na.wav,robot\n',
    'row 2: label "robot" is not one of human, machine',
  ],
  ['a row without a file', 'file,label\n,human\n', 'row 2: no file'],
  ['a file that does not exist', 'file,label\na.wav,human\n', 'no such file'],
])('rejects %s', async (_name, text, message) => {
  await expect(score(text)).rejects.toThrow(message);
});
