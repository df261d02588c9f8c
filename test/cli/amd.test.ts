// `offhook amd`: recordings in, events out; with the truth beside them the figures; and the page.

import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runAmd } from '../../src/cli/amd/amd-command.ts';
import type { AmdOptions } from '../../src/cli/amd/amd-options.ts';
import { makeWav, sine } from '../support/wav.ts';
import { removeFolder, run, temporaryFolder } from './support.ts';

const voices = fileURLToPath(new URL('../../src/embedded/sandbox/audio/', import.meta.url));
const silence = new Int16Array(8_000);

let folder: string;
beforeAll(async () => {
  folder = await temporaryFolder();
  await mkdir(join(folder, 'deep', 'er'), { recursive: true });
  await copyFile(join(voices, 'person-name.wav'), join(folder, 'person.wav'));
  await copyFile(join(voices, 'announcement.wav'), join(folder, 'deep', 'machine.wav'));
  await writeFile(join(folder, 'deep', 'er', 'quiet.WAV'), makeWav({ samples: [silence] }));
  await writeFile(join(folder, 'notes.txt'), 'no recording');
});
afterAll(async () => {
  await removeFolder(folder);
});

async function amd(paths: readonly string[], options: Partial<AmdOptions> = {}) {
  const out: string[] = [];
  const err: string[] = [];
  let failure = '';
  try {
    await runAmd(
      {
        print: (line) => void out.push(line),
        note: (line) => void err.push(line),
        interrupted: new AbortController().signal,
      },
      paths,
      { channel: 'left', timer: [], ...options },
    );
  } catch (error) {
    failure = error instanceof Error ? error.message : String(error);
  }
  return { out, err, failure };
}

async function manifest(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

describe('what is printed', () => {
  test('the events of a recording, with their times and evidence', async () => {
    const { out, failure } = await amd([join(folder, 'person.wav')]);

    expect(failure).toBe('');
    expect(out[0]).toMatch(/person\.wav {2}0\.60 s {2}→ human$/);
    expect(out[1]).toMatch(/^ +\d\.\d\d s {2}human +\S+, 1 word, confidence \d\.\d\d, .*of speech/);
    expect(out[2]).toMatch(/^ +\d\.\d\d s {2}stopped +human$/);
    expect(out).toHaveLength(3);
  });

  test('with --json one object a recording, in every folder below', async () => {
    const { out, err } = await amd([folder], { json: true });

    const lines = out.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines.map(({ file, verdict }) => [file, verdict])).toEqual([
      [join(folder, 'deep', 'er', 'quiet.WAV'), 'no-speech'],
      [join(folder, 'deep', 'machine.wav'), 'machine'],
      [join(folder, 'person.wav'), 'human'],
    ]);
    expect(lines[0]).toMatchObject({
      events: [
        { event: 'amd_no_speech_detected', atMs: 5_000, reason: 'no-speech' },
        { event: 'amd_stopped', atMs: 5_000, reason: 'no-speech' },
      ],
    });
    expect(err).toEqual([]);
  });

  test('what cannot be read is told file by file, the others are heard, and the command fails', async () => {
    const broken = join(folder, 'broken.wav');
    await writeFile(broken, 'RIFF');
    const paths = [broken, join(folder, 'nowhere.wav'), '/dev/zero', join(folder, 'person.wav')];
    const { out, err, failure } = await amd(paths, { json: true });

    expect(err).toEqual([
      `${broken}: not a WAV file (no RIFF header)`,
      `${join(folder, 'nowhere.wav')}: no such file`,
      '/dev/zero: is no file',
    ]);
    expect(JSON.parse(out[1] ?? '')).toEqual({
      file: join(folder, 'nowhere.wav'),
      error: 'no such file',
    });
    expect(JSON.parse(out[3] ?? '')).toMatchObject({ verdict: 'human' });
    expect(failure).toBe('3 of 4 recordings could not be heard');
    await writeFile(broken, makeWav({ samples: [silence] }));
  });

  test('the side of a stereo recording that is asked for', async () => {
    const person = await readFile(join(folder, 'person.wav'));
    // µ-law interleaved with its silence: left is silent.
    const voice = person.subarray(person.length - 4_800);
    const data = Buffer.alloc(voice.length * 2, 0xff);
    for (const [index, byte] of voice.entries()) data[index * 2 + 1] = byte;
    const path = join(folder, 'stereo.wav');
    await writeFile(path, makeWav({ data, code: 7, bits: 8, channels: 2 }));

    expect((await amd([path])).out[0]).toContain('→ no-speech');
    const right = await amd([path], { channel: 'right' });
    expect(right.out[0]).toContain('→ human');
    expect(right.err).toEqual(['Of several channels, number 2 was heard (--channel).']);
    expect((await amd([path], { channel: '3' })).err).toEqual([`${path}: no channel 3; it has 2`]);
  });

  test('timers and the word rule are those of a dial-out request', async () => {
    const quiet = join(folder, 'deep', 'er', 'quiet.WAV');
    const timed = await amd([quiet], { timer: ['noSpeechTimeoutMs=300'] });
    expect(timed.out[1]).toMatch(/^ +0\.30 s {2}no speech/);

    const strict = await amd([join(folder, 'person.wav')], { thresholdWordCount: '1' });
    expect(strict.out[0]).toContain('→ machine');
  });

  test.each<[Partial<AmdOptions>, string]>([
    [{ timer: ['noSpeech=5'] }, '--timer noSpeech=5: name=milliseconds, with a name of noSpeech'],
    [{ timer: ['toString=500'] }, '--timer toString=500: name=milliseconds'],
    [{ timer: ['noSpeechTimeoutMs=5'] }, '--timer noSpeechTimeoutMs: '],
    [{ thresholdWordCount: '0' }, '--threshold-word-count must be 1 to 999'],
    [{ channel: '0' }, '--channel must be left, right, or 1 to 99'],
    [{ summary: 'x.json' }, '--summary needs a --manifest'],
    [{ compare: 'x.json' }, '--compare needs a --manifest'],
    [{ manifest: '/nowhere/truth.csv' }, '/nowhere/truth.csv cannot be read'],
    [{ plot: '/nowhere/page.html' }, '/nowhere/page.html cannot be written'],
  ])('%j is refused', async (options, message) => {
    expect((await amd([join(folder, 'person.wav')], options)).failure).toContain(message);
  });

  test('nothing to hear is said', async () => {
    expect((await amd([])).failure).toBe('name recordings, folders, or a --manifest');
    await mkdir(join(folder, 'empty'), { recursive: true });
    expect((await amd([join(folder, 'empty')])).failure).toBe('no WAV files there');
  });
});

