// The part of the test set that need not be stored: silences, network tones, music, and beeps of
// every pitch, length and level, alone and after recorded greetings. The samples are the same on
// every machine.

import { joined, silence, tone } from '../../src/embedded/sandbox/tones.ts';
import { seededRandom } from '../amd/made-up-audio.ts';
import type { Truth } from './score/manifest.ts';

export type Made = { readonly file: string; readonly samples: Int16Array; readonly truth: Truth };

/** A recorded greeting, with a beep after it or ringback before it. */
export type Greeting = {
  readonly name: string;
  readonly samples: Int16Array;
  readonly endMs: number;
};

export function makeSynthetic(voices: {
  readonly people: readonly Greeting[];
  readonly machines: readonly Greeting[];
}): readonly Made[] {
  return [
    ...silences(),
    ...networkTones(),
    ...music(),
    ...loneBeeps(),
    ...endedBy(voices.machines),
    ...voices.people.flatMap(amongTones),
    ...voices.people.map((person, index) => goingOn(person, voices.machines, index)),
    ...voices.people.map(askingAgain),
  ];
}

function silences(): Made[] {
  const ms = 7_500;
  const quiet = (name: string, samples: Int16Array): Made => ({
    file: `synthetic/silence-${name}`,
    samples,
    truth: { label: 'silence', expect: new Set(['no_speech']), segments: [] },
  });
  return [
    quiet('digital', silence(ms)),
    quiet('white-60', noise(1, ms, -60, 0)),
    quiet('white-48', noise(2, ms, -48, 0)),
    quiet('pink-45', noise(3, ms, -45, 0.9)),
    quiet('brown-40', noise(4, ms, -40, 0.99)),
    quiet('hum-50', sum([tone([50, 150], ms, -36), noise(5, ms, -60, 0)])),
    quiet('hum-60', sum([tone([60, 120, 180], ms, -36), noise(6, ms, -60, 0)])),
    quiet('clicks', clicks(7, ms)),
  ];
}

function networkTones(): Made[] {
  const heard = (name: string, samples: Int16Array): Made => ({
    file: `synthetic/other-${name}`,
    samples,
    truth: { label: 'other', expect: new Set(['no tone']), segments: [] },
  });
  const cadence = (hz: readonly number[], onOff: readonly number[], times: number) =>
    joined(
      Array.from({ length: times }, () =>
        onOff.map((ms, index) => (index % 2 === 0 ? tone(hz, ms, -16) : silence(ms))),
      ).flat(),
    );
  const sit = [950, 1_400, 1_800].map((hz) => tone([hz], 330, -12));
  return [
    heard('ringback-us', cadence([440, 480], [2_000, 4_000], 2)),
    heard('ringback-uk', cadence([400, 450], [400, 200, 400, 2_000], 4)),
    heard('ringback-eu', cadence([425], [1_000, 4_000], 3)),
    heard('busy-us', cadence([480, 620], [500, 500], 10)),
    heard('busy-eu', cadence([425], [480, 480], 10)),
    heard('congestion', cadence([480, 620], [250, 250], 20)),
    heard('dial-tone-us', tone([350, 440], 8_000, -16)),
    heard('dial-tone-eu', tone([425], 8_000, -14)),
    heard('sit', joined([silence(400), ...sit, silence(2_000)])),
    heard('fax-calling', cadence([1_100], [500, 3_000], 3)),
    heard('fax-called', joined([silence(500), tone([2_100], 3_000, -10), silence(3_000)])),
    heard('dtmf', joined([silence(600), ...digits('159#'), silence(2_000)])),
  ];
}

function digits(keys: string): Int16Array[] {
  const rows = [697, 770, 852, 941];
  const columns = [1_209, 1_336, 1_477];
  return Array.from(keys).flatMap((key) => {
    const at = '123456789*0#'.indexOf(key);
    const pair = [rows[Math.floor(at / 3)] ?? 0, columns[at % 3] ?? 0];
    return [tone(pair, 120, -12), silence(150)];
  });
}

