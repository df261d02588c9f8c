// Synthesises every kind of tone that a called line carries. Beeps must be found and reported in
// time, and nothing else may count as a beep.

import { describe, expect, test } from 'vitest';
import { frameSamples } from '../../src/amd/frame.ts';
import { addFrame, newRecentAudio } from '../../src/amd/recent-audio.ts';
import { createToneDetector, type ToneStep } from '../../src/amd/tones/tone-detector.ts';
import { joined, silence, tone } from '../../src/embedded/sandbox/tones.ts';
import { type Codec, decodeTable, encode } from '../../src/media/g711.ts';
import { anything, babble, noise, seededRandom } from './made-up-audio.ts';
import { cadence, hear, mixed, moving, noisy, type Reported, square } from './tone-sounds.ts';

const quiet = silence(500);
const latestReportMs = 150;

function kinds(reported: readonly Reported[]): string[] {
  return reported.map(({ kind }) => kind);
}

/** Expects exactly one beep, reported within 150 ms of its end. */
function expectBeep(reported: readonly Reported[], endMs: number): void {
  expect(kinds(reported)).toEqual(['beep']);
  expect(reported[0]?.atMs).toBeGreaterThan(endMs - 60);
  expect(reported[0]?.atMs).toBeLessThanOrEqual(endMs + latestReportMs);
}

describe('a beep of one sine', () => {
  test.each(
    [700, 1_000, 1_400, 2_250].flatMap((hz) =>
      [100, 250, 600, 2_000].flatMap((ms) => [-6, -20, -45].map((db) => [hz, ms, db] as const)),
    ),
  )('%i Hz, %i ms, %i dBFS', (hz, ms, db) => {
    const reported = hear(joined([quiet, tone([hz], ms, db)]));

    expectBeep(reported, 500 + ms);
    expect(Math.abs((reported[0]?.hz ?? 0) - hz)).toBeLessThanOrEqual(3);
    expect(Math.abs((reported[0]?.ms ?? 0) - ms)).toBeLessThanOrEqual(40);
  });

  test.each([350, 400, 450, 500, 600])('must be longer at a pitch of voices: %i Hz', (hz) => {
    expectBeep(hear(joined([quiet, tone([hz], 180, -20)])), 680);
    expect(hear(joined([quiet, tone([hz], 100, -20)]))).toEqual([]);
  });

  test.each([0, 5, 10, 15])('is found wherever frames begin: %i ms later', (ms) => {
    expectBeep(hear(joined([quiet, silence(ms), tone([1_600], 120, -25)])), 620 + ms);
  });

  test.each<Codec>(['PCMU', 'PCMA'])('is found through %s', (codec) => {
    const coded = encode(codec, joined([quiet, tone([1_950], 400, -38)]));

    expectBeep(hear(Int16Array.from(coded, (byte) => decodeTable[codec][byte] ?? 0)), 900);
  });

  test.each([30, 20, 10])('is found %i dB above the line’s noise', (snrDb) => {
    const line = noisy(
      seededRandom(snrDb),
      joined([silence(2_000), tone([1_000], 250, -17), quiet]),
      -20 - snrDb,
    );

    expectBeep(hear(line), 2_250);
  });

  test('is found over music that goes on', () => {
    const chord = tone([262, 330, 392, 523], 4_000, -44);

    expectBeep(hear(mixed(chord, joined([silence(2_000), tone([800], 400, -14)]))), 2_400);
  });

  test.each([0, 40, 200])('is found %i ms after the last word', (ms) => {
    const speech = babble(seededRandom(7), 1_500);

    expectBeep(hear(joined([speech, silence(ms), tone([950], 350, -18)])), 1_850 + ms);
  });

  test.each([26, 30, 33])('is found with frame %i lost', (frame) => {
    expectBeep(hear(joined([quiet, tone([1_000], 200, -20)]), { lost: new Set([frame]) }), 700);
  });

  test('is found if no packets follow because the mailbox records', () => {
    const lost = new Set(Array.from({ length: 100 }, (_, index) => 35 + index));
    const reported = hear(joined([quiet, tone([1_000], 200, -20)]), { lost });

    expect(reported).toMatchObject([{ kind: 'beep', hz: 1_000 }]);
    expect(reported[0]?.atMs).toBeLessThanOrEqual(700 + 250);
  });

  test('is found with a frame of silence inside, as some gateways fill a lost frame', () => {
    const beep = tone([1_000], 300, -20).fill(0, 1_120, 1_280);

    expectBeep(hear(joined([quiet, beep])), 800);
  });
});

