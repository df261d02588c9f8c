// How a tone that may be a beep is treated, depending on who picked up and on what follows it.

import { describe, expect, test } from 'vitest';
import { type Answerer, BeepBelief } from '../../src/amd/beep-belief.ts';
import { frameMs } from '../../src/amd/frame.ts';
import type { ToneFound } from '../../src/amd/tones/tone-detector.ts';
import type { ToneDoubt } from '../../src/amd/tones/tone-doubt.ts';

function beep(doubt: ToneDoubt, parts: Partial<ToneFound> = {}): ToneFound {
  return { kind: 'beep', hz: 1_000, ms: 300, doubt, ...parts };
}

/**
 * What one frame has: a tone that ended, a tone that sounds, a voice. Undefined members are absent.
 */
type Heard = { readonly found?: ToneFound; readonly hz?: number; readonly speaks?: boolean };

function believed(answerer: Answerer, frames: Readonly<Record<number, Heard>>, wholeMs = 2_500) {
  const belief = new BeepBelief();
  const stated: (ToneFound & { readonly atMs: number })[] = [];
  for (let ms = 0; ms <= wholeMs; ms += frameMs) {
    const { found, hz = 0, speaks = false } = frames[ms] ?? {};
    const tone = belief.take(found, hz, speaks, answerer);
    if (tone !== undefined) stated.push({ ...tone, atMs: ms });
  }
  expect(belief.waiting).toBe(false);
  return stated;
}

const answerers: readonly Answerer[] = ['machine', 'silence', 'undecided', 'person', 'hello'];

describe('a beep without doubt', () => {
  test.each(answerers.filter((answerer) => answerer !== 'hello'))(
    'is believed at once: %s',
    (answerer) => {
      expect(believed(answerer, { 0: { found: beep('none') } })).toMatchObject([{ atMs: 0 }]);
    },
  );

  test('is believed after a mere hello once it has stayed alone for longer than a pause of a microwave', () => {
    const [stated] = believed('hello', { 0: { found: beep('none') } });

    expect(stated).toMatchObject({ hz: 1_000, ms: 300 });
    expect(stated?.atMs).toBeGreaterThan(900);
    expect(stated?.atMs).toBeLessThanOrEqual(1_100);
  });

  test.each<[string, Record<number, Heard>]>([
    ['it comes again', { 800: { hz: 1_000 } }],
    ['another tone follows', { 300: { hz: 1_320 } }],
    [
      'a voice talks over it',
      Object.fromEntries(
        [200, 220, 240, 260, 280, 300, 320, 340].map((ms) => [ms, { speaks: true }]),
      ),
    ],
  ])('is rejected after a mere hello if %s', (_, after) => {
    const again = { 1400: { found: beep('none') } };

    expect(believed('hello', { 0: { found: beep('none') }, ...after, ...again })).toEqual([]);
  });

  test('is believed in spite of a click', () => {
    const click = { 200: { speaks: true }, 220: { speaks: true } };

    expect(believed('hello', { 0: { found: beep('none') }, ...click })).toHaveLength(1);
  });
});

describe('a tone that the network may have sent', () => {
  const busy = beep('cadence', { hz: 425, ms: 250 });

  test('is a beep if it does not come again', () => {
    const [stated] = believed('machine', { 0: { found: busy } });

    expect(stated).toMatchObject({ hz: 425 });
    // Longer than a pause of call waiting: 600 ms.
    expect(stated?.atMs).toBeGreaterThan(680);
    expect(stated?.atMs).toBeLessThan(900);
  });

  test('is rejected for the rest of the call if it comes again', () => {
    const later = { 300: { hz: 425 }, 500: { found: busy }, 1000: { found: busy } };

    expect(believed('machine', { 0: { found: busy }, ...later })).toEqual([]);
  });

  test('is rejected before any voice', () => {
    expect(believed('silence', { 0: { found: busy } })).toEqual([]);
  });

  test('is rejected as soon as its pitch sounds again', () => {
    const belief = new BeepBelief();
    belief.take(busy, 0, false, 'hello');
    expect(belief.isRejected(425)).toBe(false);

    belief.take(undefined, 425, false, 'hello');
    expect([425, 430, 480].map((hz) => belief.isRejected(hz))).toEqual([true, true, false]);
  });
});

describe('a sound of a home', () => {
  test('must stay alone if a room is heard before any voice', () => {
    const [stated] = believed('silence', { 0: { found: beep('room') } });
    const again = { 0: { found: beep('room') }, 980: { hz: 1_000 } };

    expect(stated?.atMs).toBeGreaterThan(900);
    expect(believed('silence', again)).toEqual([]);
  });

  test.each(answerers.filter((answerer) => answerer === 'machine' || answerer === 'undecided'))(
    'is believed at once after speech although a room is heard: %s',
    (answerer) => {
      expect(believed(answerer, { 0: { found: beep('room') } })).toMatchObject([{ atMs: 0 }]);
    },
  );

  test.each<ToneDoubt>(['appliance', 'fading', 'echo'])(
    'with the doubt %s is believed after a machine verdict',
    (doubt) => {
      expect(believed('machine', { 0: { found: beep(doubt) } })).toMatchObject([{ atMs: 0 }]);
    },
  );

  test.each<ToneDoubt>(['appliance', 'fading', 'echo'])(
    'with the doubt %s is rejected after a hello',
    (doubt) => {
      expect(believed('hello', { 0: { found: beep(doubt) } })).toEqual([]);
    },
  );
});

test('fax machines and announcements are reported without a wait', () => {
  for (const kind of ['fax', 'sit'] as const) {
    const frames = { 0: { found: beep('none') }, 400: { found: beep('none', { kind }) } };

    expect(believed('hello', frames).map((tone) => tone.kind)).toContain(kind);
  }
});

test('the number of remembered pitches is bounded on a hostile line', () => {
  const belief = new BeepBelief();
  for (let hz = 300; hz < 3_000; hz += 10) belief.take(beep('echo', { hz }), 0, false, 'hello');

  // The first pitch is forgotten, the last one is not.
  expect(belief.take(beep('none', { hz: 300 }), 0, false, 'machine')).toBeDefined();
  expect(belief.take(beep('none', { hz: 2_900 }), 0, false, 'machine')).toBeUndefined();
});