describe('with a manifest', () => {
  const header = 'file,label,greeting_end_ms,beep_start_ms,beep_end_ms,transcript,expect\n';

  test('the figures, what is wrong, and the same as JSON', async () => {
    const rows = [
      'person.wav,human,600,,,"""Amelia"", she says",human',
      'deep/machine.wav,machine,4500,6000,6400,,"machine;tone"',
      'deep/er/quiet.WAV,human,400,,,,human',
    ];
    const path = await manifest('truth.csv', `\uFEFF${header}${rows.join('\r\n')}\r\n`);
    const summary = join(folder, 'summary.json');
    const { out, err } = await amd([], { manifest: path, summary, quiet: true });

    expect(out[0]).toMatch(/^truth +human +machine +no-speech +timeout +right$/);
    expect(out[1]).toMatch(/^human +1 +0 +1 +0 +50\.0 % +\(1\/2\)$/);
    expect(out[2]).toMatch(/^machine +0 +1 +0 +0 +100\.0 % +\(1\/1\)$/);
    expect(out).toContainEqual(expect.stringMatching(/^beeps found +0\.0 % +\(0\/1\) +0–79 %$/));
    expect(out.join('\n')).toContain(
      `Wrong (2):\n  ${join(folder, 'deep/machine.wav')}   beep not heard\n` +
        `  ${join(folder, 'deep/er/quiet.WAV')}  human heard as no-speech\n`,
    );
    expect(out.at(-1)).toMatch(/^3 recordings, 6\.\d s of audio in .* times as fast as a call\.$/);
    expect(err).toEqual([`figures: ${summary}`]);
    const figures = JSON.parse(await readFile(summary, 'utf8')) as object;
    expect(figures).toMatchObject({
      overall: { count: 2, of: 3 },
      beepsFound: { count: 0, of: 1 },
    });
  });

  test('two versions side by side: figures by class, and what became right and wrong', async () => {
    const truth = (other: string) =>
      `file,label,class\nperson.wav,human,hello\ndeep/machine.wav,${other},greeting\n`;
    const before = join(folder, 'before.json');
    // The same recordings, and another truth: as if the detector had changed.
    await amd([], { manifest: await manifest('old.csv', truth('human')), summary: before });
    const { out } = await amd([], {
      manifest: await manifest('new.csv', truth('machine')),
      compare: before,
      quiet: true,
    });

    const text = out.join('\n');
    expect(out[0]).toMatch(/^ +before +now +change$/);
    expect(text).toMatch(/right verdicts +50\.0 % \(9–91 %\) +100\.0 % \(34–100 %\) +\+50\.0/);
    expect(text).toMatch(/human: hello +100\.0 % \(21–100 %\) +100\.0 % \(21–100 %\) +\+0\.0/);
    expect(text).toMatch(/Right now \(1\):\n.*machine\.wav {2}was: human heard as machine/);
    expect(text).toContain('Wrong now (0):');
  });

  test('without classes the kinds of recordings have figures of their own', async () => {
    const text = 'file,label,kind\nperson.wav,human,real\ndeep/machine.wav,machine,mixed\n';
    const { out } = await amd([], { manifest: await manifest('kinds.csv', text), quiet: true });

    expect(out).toContainEqual(
      expect.stringMatching(/^human: real +100\.0 % +\(1\/1\) +21–100 %$/),
    );
    expect(out).toContainEqual(expect.stringMatching(/^machine: mixed +100\.0 % +\(1\/1\)/));
  });

  test('figures that are none are refused', async () => {
    const path = await manifest('some.csv', 'file,label\nperson.wav,human\n');
    const figures = await manifest('figures.json', '{"overall": 1}');

    expect((await amd([], { manifest: path, compare: figures })).failure).toContain(
      'is not what --summary writes',
    );
    expect((await amd([], { manifest: path, compare: '/nowhere.json' })).failure).toContain(
      '/nowhere.json cannot be read',
    );
  });

  test('recordings by their name wherever they lie, and --json stays pure', async () => {
    const path = await manifest('elsewhere.csv', 'label,file\nmachine,recordings/person.wav\n');
    const { out, err } = await amd([folder], { manifest: path, json: true });

    expect(out.every((line) => line.startsWith('{'))).toBe(true);
    expect(err.join('\n')).toContain('person.wav  machine heard as human');
    expect(err).toContainEqual(expect.stringMatching(/^\d recordings not in the manifest$/));
  });

  test.each([
    ['no header', 'person.wav,human\n', 'needs a header with the columns file and label'],
    [
      'another label',
      'file,label\na.wav,robot\n',
      'row 2: label "robot" is none of human, machine',
    ],
    ['no file', 'file,label\n,human\n', 'row 2: no file'],
  ])('%s is refused', async (_name, text, message) => {
    const path = await manifest('bad.csv', text);

    expect((await amd([], { manifest: path })).failure).toContain(message);
  });
});