describe('a beep of another kind', () => {
  const warble = (part: number, seconds: number): number =>
    1_000 + 40 * Math.sin(2 * Math.PI * 10 * seconds + part);
  test.each([
    ['two sines', tone([620, 930], 400, -20)],
    ['two sines, one low', tone([440, 1_320], 600, -20)],
    ['two sines, the upper one weaker', mixed(tone([900], 300, -14), tone([1_350], 300, -20))],
    ['rising', moving((part) => 800 + 400 * part, 250, -20)],
    ['falling', moving((part) => 1_800 - 700 * part, 400, -20)],
    ['a chirp, two octaves in a third of a second', moving((part) => 400 + 1_600 * part, 300, -20)],
    ['two steps', moving((part) => (part < 0.5 ? 850 : 1_100), 400, -20)],
    ['warbling', moving(warble, 700, -20)],
    [
      'dying away',
      moving(
        () => 1_250,
        600,
        -8,
        (wave, part) => wave * 10 ** (-1.25 * part),
      ),
    ],
    ['a square wave', square(950, 350, -14)],
    [
      'clipped',
      moving(
        () => 700,
        400,
        -6,
        (wave) => Math.max(-0.5, Math.min(0.5, wave)),
      ),
    ],
  ])('%s', (_, beep) => {
    expectBeep(hear(joined([quiet, beep])), 500 + beep.length / 8);
  });
});

describe('a beep on a bad line', () => {
  test('is found at 80 ms, wherever frames begin', () => {
    for (const ms of [0, 4, 8, 12, 16]) {
      expectBeep(hear(joined([quiet, silence(ms), tone([840], 80, -20)])), 580 + ms);
    }
  });

  test('is found as a low square wave, 15 dB above the noise', () => {
    const beep = moving(
      () => 450,
      350,
      -16,
      (wave) => 0.7 * Math.sign(wave),
    );
    const line = noisy(seededRandom(3), joined([silence(2_000), beep, quiet]), -34);

    expectBeep(hear(line), 2_350);
  });

  test('is found at a low pitch right after a word if it is pure', () => {
    const word = babble(seededRandom(7), 1_500);

    expectBeep(hear(joined([word, tone([440], 240, -20)])), 1_740);
  });

  test('is found in one piece, 8 dB above the noise', () => {
    const line = noisy(
      seededRandom(5),
      joined([silence(2_000), tone([964], 800, -27), quiet]),
      -35,
    );

    expectBeep(hear(line), 2_800);
  });

  test.each([
    ['a sweep in the pitch of voices', moving((part) => 390 + 450 * part, 600, -20)],
    ['two low steps', moving((part) => (part < 0.5 ? 512 : 1_262), 280, -20)],
    ['two low sines', tone([550, 1_130], 220, -20)],
  ])('is found if it is pure: %s', (_, beep) => {
    expectBeep(hear(joined([quiet, beep])), 500 + beep.length / 8);
  });

  /** A low-rate codec moves a tone's pitch and level by this much. */
  const coded = (hz: number): Int16Array =>
    moving(
      (_, seconds) => hz + 3 * Math.sin(2 * Math.PI * 5 * seconds),
      180,
      -20,
      (wave, part) => wave * (Math.floor(part * 4.5) % 2 === 0 ? 1 : 0.65),
    );

  test.each([450, 620])('is found in spite of a codec if it stands out: %i Hz', (hz) => {
    expectBeep(hear(joined([quiet, coded(hz)])), 680);
    expect(hear(noisy(seededRandom(4), joined([quiet, coded(hz)]), -38))).toEqual([]);
  });

  test.each([5, 8])('is found as a fast chirp that a codec bends: %i Hz', (hz) => {
    const bent = (part: number, seconds: number): number =>
      400 + 1_600 * part + 20 * Math.sin(2 * Math.PI * hz * seconds);

    expectBeep(hear(joined([quiet, moving(bent, 300, -20)])), 800);
  });

  test('is found as a chirp with a lost frame', () => {
    const chirp = moving((part) => 600 + 1_000 * part, 400, -12);

    expectBeep(hear(joined([quiet, chirp]), { lost: new Set([28, 38]) }), 900);
  });
});

