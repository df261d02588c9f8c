// Numbers, sounds and the clock of the sandbox.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { FrameClock, type Ticking } from '../../../src/embedded/sandbox/frame-clock.ts';
import {
  findSandboxNumber,
  sandboxNumbers,
} from '../../../src/embedded/sandbox/sandbox-numbers.ts';
import { createSoundLibrary, frameSamples } from '../../../src/embedded/sandbox/sounds.ts';
import { readMulawWav } from '../../../src/embedded/sandbox/wav-file.ts';

describe('sandbox numbers', () => {
  test('are fictional, and each has a name of its own', () => {
    for (const { number } of sandboxNumbers) expect(number).toMatch(/^\+120255501\d\d$/);
    const keys = sandboxNumbers.flatMap(({ number, name }) => [number, name]);
    expect(new Set(keys).size).toBe(keys.length);
  });

  test.each(['+12025550130', '12025550130', 'busy'])('%s is found', (user) => {
    expect(findSandboxNumber(user)?.name).toBe('busy');
  });

  test.each(['', '+', '2025550130', '+4930123456', 'BUSY'])('%s is not', (user) => {
    expect(findSandboxNumber(user)).toBeUndefined();
  });
});

describe('sounds', () => {
  const library = createSoundLibrary();

  test('come in frames of 20 ms and go on in silence', () => {
    expect(library.frame('hello', 0, 'PCMU')).toHaveLength(frameSamples);
    expect(new Set(library.frame('hello', 10_000, 'PCMU'))).toEqual(new Set([0xff]));
    expect(new Set(library.frame('hello', 10_000, 'PCMA'))).toEqual(new Set([0xd5]));
  });

  test('ringback starts again after six seconds', () => {
    expect(library.frame('ringback', 305, 'PCMU')).toEqual(library.frame('ringback', 5, 'PCMU'));
  });

  test('a file of another format is refused by name', () => {
    expect(() => readMulawWav(new URL(import.meta.url))).toThrow(/is not a µ-law WAV file/);
  });
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

  test('ticks fifty times a second for every member, by one timer', () => {
    const clock = new FrameClock();
    const members = [counter(), counter(), counter()];
    for (const member of members) clock.add(member);

    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(10_000);

    expect(members.map(({ ticks }) => ticks)).toEqual([500, 500, 500]);
    for (const member of members) clock.remove(member);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('makes up for a short pause of the process and leaves a long one out', () => {
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

  test('a member may leave during its tick', () => {
    const clock = new FrameClock();
    const member: Ticking = { tick: () => clock.remove(member) };
    clock.add(member);

    vi.advanceTimersByTime(1_000);

    expect(vi.getTimerCount()).toBe(0);
  });
});
