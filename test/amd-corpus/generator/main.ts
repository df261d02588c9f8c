// npm run amd:corpus: makes the corpus in the cache, with a manifest and recordings for each part.
// `--count` sets the answers per part. The result depends only on the seed and on the packages. The
// corpus is not part of the repository.

import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Random, seededRandom } from '../../amd/made-up-audio.ts';
import { type Cast, loadCast } from './cast.ts';
import { openClips } from './clips.ts';
import { licenceTable } from './licences.ts';
import { type LineState, overTheLine } from './line.ts';
import { machineScenes } from './machines.ts';
import { otherScenes } from './others.ts';
import { peopleScenes } from './people.ts';
import type { Scene } from './scene.ts';
import type { Answer } from './timeline.ts';
import { type Part, parts } from './voices.ts';
import { wavOf } from './wav.ts';

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '620' },
    seed: { type: 'string', default: '13' },
    cache: { type: 'string', default: join(homedir(), '.cache', 'offhook', 'amd-corpus') },
    part: { type: 'string', multiple: true, default: [...parts] },
  },
});
const note = (text: string): void => {
  process.stderr.write(`${text}\n`);
};

type Maker = (random: Random, cast: Cast) => Scene;

/** Returns each kind of scene as often as its weight says, rounded. Every part has every class. */
function makers(count: number): Maker[] {
  const all = [...peopleScenes, ...machineScenes, ...otherScenes];
  const whole = all.reduce((sum, [weight]) => sum + weight, 0);
  return all.flatMap(([weight, make]) =>
    Array.from({ length: Math.max(1, Math.round((weight * count) / whole)) }, () => make),
  );
}

const columns = [
  'file',
  'label',
  'class',
  'greeting_start_ms',
  'greeting_end_ms',
  'words',
  'beep_start_ms',
  'beep_end_ms',
  'beep_hz',
  'segments_ms',
  'transcript',
  'real',
  'dbfs',
  'noise',
  'codec',
  'loss',
  'expect',
  'source',
] as const;

function row(file: string, scene: Scene, answer: Answer, state: LineState): string {
  const cells: Record<(typeof columns)[number], string | number | undefined> = {
    file,
    label: scene.label,
    class: scene.class,
    greeting_start_ms: answer.greetingStartMs,
    greeting_end_ms: answer.greetingEndMs,
    words: scene.words,
    beep_start_ms: answer.beep?.startMs,
    beep_end_ms: answer.beep?.endMs,
    beep_hz: answer.beep?.hz,
    segments_ms: answer.segments.map(([from, to]) => `${from}-${to}`).join(' '),
    transcript: scene.text,
    real: scene.isReal ? 'yes' : 'no',
    dbfs: state.dbfs,
    noise: state.noise,
    codec: state.codec,
    loss: state.lossPercent,
    expect: scene.expect.join(';'),
    source: scene.sources.join('; '),
  };
  return columns.map((name) => `"${String(cells[name] ?? '').replaceAll('"', '""')}"`).join(',');
}

function makePart(part: Part, cast: Cast, count: number, seed: number): void {
  const folder = join(values.cache, part);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, 'wav'), { recursive: true });
  const rows = makers(count).map((make, index) => {
    const random = seededRandom(seed * 1_000_003 + parts.indexOf(part) * 100_003 + index);
    const scene = make(random, cast);
    const answer = scene.timeline.finish();
    const { samples, state } = overTheLine(answer.samples, random);
    const name = `${String(index).padStart(4, '0')}_${scene.label}_${scene.class}`;
    const file = `wav/${name.replaceAll(/[^a-z0-9_]+/gi, '-')}.wav`;
    writeWav(join(folder, file), samples, state.codec === 'gsm');
    return row(file, scene, answer, state);
  });
  writeFileSync(join(folder, 'manifest.csv'), `${columns.join(',')}\n${rows.join('\n')}\n`);
  note(`${part}: ${rows.length} answers by ${cast.voices.length} voices in ${folder}`);
}

function writeWav(path: string, samples: Int16Array, overGsm: boolean): void {
  const bytes = Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength);
  const data = overGsm ? throughGsm(bytes) : bytes;
  writeFileSync(path, wavOf(data, { rateHz: 8_000, bits: 16 }));
}

function throughGsm(input: Buffer): Buffer {
  const options = { maxBuffer: 100_000_000 };
  const pcm = ['-t', 's16', '-r', '8000', '-c', '1', '-'];
  const gsm = ['-t', 'gsm', '-r', '8000', '-c', '1', '-'];
  const coded = execFileSync('sox', ['-q', ...pcm, ...gsm], { ...options, input });
  return execFileSync('sox', ['-q', ...gsm, ...pcm], { ...options, input: coded });
}

mkdirSync(values.cache, { recursive: true });
const clips = openClips(values.cache);
for (const part of parts.filter((each) => values.part.includes(each))) {
  makePart(
    part,
    loadCast(part, values.cache, clips, note),
    Number(values.count),
    Number(values.seed),
  );
}
writeFileSync(join(values.cache, 'LICENCES.md'), licenceTable(values.cache));