describe('a sound in a room', () => {
  const ringing = (hz: number): Int16Array =>
    moving(
      () => hz,
      400,
      -46,
      (wave, part) => wave * (1 - part),
    );

  test('is in doubt if it leaves the line louder than before', () => {
    const [found] = hear(joined([quiet, tone([1_480], 700, -20), ringing(1_480)]));

    expect(found).toMatchObject({ kind: 'beep', doubt: 'echo' });
  });

  test('is in doubt as a melody with gaps', () => {
    const notes = joined([tone([988], 240, -20), silence(60), tone([1_175], 240, -20)]);

    expect(hear(joined([quiet, notes]))).toMatchObject([{ kind: 'beep', doubt: 'echo' }]);
  });

  test('is not a beep as a moving cry with its octave', () => {
    const cry = mixed(
      moving((part) => 870 - 40 * part, 900, -16),
      moving((part) => 1_740 - 80 * part, 900, -27),
    );

    expect(kinds(hear(joined([quiet, cry])))).toEqual([]);
  });

  test.each([
    ['wavers', moving((part) => 900 + 40 * part, 260, -20)],
    ['glides for a moment', moving((part) => 820 + 140 * part, 110, -20)],
  ])('is not a beep as a high voice that %s', (_, cry) => {
    expect(kinds(hear(joined([quiet, cry])))).toEqual([]);
  });

  test('is not a beep as a note during which other music begins and stays', () => {
    const note = tone([700], 300, -20);
    const chord = joined([silence(700), tone([262, 330, 392, 523], 3_000, -30)]);

    expect(kinds(hear(mixed(joined([quiet, note]), chord)))).toEqual([]);
  });
});

describe('tones of the network', () => {
  const networks: [name: string, samples: Int16Array][] = [
    ['American ringback', cadence([440, 480], 2_000, 4_000, 2)],
    ['European ringback', cadence([425], 1_000, 4_000, 2)],
    ['British ringback', joined([cadence([400, 450], 400, 200, 2), silence(1_800)])],
    ['American busy', cadence([480, 620], 500, 500, 6)],
    ['congestion, reorder', cadence([480, 620], 250, 250, 10)],
    ['European busy', cadence([425], 500, 500, 6)],
    ['American dial tone', tone([350, 440], 3_000, -16)],
    ['European dial tone', tone([425], 3_000, -16)],
    ['American call waiting', cadence([440], 300, 2_000, 2)],
    ['European call waiting', cadence([425], 200, 600, 2)],
  ];

  test.each(networks)('%s is signalling before any voice', (_, samples) => {
    const reported = kinds(hear(joined([quiet, samples]), { afterSpeech: false }));

    expect(new Set(reported)).toEqual(new Set(['signalling']));
  });

  test.each(networks)(
    '%s is signalling after speech too, or in doubt because it may come again',
    (_, samples) => {
      for (const { kind, doubt } of hear(joined([quiet, samples]))) {
        expect(kind === 'signalling' || doubt === 'cadence').toBe(true);
      }
    },
  );

  test('a single low tone is the network’s before any voice, and a beep after one', () => {
    const low = joined([quiet, tone([450], 1_000, -20)]);

    expect(kinds(hear(low, { afterSpeech: false }))).toEqual(['signalling']);
    expect(kinds(hear(low, { afterSpeech: true }))).toEqual(['beep']);
  });

  test.each([
    ['long', 380, [985.2, 1_428.5, 1_776.7]],
    ['short', 276, [913.8, 1_370.6, 1_776.7]],
    ['answered late', 330, [1_400, 1_776.7]],
  ])('SIT, %s', (_, ms, steps) => {
    const tones = joined([quiet, ...steps.map((hz) => tone([hz], ms, -16))]);

    expect(kinds(hear(tones, { afterSpeech: false }))).toEqual(['sit']);
  });
});