function music(): Made[] {
  const chords = [
    [262, 330, 392],
    [220, 262, 330],
    [175, 220, 262, 349],
    [196, 247, 294, 392],
  ];
  const bars = [...chords, ...chords, ...chords].map((chord) => tone(chord, 700, -18));
  const scale = [523, 587, 659, 698, 784, 880, 988, 1_047, 988, 880, 784, 698, 659, 587];
  const melody = [...scale, ...scale].map((hz) =>
    sum([tone([hz], 300, -14), tone([hz * 2], 300, -22)]),
  );
  const played = (name: string, parts: readonly Int16Array[]): Made => ({
    file: `synthetic/other-${name}`,
    samples: joined(parts),
    truth: { label: 'other', expect: new Set(['no tone']), segments: [] },
  });
  return [played('organ', bars), played('melody', melody)];
}

type Beep = {
  readonly hz: readonly number[];
  readonly ms: number;
  readonly dbfs: number;
  /**
   * The frequencies sound one after another instead of together: a step, a warble, or a sweep in
   * many steps.
   */
  readonly inTurn?: true;
};

/**
 * The beeps of answering machines and mailboxes: single and double, short and long, and some hardly
 * audible.
 */
const beeps: readonly Beep[] = [
  { hz: [1_000], ms: 500, dbfs: -8 },
  { hz: [1_400], ms: 300, dbfs: -10 },
  { hz: [800], ms: 180, dbfs: -12 },
  { hz: [1_600], ms: 120, dbfs: -10 },
  { hz: [620], ms: 800, dbfs: -14 },
  { hz: [450], ms: 1_000, dbfs: -12 },
  { hz: [1_950], ms: 400, dbfs: -12 },
  { hz: [1_320], ms: 250, dbfs: -30 },
  { hz: [960], ms: 1_800, dbfs: -20 },
  { hz: [620, 930], ms: 400, dbfs: -16 },
  { hz: [440, 1_320], ms: 600, dbfs: -14 },
  { hz: [852], ms: 220, dbfs: -26 },
  { hz: [850, 1_100], ms: 400, dbfs: -12, inTurn: true },
  { hz: [960, 1_040, 960, 1_040, 960, 1_040, 960, 1_040], ms: 640, dbfs: -12, inTurn: true },
];

function loneBeeps(): Made[] {
  return beeps
    .filter(({ hz }) => (hz[0] ?? 0) > 500)
    .map((beep, index) => afterSilence(beep, 600 + 170 * index));
}

function afterSilence(beep: Beep, startMs: number): Made {
  return {
    file: `synthetic/machine-beep-${nameOf(beep)}`,
    samples: joined([silence(startMs), sound(beep), silence(1_000)]),
    truth: {
      label: 'machine',
      expect: new Set(['tone', 'no_speech']),
      segments: [],
      beep: { startMs, endMs: startMs + beep.ms, hz: beep.hz.join('+') },
    },
  };
}

function endedBy(greetings: readonly Greeting[]): Made[] {
  return beeps.flatMap((beep, index) => {
    const greeting = greetings[index % greetings.length];
    if (greeting === undefined) return [];
    // Shorter and longer than the silence that ends a greeting.
    const gapMs = [300, 700, 1_200, 2_600][index % 4] ?? 0;
    const startMs = Math.round(greeting.endMs) + gapMs;
    return {
      file: `synthetic/machine-${greeting.name}-beep-${nameOf(beep)}`,
      samples: joined([spoken(greeting), silence(gapMs), sound(beep), silence(1_000)]),
      truth: {
        label: 'machine',
        expect: new Set(['machine', 'tone']),
        segments: [],
        greetingEndMs: greeting.endMs,
        beep: { startMs, endMs: startMs + beep.ms, hz: beep.hz.join('+') },
      },
    };
  });
}

/**
 * A greeting that pauses after its hello for longer than the verdict "human" takes, and beeps long
 * after that.
 */
