// Tests `offhook amd`: the events that it prints for recordings, and its page.

import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AmdOptions, runAmd } from '../../src/cli/amd/amd-command.ts';
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
afterAll(() => removeFolder(folder));

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

describe('the output', () => {
  test('has the events of a recording, with their times and evidence', async () => {
    const { out, failure } = await amd([join(folder, 'person.wav')]);

    expect(failure).toBe('');
    expect(out[0]).toMatch(/person\.wav {2}0\.60 s {2}→ human$/);
    expect(out[1]).toMatch(/^ +\d\.\d\d s {2}human +\S+, 1 word, confidence \d\.\d\d, .*of speech/);
    expect(out[2]).toMatch(/^ +\d\.\d\d s {2}stopped +human$/);
    expect(out).toHaveLength(3);
  });

  test('has one object per recording with --json, including subfolders', async () => {
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

  test('names each file that cannot be read; the others are analysed, and the command fails', async () => {
    const broken = join(folder, 'broken.wav');
    await writeFile(broken, 'RIFF');
    const paths = [broken, join(folder, 'nowhere.wav'), '/dev/zero', join(folder, 'person.wav')];
    const { out, err, failure } = await amd(paths, { json: true });

    expect(err).toEqual([
      `${broken}: not a WAV file (no RIFF header)`,
      `${join(folder, 'nowhere.wav')}: no such file`,
      '/dev/zero: is not a file',
    ]);
    expect(JSON.parse(out[1] ?? '')).toEqual({
      file: join(folder, 'nowhere.wav'),
      error: 'no such file',
    });
    expect(JSON.parse(out[3] ?? '')).toMatchObject({ verdict: 'human' });
    expect(failure).toBe('3 of 4 recordings could not be analysed');
    await writeFile(broken, makeWav({ samples: [silence] }));
  });

  test('has the chosen channel of a stereo recording', async () => {
    const person = await readFile(join(folder, 'person.wav'));
    // The recording interleaves µ-law silence on the left with audio on the right.
    const voice = person.subarray(person.length - 4_800);
    const data = Buffer.alloc(voice.length * 2, 0xff);
    for (const [index, byte] of voice.entries()) data[index * 2 + 1] = byte;
    const path = join(folder, 'stereo.wav');
    await writeFile(path, makeWav({ data, code: 7, bits: 8, channels: 2 }));

    expect((await amd([path])).out[0]).toContain('→ no-speech');
    const right = await amd([path], { channel: 'right' });
    expect(right.out[0]).toContain('→ human');
    expect(right.err).toEqual([
      'Some recordings have several channels: channel 2 was analysed (--channel).',
    ]);
    expect((await amd([path], { channel: '3' })).err).toEqual([`${path}: no channel 3; it has 2`]);
  });

  test('follows the timers and the word rule of a dial-out request', async () => {
    const quiet = join(folder, 'deep', 'er', 'quiet.WAV');
    const timed = await amd([quiet], { timer: ['noSpeechTimeoutMs=300'] });
    expect(timed.out[1]).toMatch(/^ +0\.30 s {2}no speech/);

    const strict = await amd([join(folder, 'person.wav')], { thresholdWordCount: '1' });
    expect(strict.out[0]).toContain('→ machine');

    const careful = await amd([join(folder, 'person.wav')], { detection: 'careful' });
    expect(careful.out.join('\n')).toMatch(/human .*2\.50 s of silence/);
  });

  test.each<[Partial<AmdOptions>, string]>([
    [
      { timer: ['noSpeech=5'] },
      '--timer noSpeech=5: must be name=milliseconds, where name is one of noSpeech',
    ],
    [{ timer: ['toString=500'] }, '--timer toString=500: must be name=milliseconds'],
    [{ timer: ['noSpeechTimeoutMs=5'] }, '--timer noSpeechTimeoutMs: '],
    [{ thresholdWordCount: '0' }, '--threshold-word-count must be 1 to 999'],
    [{ channel: '0' }, '--channel must be left, right, or 1 to 99'],
    [{ plot: '/nowhere/page.html' }, '/nowhere/page.html cannot be written'],
  ])('%j is refused', async (options, message) => {
    expect((await amd([join(folder, 'person.wav')], options)).failure).toContain(message);
  });

  test('reports that there are no recordings', async () => {
    expect((await amd([])).failure).toBe('no recordings or folders given');
    await mkdir(join(folder, 'empty'), { recursive: true });
    expect((await amd([join(folder, 'empty')])).failure).toBe('no WAV files found');
  });
});

test('the page holds every recording and asks no server for anything', async () => {
  const name = '<script>x.wav';
  await writeFile(join(folder, name), makeWav({ samples: [sine(1_000, 8_000, 300)] }));
  const plot = join(folder, 'page.html');
  const { out, failure } = await amd([join(folder, name), join(folder, 'person.wav')], {
    plot,
    quiet: true,
  });
  const page = await readFile(plot, 'utf8');
  const data = /<script type="application\/json" id="data">(.*)<\/script>/.exec(page)?.[1] ?? '';

  expect(failure).toBe('');
  expect(out).toEqual([expect.stringMatching(/^2 recordings, .* times as fast as a call\.$/)]);
  expect(page.match(/<script/g)).toHaveLength(3);
  expect(page).not.toMatch(/https?:|src=|href=|@import|url\(/);
  expect(JSON.parse(data)).toMatchObject([
    {
      ...{ file: join(folder, name), group: 'machine' },
      lanes: [{}, { items: [{ atMs: 0, untilMs: 300, text: 'tone' }] }, { items: [] }],
    },
    {
      ...{ file: join(folder, 'person.wav'), verdict: 'human', durationMs: 600 },
      audio: { stepMs: 40, heard: expect.stringMatching(/^[\w+/]+=*$/) },
      lanes: [
        { kind: 'speech', items: [{ text: 'speech', atMs: expect.any(Number) }] },
        { kind: 'tones', items: [] },
        { kind: 'words', items: [{ text: '1' }] },
      ],
    },
  ]);
});

test('the command prints help and a verdict, and exits with 1 if a file cannot be read', async () => {
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
    `${join(folder, 'notes.txt')}: not a WAV file (no RIFF header)\noffhook: 1 of 1 recording could not be analysed\n`,
  );
});
