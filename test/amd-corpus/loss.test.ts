// The simulated line of `npm run amd:loss`.

import { describe, expect, test } from 'vitest';
import { defaultSettings } from '../amd/listen.ts';
import { seededRandom } from '../amd/made-up-audio.ts';
import { compareLines } from './loss/compare-lines.ts';
import { listenOver, losses } from './loss/lossy-call.ts';
import { readManifest, readSamples } from './score/manifest.ts';

const manifest = new URL('../fixtures/amd/manifest.csv', import.meta.url).pathname;

describe('losses', () => {
  test.each([
    [5, 1],
    [5, 3],
    [10, 4],
  ])('are %i %% of the packets, %i in a row on average', (percent, burst) => {
    const random = seededRandom(percent);
    const lost = Array.from({ length: 100 }, () => losses(percent, burst, random)).flat();
    const count = lost.filter(Boolean).length;
    const bursts = lost.filter((isLost, index) => isLost && lost[index - 1] !== true).length;

    expect((100 * count) / lost.length).toBeCloseTo(percent, 0);
    expect(count / bursts).toBeCloseTo(burst === 1 ? 1 / (1 - percent / 100) : burst, 0);
  });

  test('of everything leave detection without speech', () => {
    const samples = new Int16Array(8_000).fill(9_000);
    const lost = Array.from({ length: 3_500 }, () => true);
    const line = { lost, ear: 'arrived', isSuppressed: false } as const;

    const events = listenOver(line, samples, defaultSettings).map(({ event }) => event);
    expect(events).toEqual(['amd_no_speech_detected', 'amd_stopped']);
  });
});

test('a far end that suppresses silence changes nothing about people and machines', async () => {
  const lost = Array.from({ length: 3_500 }, () => false);
  for (const { file, truth } of await readManifest(manifest)) {
    if (truth.label === 'other') continue;
    const samples = await readSamples(file);
    const [whole, suppressed] = [false, true].map((isSuppressed) =>
      listenOver({ lost, ear: 'arrived', isSuppressed }, samples, defaultSettings),
    );
    expect(
      suppressed?.map(({ event }) => event),
      file,
    ).toEqual(whole?.map(({ event }) => event));
  }
});

test('a comparison has a row for each class and each kind of fault', async () => {
  const options = { manifests: [manifest], burst: 1, seeds: 1, suppression: false };
  const table = (await compareLines(options, 0)).join('\n');

  expect(table).toMatch(/beep missed +20 +0\.0 +0\.0 +\+0\.0 ± 0\.0/);
  expect(table).toMatch(/human: tts, any fault +25 /);
});