function goingOn(hello: Greeting, greetings: readonly Greeting[], index: number): Made {
  const greeting = greetings[index % greetings.length] ?? hello;
  const beep = beeps[index % beeps.length] ?? { hz: [1_000], ms: 500, dbfs: -10 };
  const pauseMs = [1_400, 1_700, 2_000][index % 3] ?? 0;
  const gapMs = [2_200, 400, 1_000, 1_600][index % 4] ?? 0;
  const parts = [
    spoken(hello),
    silence(pauseMs),
    spoken(greeting).map((sample) => Math.round(sample / 2)),
    silence(gapMs),
  ];
  const startMs = joined(parts).length / 8;
  return {
    file: `synthetic/machine-${hello.name}-goes-on-${greeting.name}-beep-${nameOf(beep)}`,
    samples: joined([...parts, sound(beep), silence(1_000)]),
    truth: {
      label: 'machine',
      expect: new Set(['machine', 'tone']),
      segments: [],
      greetingEndMs: startMs - gapMs,
      beep: { startMs, endMs: startMs + beep.ms, hz: beep.hz.join('+') },
    },
  };
}

/** A person who hears nothing and says it again. */
function askingAgain(hello: Greeting): Made {
  return {
    file: `synthetic/human-asks-again-${hello.name}`,
    samples: joined([spoken(hello), silence(1_800), spoken(hello), silence(4_000)]),
    truth: { label: 'human', expect: new Set(['human', 'no tone']), segments: [] },
  };
}

function spoken({ samples, endMs }: Greeting): Int16Array {
  return samples.subarray(0, Math.round(endMs) * 8);
}

function nameOf({ hz, ms, dbfs }: Beep): string {
  return `${[...new Set(hz)].join('+')}hz-${ms}ms${dbfs}db`;
}

function sound({ hz, ms, dbfs, inTurn }: Beep): Int16Array {
  if (inTurn === undefined) return tone(hz, ms, dbfs);
  return joined(hz.map((step) => tone([step], ms / hz.length, dbfs)));
}

/** A person after tones of the network, and before key presses. */
function amongTones({ name, samples, endMs }: Greeting): Made[] {
  const person = (kind: string, before: Int16Array, after: Int16Array): Made => ({
    file: `synthetic/human-${kind}-${name}`,
    samples: joined([before, samples, after]),
    truth: {
      label: 'human',
      expect: new Set(['human', 'no tone']),
      segments: [],
      greetingEndMs: before.length / 8 + endMs,
    },
  });
  return [
    person('after-ringback', joined([tone([440, 480], 1_500, -16), silence(400)]), silence(4_000)),
    person('then-keys', silence(0), joined([silence(200), ...digits('15'), silence(3_000)])),
  ];
}

function sum(parts: readonly Int16Array[]): Int16Array {
  const [first = new Int16Array(0)] = parts;
  return first.map((_, index) => parts.reduce((total, part) => total + (part[index] ?? 0), 0));
}

/**
 * Makes noise. With `smoothness` 0 it is white; towards 1 the high frequencies fall off. `dbfs` is
 * the root mean square.
 */
function noise(seed: number, ms: number, dbfs: number, smoothness: number): Int16Array {
  const random = seededRandom(seed);
  let value = 0;
  const raw = Float64Array.from({ length: ms * 8 }, () => {
    value = smoothness * value + random() * 2 - 1;
    return value;
  });
  const level = Math.sqrt(raw.reduce((power, sample) => power + sample * sample, 0) / raw.length);
  const gain = (32_768 * 10 ** (dbfs / 20)) / level;
  return Int16Array.from(raw, (sample) => Math.round(sample * gain));
}

function clicks(seed: number, ms: number): Int16Array {
  const random = seededRandom(seed);
  const samples = noise(seed + 1, ms, -62, 0);
  for (let click = 0; click < 12; click += 1) {
    const at = Math.floor(random() * (samples.length - 40));
    for (let index = 0; index < 24; index += 1) {
      samples[at + index] = Math.round((random() * 2 - 1) * 14_000 * (1 - index / 24));
    }
  }
  return samples;
}
