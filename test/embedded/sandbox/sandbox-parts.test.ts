// Numbers, sounds, keys, the frame clock and the voice turns of the sandbox.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { FrameClock, type Ticking } from '../../../src/embedded/sandbox/frame-clock.ts';
import { KeyPress } from '../../../src/embedded/sandbox/rtp-leg.ts';
import {
  findSandboxNumber,
  sandboxNumbers,
} from '../../../src/embedded/sandbox/sandbox-numbers.ts';
import {
  createSoundLibrary,
  frameSamples,
  type SoundName,
} from '../../../src/embedded/sandbox/sounds.ts';
import { VoiceTurns } from '../../../src/embedded/sandbox/voice-turns.ts';
import { readMulawWav } from '../../../src/embedded/sandbox/wav-file.ts';
import type { Codec } from '../../../src/media/g711.ts';
import { DtmfReceiver } from '../../../src/media/rtp/dtmf-receiver.ts';

describe('sandbox numbers', () => {
  test('are fictional, and each has a unique name', () => {
    for (const { number } of sandboxNumbers) expect(number).toMatch(/^\+1(202|907)55501\d\d$/);
    const keys = sandboxNumbers.flatMap(({ number, name }) => [number, name]);
    expect(new Set(keys).size).toBe(keys.length);
  });

  test.each([
    ...['+12025550130', '12025550130', 'busy', '12025550130;ext=7'],
    ...['5550130;phone-context=+1202', '12025550130;phone-context=sandbox.example'],
  ])('finds the callee by %s', (user) => {
    expect(findSandboxNumber(user)?.name).toBe('busy');
  });

  test.each(['', '+', '2025550130', '+4930123456', 'BUSY', '0130;phone-context=+1202'])(
    'finds no callee by "%s"',
    (user) => {
      expect(findSandboxNumber(user)).toBeUndefined();
    },
  );
});

describe('sounds', () => {
  const library = createSoundLibrary();

  test('come in frames of 20 ms and continue with silence', () => {
    expect(library.frame('hello', 0, 'PCMU')).toHaveLength(frameSamples);
    expect(new Set(library.frame('hello', 10_000, 'PCMU'))).toEqual(new Set([0xff]));
    expect(new Set(library.frame('hello', 10_000, 'PCMA'))).toEqual(new Set([0xd5]));
  });

  test('ringback starts again after six seconds', () => {
    expect(library.frame('ringback', 305, 'PCMU')).toEqual(library.frame('ringback', 5, 'PCMU'));
  });

  test('refuses a file of another format and names it', () => {
    expect(() => readMulawWav(new URL(import.meta.url))).toThrow(/is not a µ-law WAV file/);
  });
});

test('a pressed key is received once, with its duration', () => {
  const received: string[] = [];
  const receiver = new DtmfReceiver((digit, durationMs) => received.push(`${digit} ${durationMs}`));
  const key = new KeyPress('#');
  expect(key.isFirst).toBe(true);
  while (!key.isOver) {
    const payload = key.next();
    receiver.receive(payload, 0, payload.length, 8_000);
  }

  expect(received).toEqual(['# 100']);
  expect(key.isFirst).toBe(false);
});

describe('frame clock', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  function counter(): Ticking & { ticks: number } {
    return {
      ticks: 0,
      tick() {
        this.ticks += 1;
      },
    };
  }

  test('ticks fifty times a second for every member, with one timer', () => {
    const clock = new FrameClock();
    const members = [counter(), counter(), counter()];
    for (const member of members) clock.add(member);

    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(10_000);

    expect(members.map(({ ticks }) => ticks)).toEqual([500, 500, 500]);
    for (const member of members) clock.remove(member);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('makes up for a short pause of the process, but not for a long one', () => {
    let pausedMs = 0;
    const clock = new FrameClock(() => performance.now() + pausedMs);
    const member = counter();
    clock.add(member);

    pausedMs = 60;
    vi.advanceTimersByTime(20);
    expect(member.ticks).toBe(4);

    pausedMs = 60_000;
    vi.advanceTimersByTime(20);
    expect(member.ticks).toBe(10);
    clock.remove(member);
  });

  test('allows a member to leave during its tick', () => {
    const clock = new FrameClock();
    const member: Ticking = { tick: () => clock.remove(member) };
    clock.add(member);

    vi.advanceTimersByTime(1_000);

    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('voice turns', () => {
  const library = createSoundLibrary();

  function changesOf(frames: readonly Uint8Array[], codec: Codec = 'PCMU'): string[] {
    const turns = new VoiceTurns();
    return frames.flatMap((frame, index) => {
      const change = turns.hear(frame, codec);
      return change === undefined ? [] : [`${change} ${(index + 1) * 20}`];
    });
  }
  const framesOf = (sound: SoundName, codec: Codec) =>
    Array.from({ length: 400 }, (_, index) => library.frame(sound, index, codec));

  test.each<[SoundName, Codec]>([
    ['hello', 'PCMU'],
    ['hello', 'PCMA'],
    ['name', 'PCMU'],
    ['announcement', 'PCMA'],
  ])('hear %s in %s as one turn', (sound, codec) => {
    const changes = changesOf(framesOf(sound, codec), codec);

    expect(changes.map((change) => change.split(' ')[0])).toEqual(['began', 'ended']);
  });

  test('end 700 ms after the last sound', () => {
    const loud = new Uint8Array(frameSamples).fill(0x90);
    const quiet = new Uint8Array(frameSamples).fill(0xff);
    const spoken = [...Array(10).fill(loud), ...Array(40).fill(quiet)] as Uint8Array[];

    expect(changesOf(spoken)).toEqual(['began 100', 'ended 900']);
  });

  test('do not start with silence, a click or line noise', () => {
    const noise = Uint8Array.from(
      { length: frameSamples },
      (_, index) => (index % 2) * 0x80 + 0x70,
    );
    const click = new Uint8Array(frameSamples).fill(0x90);

    expect(changesOf([...framesOf('silence', 'PCMU'), click, ...Array(200).fill(noise)])).toEqual(
      [],
    );
  });
});
