// The sandbox's talker. The caller is a sequence of sounds. Tests what the talker says, when it
// interrupts, and what it measures.

import { describe, expect, test } from 'vitest';
import { createSoundLibrary, type SoundName } from '../../../src/embedded/sandbox/sounds.ts';
import { Talker, type TalkManner } from '../../../src/embedded/sandbox/talker.ts';

const sounds = createSoundLibrary();
const frames = (ms: number) => Math.ceil(ms / 20);
const silent = sounds.frame('silence', 0, 'PCMU');
const says = (name: SoundName) =>
  Array.from({ length: frames(sounds.lengthMs(name)) }, (_, index) =>
    sounds.frame(name, index, 'PCMU'),
  );
const pause = (ms: number) => Array<Uint8Array>(frames(ms)).fill(silent);

/** The talker says 20 ms of its own for each frame of the caller. */
function converse(
  caller: Iterable<Uint8Array>,
  manner: TalkManner = { interrupts: true },
): { talker: Talker; said: Buffer; keys: string[] } {
  const talker = new Talker(sounds, manner);
  const keys: string[] = [];
  const said: Uint8Array[] = [];
  for (const frame of caller) {
    talker.hear(frame, 'PCMU');
    keys.push(...[talker.takeKey()].filter((key) => key !== undefined));
    said.push(talker.nextFrame('PCMU'));
  }
  return { talker, said: Buffer.concat(said), keys };
}

const whole = (name: SoundName) => Buffer.concat(says(name));

describe('a talker', () => {
  test('says hello, and replies to a short sentence when it is over', () => {
    const { talker, said } = converse([...pause(2_000), ...says('name'), ...pause(4_000)]);

    expect(said.indexOf(whole('hello'))).toBe(0);
    expect(said.indexOf(whole('answer'))).toBeGreaterThan((2_000 + 800) * 8);
    expect(talker.summary).toMatchObject({ turns: 1, answers: 1 });
    expect(talker.summary.voiceMs).toBeGreaterThan(200);
    expect(talker.summary).not.toHaveProperty('silencedAfterMs');
  });

  test('interrupts a caller who talks for two seconds, and measures how soon the caller falls silent', () => {
    const heeds = 300;
    const { talker, said } = converse([
      ...pause(2_000),
      // The announcement is cut off 300 ms after the interruption.
      ...says('announcement').slice(0, frames(600 + 2_000 + heeds)),
      ...pause(3_000),
    ]);

    expect(said.includes(whole('interruption'))).toBe(true);
    expect(said.includes(whole('answer'))).toBe(false);
    expect(talker.summary).toMatchObject({ turns: 1, answers: 0 });
    const { silencedAfterMs = NaN } = talker.summary;
    expect(silencedAfterMs).toBeGreaterThan(0);
    expect(silencedAfterMs).toBeLessThanOrEqual(600 + heeds);
  });

  test('finishes its interruption if the caller talks on, and interrupts only once', () => {
    const { talker, said } = converse([
      ...says('announcement'),
      ...pause(2_000),
      ...says('announcement'),
      ...pause(2_000),
    ]);
    const first = said.indexOf(whole('interruption'));

    expect(first).toBeGreaterThan(0);
    expect(said.indexOf(whole('interruption'), first + 1)).toBe(-1);
    expect(talker.summary).toMatchObject({ turns: 2, answers: 1 });
    expect(talker.summary.silencedAfterMs).toBeGreaterThan(1_000);
  });

  test('replies at most three times, and measures how long neither end has spoken', () => {
    const turn = [...says('name'), ...pause(4_000)];
    const { talker } = converse([...turn, ...turn, ...turn, ...turn, ...pause(15_000)]);

    expect(talker.summary).toMatchObject({ turns: 4, answers: 3 });
    expect(talker.silentMs).toBeGreaterThanOrEqual(15_000);
  });

  test('presses its key once, when the prompt is over, and then talks', () => {
    const prompt = [...pause(1_000), ...says('announcement'), ...pause(1_000)];
    const menu = converse(prompt, { presses: '1' });
    expect(menu.keys).toEqual(['1']);
    expect(menu.said.includes(whole('answer'))).toBe(false);

    const rest = converse([...prompt, ...says('hello'), ...pause(4_000)], { presses: '1' });
    expect(rest.keys).toEqual(['1']);
    expect(rest.said.includes(whole('answer'))).toBe(true);
    expect(rest.said.includes(whole('interruption'))).toBe(false);
  });
});