describe('the page', () => {
  test('holds every recording and asks no server for anything', async () => {
    const name = '<script>x.wav';
    await writeFile(join(folder, name), makeWav({ samples: [sine(1_000, 8_000, 300)] }));
    const path = await manifest('plot.csv', `file,label\n"${name}",other\nperson.wav,human\n`);
    const plot = join(folder, 'page.html');
    const { failure } = await amd([], { manifest: path, plot, quiet: true });
    const page = await readFile(plot, 'utf8');

    expect(failure).toBe('');
    expect(page.match(/<section/g)).toHaveLength(2);
    expect(page.match(/<svg/g)).toHaveLength(2);
    expect(page).toContain('data-tip="human, ');
    expect(page).toContain('&#60;script&#62;x.wav');
    expect(page.match(/<script/g)).toHaveLength(1);
    expect(page).not.toMatch(/https?:|src=|href=|@import|url\(/);
    expect(page).not.toContain('NaN');
  });
});

test('as it is typed: help, a verdict, and exit code 1 for what cannot be read', async () => {
  const offhook = (...args: string[]) => run('cli', ['amd', ...args], {}).finished;
  const [help, heard, failed] = await Promise.all([
    offhook('--help'),
    offhook(join(folder, 'person.wav'), '--json', '--timer', 'noSpeechTimeoutMs=900'),
    offhook(join(folder, 'notes.txt')),
  ]);

  expect(help.out).toContain('offhook amd voicemail.wav');
  expect(heard).toMatchObject({ code: 0, err: '' });
  expect(JSON.parse(heard.out)).toMatchObject({ verdict: 'human' });
  expect(failed.code).toBe(1);
  expect(failed.err).toBe(
    `${join(folder, 'notes.txt')}: not a WAV file (no RIFF header)\noffhook: 1 of 1 recording could not be heard\n`,
  );
});
