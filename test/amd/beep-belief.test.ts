// What becomes of a tone that may be a beep: by who picked up, and by what follows it.

import { describe, expect, test } from 'vitest';
import { BeepBelief, type Company } from '../../src/amd/beep-belief.ts';
import { frameMs } from '../../src/amd/frame.ts';
import type { ToneFound } from '../../src/amd/tones/tone-detector.ts';
import type { ToneDoubt } from '../../src/amd/tones/tone-doubt.ts';

function beep(doubt: ToneDoubt, parts: Partial<ToneFound> = {}): ToneFound {
  return { kind: 'beep', hz: 1_000, ms: 300, doubt, ...parts };
}

/** One frame at a time: a tone that ended, one that sounds, a voice; nothing where a frame has none of them. */
type Heard = { readonly found?: ToneFound; readonly hz?: number; readonly speaks?: boolean };

function believed(company: Company, frames: Readonly<Record<number, Heard>>, wholeMs = 2_500) {
  const belief = new BeepBelief();
  const stated: (ToneFound & { readonly atMs: number })[] = [];
  for (let ms = 0; ms <= wholeMs; ms += frameMs) {
    const { found, hz = 0, speaks = false } = frames[ms] ?? {};
    const tone = belief.take(found, hz, speaks, company);
    if (tone !== undefined) stated.push({ ...tone, atMs: ms });
  }
  expect(belief.waiting).toBe(false);
  return stated;
}

const companies: readonly Company[] = ['machine', 'silence', 'undecided', 'person', 'hello'];

describe('a beep without a doubt', () => {
  test.each(companies.filter((company) => company !== 'hello'))(
    'is stated at once: %s',
    (company) => {
      expect(believed(company, { 0: { found: beep('none') } })).toMatchObject([{ atMs: 0 }]);
    },
  );

  test('after a mere hello is stated once it stayed alone for longer than a microwave pauses', () => {
    const [stated] = believed('hello', { 0: { found: beep('none') } });

    expect(stated).toMatchObject({ hz: 1_000, ms: 300 });
    expect(stated?.atMs).toBeGreaterThan(900);
    expect(stated?.atMs).toBeLessThanOrEqual(1_100);
  });

  test.each<[string, Record<number, Heard>]>([
    ['comes again', { 800: { hz: 1_000 } }],
    ['is followed by another', { 300: { hz: 1_320 } }],
    [
      'is talked over',
      Object.fromEntries(
        [200, 220, 240, 260, 280, 300, 320, 340].map((ms) => [ms, { speaks: true }]),
      ),
    ],
  ])('after a mere hello is none when it %s', (_, after) => {
    const again = { 1400: { found: beep('none') } };

    expect(believed('hello', { 0: { found: beep('none') }, ...after, ...again })).toEqual([]);
  });

  test('is not undone by a click', () => {
    const click = { 200: { speaks: true }, 220: { speaks: true } };

    expect(believed('hello', { 0: { found: beep('none') }, ...click })).toHaveLength(1);
  });
});

describe('a tone that the network may have sent', () => {
  const busy = beep('cadence', { hz: 425, ms: 250 });

  test('is a beep when it does not come again', () => {
    const [stated] = believed('machine', { 0: { found: busy } });

    expect(stated).toMatchObject({ hz: 425 });
    // A pause of call waiting's: 600 ms.
    expect(stated?.atMs).toBeGreaterThan(680);
    expect(stated?.atMs).toBeLessThan(900);
  });

  test('is none when it does, and none for the rest of the call', () => {
    const later = { 300: { hz: 425 }, 500: { found: busy }, 1000: { found: busy } };

    expect(believed('machine', { 0: { found: busy }, ...later })).toEqual([]);
  });

  test('is none before any voice', () => {
    expect(believed('silence', { 0: { found: busy } })).toEqual([]);
  });

  test('is known as none when its pitch sounds again', () => {
    const belief = new BeepBelief();
    belief.take(busy, 0, false, 'hello');
    expect(belief.isRefused(425)).toBe(false);

    belief.take(undefined, 425, false, 'hello');
    expect([425, 430, 480].map((hz) => belief.isRefused(hz))).toEqual([true, true, false]);
  });
});

describe('what sounds in a home', () => {
  test('before any voice, with a room to be heard: must stay alone', () => {
    const [stated] = believed('silence', { 0: { found: beep('room') } });
    const again = { 0: { found: beep('room') }, 980: { hz: 1_000 } };

    expect(stated?.atMs).toBeGreaterThan(900);
    expect(believed('silence', again)).toEqual([]);
  });

  test.each(companies.filter((company) => company === 'machine' || company === 'undecided'))(
    'with a room to be heard, after speech it is stated at once: %s',
    (company) => {
      expect(believed(company, { 0: { found: beep('room') } })).toMatchObject([{ atMs: 0 }]);
    },
  );

  test.each<ToneDoubt>(['appliance', 'fading', 'echo'])('%s: a machine may beep so', (doubt) => {
    expect(believed('machine', { 0: { found: beep(doubt) } })).toMatchObject([{ atMs: 0 }]);
  });

  test.each<ToneDoubt>(['appliance', 'fading', 'echo'])('%s: none after a hello', (doubt) => {
    expect(believed('hello', { 0: { found: beep(doubt) } })).toEqual([]);
  });
});

test('fax machines and announcements are never waited with', () => {
  for (const kind of ['fax', 'sit'] as const) {
    const frames = { 0: { found: beep('none') }, 400: { found: beep('none', { kind }) } };

    expect(believed('hello', frames).map((tone) => tone.kind)).toContain(kind);
  }
});

test('no more pitches are remembered than a hostile line can make us', () => {
  const belief = new BeepBelief();
  for (let hz = 300; hz < 3_000; hz += 10) belief.take(beep('echo', { hz }), 0, false, 'hello');

  // The first is forgotten, the last is not.
  expect(belief.take(beep('none', { hz: 300 }), 0, false, 'machine')).toBeDefined();
  expect(belief.take(beep('none', { hz: 2_900 }), 0, false, 'machine')).toBeUndefined();
});