describe('what a beep may be instead', () => {
  const doubtOf = (samples: Int16Array): string | undefined =>
    hear(joined([quiet, samples])).find(({ kind }) => kind === 'beep')?.doubt;
  /** Adds reflections that die away by 60 dB in 0.3 s. */
  const inRoom = (samples: Int16Array): Int16Array => {
    const random = seededRandom(11);
    let room = joined([samples, silence(400)]);
    for (let ms = 4; ms < 300; ms += 8) {
      const gain = 0.16 * 10 ** ((-3 * ms) / 300) * (random() < 0.5 ? -1 : 1);
      room = mixed(
        room,
        joined([silence(ms), samples]).map((sample) => Math.round(sample * gain)),
      );
    }
    return room;
  };
  const dying = (part: number): number => 10 ** -part;

  test.each([
    ['a mailbox’s beep', tone([1_000], 400, -20), 'none'],
    ['425 Hz for a quarter of a second', tone([425], 250, -20), 'cadence'],
    ['ringback’s pair, too short for ringback', tone([440, 480], 600, -20), 'cadence'],
    ['a busy tone’s pair', tone([480, 620], 500, -20), 'cadence'],
    ['a microwave’s beep', tone([2_050], 500, -20), 'appliance'],
    [
      'a tone that dies away',
      moving(
        () => 1_250,
        500,
        -10,
        (wave, part) => wave * dying(part),
      ),
      'fading',
    ],
    ['a tone with its octave', mixed(tone([1_100], 400, -16), tone([2_200], 400, -22)), 'echo'],
    ['a tone in a room', inRoom(tone([1_300], 400, -12)), 'echo'],
  ])('%s', (_, samples, doubt) => {
    expect(doubtOf(samples)).toBe(doubt);
  });
});

describe('keys', () => {
  const rows = [697, 770, 852, 941];
  const columns = [1_209, 1_336, 1_477];
  test.each(rows.flatMap((low) => columns.map((high) => [low, high] as const)))(
    '%i and %i Hz are not a beep, held briefly or long',
    (low, high) => {
      for (const ms of [80, 200, 800]) {
        const key = mixed(tone([low], ms, -14), tone([high], ms, -11));

        expect(kinds(hear(joined([quiet, key])))).toEqual(['signalling']);
      }
    },
  );
});

describe('fax machines', () => {
  test('are known when calling: 1100 Hz for half a second before any voice', () => {
    const calling = joined([quiet, cadence([1_100], 500, 3_000, 2)]);

    expect(kinds(hear(calling, { afterSpeech: false }))).toEqual(['fax', 'fax']);
  });

  test('are known a second after answering, and reported once', () => {
    const reported = hear(joined([quiet, tone([2_100], 3_000, -14)]), { afterSpeech: false });

    expect(reported).toMatchObject([{ kind: 'fax', hz: 2_100 }]);
    expect(reported[0]?.atMs).toBeLessThanOrEqual(1_560);
  });

  test('are known when answering with a phase reversal every 450 ms', () => {
    const parts = Array.from({ length: 6 }, (_, index) =>
      tone([2_100], 450, -14).map((sample) => (index % 2 === 0 ? sample : -sample)),
    );

    expect(kinds(hear(joined([quiet, ...parts]), { afterSpeech: false }))).toEqual(['fax']);
  });
});

