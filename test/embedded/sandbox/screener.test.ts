// The sandbox's screener. The caller is a sequence of sounds.

import { describe, expect, test } from 'vitest';
import { Screener } from '../../../src/embedded/sandbox/screener.ts';
import { createSoundLibrary, type SoundName } from '../../../src/embedded/sandbox/sounds.ts';

const sounds = createSoundLibrary();
const frames = (ms: number) => Math.ceil(ms / 20);
const says = (name: SoundName) =>
  Array.from({ length: frames(sounds.lengthMs(name)) }, (_, index) =>
    sounds.frame(name, index, 'PCMU'),
  );
const pause = (ms: number) =>
  Array<Uint8Array>(frames(ms)).fill(sounds.frame('silence', 0, 'PCMU'));
const question = () => pause(sounds.lengthMs('screenerQuestion'));
const whole = (name: SoundName) => Buffer.concat(says(name));

function ask(caller: readonly Uint8Array[], rejects?: true) {
  const screener = new Screener(sounds, { ...(rejects && { rejects }) });
  const said = caller.map((frame) => {
    screener.hear(frame, 'PCMU');
    return screener.nextFrame('PCMU');
  });
  return { screener, said: Buffer.concat(said) };
}

describe('a screener', () => {
  test('asks, and puts a caller through who answers', () => {
    const { screener, said } = ask([...question(), ...says('announcement'), ...pause(5_000)]);

    expect(said.indexOf(whole('screenerQuestion'))).toBe(0);
    const afterMs = said.indexOf(whole('helloSecond')) / 8 - sounds.lengthMs('screenerQuestion');
    expect(afterMs).toBeGreaterThan(sounds.lengthMs('announcement') + 2_000);
    expect(screener.unansweredMs).toBe(0);
  });

  test('measures how long the caller has said nothing', () => {
    const { screener, said } = ask([...question(), ...pause(5_000)]);

    expect(said.includes(whole('helloSecond'))).toBe(false);
    expect(screener.unansweredMs).toBe(5_000);
  });

  test('ignores speech during its own question', () => {
    const { screener } = ask([...says('answer'), ...question(), ...pause(1_000)]);

    expect(screener.unansweredMs).toBeGreaterThan(2_000);
  });

  test('says nothing more after the answer if it rejects', () => {
    const answered = [...question(), ...says('announcement'), ...pause(2_000)];
    expect(ask(answered, true).screener.hasRejected).toBe(false);
    const { screener, said } = ask([...answered, ...pause(1_000)], true);

    expect(screener.hasRejected).toBe(true);
    expect(said.includes(whole('helloSecond'))).toBe(false);
    expect(ask([...answered, ...pause(1_000)]).screener.hasRejected).toBe(false);
  });
});