describe('a sound that is not a beep', () => {
  const random = seededRandom(3);
  const vowel = (pitchHz: number): Int16Array =>
    moving(
      (_, seconds) => pitchHz * (1 + 0.02 * Math.sin(2 * Math.PI * 5 * seconds)),
      800,
      -8,
      (wave, part) => Math.sin(Math.PI * part) * (wave + 0.6 * (2 * wave * wave - 1)) * 0.5,
    );
  test.each([
    ['silence', silence(3_000)],
    ['line noise', noise(random, 3_000, 100)],
    ['loud noise', noise(random, 3_000, 20_000)],
    ['mains hum', tone([50, 150, 250], 3_000, -30)],
    ['a sung vowel', vowel(400)],
    ['a high sung vowel', vowel(520)],
    ['an organ’s chord', tone([262, 330, 392, 523, 784], 1_500, -22)],
    [
      'a tune without rests',
      joined([523, 587, 659, 784, 659, 523].map((hz) => tone([hz, 2 * hz, 262], 300, -20))),
    ],
    [
      'typing',
      joined(Array.from({ length: 20 }, () => joined([noise(random, 12, 9_000), silence(88)]))),
    ],
    ['a tone that never ends', tone([1_000], 6_000, -20)],
    ['60 ms of a tone', tone([1_000], 60, -20)],
  ])('%s', (_, samples) => {
    for (const afterSpeech of [false, true]) {
      expect(kinds(hear(joined([quiet, samples]), { afterSpeech }))).not.toContain('beep');
    }
  });

  test('a minute of voices', () => {
    for (let seed = 0; seed < 12; seed += 1) {
      const voices = babble(seededRandom(seed), 5_000);

      expect(kinds(hear(voices))).not.toContain('beep');
    }
  });
});

describe('frame by frame', () => {
  function stepsOf(samples: Int16Array): ToneStep[] {
    const recent = newRecentAudio();
    const detector = createToneDetector(recent);
    return Array.from({ length: samples.length / frameSamples }, (_, index) => {
      addFrame(recent, samples.subarray(index * frameSamples, (index + 1) * frameSamples));
      return detector.push(true);
    });
  }

  test('a tone is not speech, and its meaning is open until it is classified', () => {
    const steps = stepsOf(joined([silence(200), tone([1_000], 400, -20), silence(200)]));

    expect(steps.slice(0, 10).some(({ tonal, pending }) => tonal || pending)).toBe(false);
    expect(steps.slice(15, 30).every(({ tonal, pending }) => tonal && pending)).toBe(true);
    const known = steps.findIndex(({ found }) => found !== undefined);
    expect(steps.slice(30, known).every(({ tonal, pending }) => !tonal && pending)).toBe(true);
    expect(steps[known]).toMatchObject({ tonal: false, pending: false, found: { kind: 'beep' } });
  });

  test('a tone too long for a beep is not pending until its end', () => {
    const steps = stepsOf(tone([1_000], 4_000, -20));

    expect(steps[100]).toMatchObject({ tonal: true, pending: true, hz: expect.closeTo(1_000, 0) });
    expect(steps[150]).toMatchObject({ tonal: true, pending: false });
  });

  test('only finite measures are reported, whatever the audio', () => {
    for (let seed = 0; seed < 20; seed += 1) {
      const random = seededRandom(seed);
      const lost = new Set(Array.from({ length: 100 }, () => Math.floor(random() * 1_000)));
      for (const { hz, ms } of hear(anything(random, 12_000), { lost })) {
        expect(hz).toBeGreaterThan(0);
        expect(ms).toBeGreaterThan(0);
        expect(Number.isFinite(hz + ms)).toBe(true);
      }
    }
  });
});
