// The minimum that the detector must reach on the test set: recordings as they are, recordings as
// lines change them, and the synthetic part. A change that loses people, machines or beeps fails
// here. `npm run amd:score` prints the same figures in full.

import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { listenTo, verdictFrom } from '../../src/cli/amd/amd-listen.ts';
import { joined, silence } from '../../src/embedded/sandbox/tones.ts';
import { decodeTable, encode } from '../../src/media/g711.ts';
import { defaultSettings } from '../amd/listen.ts';
import { seededRandom } from '../amd/made-up-audio.ts';
import { readManifest, readSamples, type Truth } from './score/manifest.ts';
import { type Judged, type Share, type Summary, summarise } from './score/score.ts';
import { makeSynthetic } from './synthetic.ts';

const manifestPath = fileURLToPath(new URL('../fixtures/amd/manifest.csv', import.meta.url));

/** On an idle machine this takes seconds. */
const timeout = 120_000;

type Item = { readonly file: string; readonly samples: Int16Array; readonly truth: Truth };

let recordings: readonly Item[] = [];
let synthetic: readonly Item[] = [];
beforeAll(async () => {
  const labelled = await readManifest(manifestPath);
  recordings = await Promise.all(
    labelled.map(async ({ file, truth }) => ({ file, truth, samples: await readSamples(file) })),
  );
  const named = (names: RegExp) =>
    recordings
      .filter(({ file }) => names.test(basename(file)))
      .map(({ file, samples, truth }) => ({
        name: basename(file, '.wav'),
        samples,
        endMs: truth.greetingEndMs ?? 0,
      }));
  synthetic = makeSynthetic({
    people: named(/^human_real-(amelia|athena|allison|june)/),
    machines: named(/^machine_(en-nobody|fr-unavail|it-nobody)\.wav/),
  });
});

type Change = { readonly laterMs?: number; of?: (samples: Int16Array) => Int16Array };

function heard(items: readonly Item[], { laterMs = 0, of = (same) => same }: Change = {}): Summary {
  return summarise(
    items.map(({ file, samples, truth }): Judged => {
      const changed = of(joined([silence(laterMs), samples]));
      const events = listenTo(changed, defaultSettings);
      const durationMs = changed.length / 8;
      const verdict = verdictFrom(events);
      return { file, durationMs, events, verdict, truth: moved(truth, laterMs) };
    }),
  );
}

function moved(truth: Truth, byMs: number): Truth {
  const { beep, greetingEndMs } = truth;
  return {
    ...truth,
    ...(greetingEndMs === undefined ? {} : { greetingEndMs: greetingEndMs + byMs }),
    ...(beep === undefined
      ? {}
      : { beep: { ...beep, startMs: beep.startMs + byMs, endMs: beep.endMs + byMs } }),
  };
}

const percent = ({ count, of }: Share) => (of === 0 ? 0 : (100 * count) / of);

/** Describes a failure in enough detail to understand it. */
function wrong(summary: Summary): string {
  return summary.wrong.map(({ file, faults }) => `${file}: ${faults.join('; ')}`).join('\n');
}

/**
 * Minimum figures in per cent, a little below what the detector reaches. People taken for machines
 * are the most expensive mistake.
 */
type Floor = {
  readonly humansCalledMachines: number;
  readonly machinesKnown: number;
  readonly overall: number;
  readonly beepsFound: number;
  readonly beepsMet: number;
  /** Number of recordings. */
  readonly falseBeeps: number;
};

const asRecorded: Floor = {
  humansCalledMachines: 3,
  machinesKnown: 93,
  overall: 95,
  // One of 20 beeps is 5 %. Only together with the synthetic beeps must 95 % be found.
  beepsFound: 90,
  beepsMet: 90,
  falseBeeps: 0,
};
/** For recordings as lines change them. */
const changed: Floor = {
  humansCalledMachines: 6,
  machinesKnown: 89,
  overall: 94,
  beepsFound: 90,
  beepsMet: 90,
  falseBeeps: 1,
};
const synthesised: Floor = {
  humansCalledMachines: 0,
  machinesKnown: 95,
  overall: 95,
  beepsFound: 95,
  beepsMet: 95,
  falseBeeps: 0,
};

function expectAtLeast(floor: Floor, summary: Summary): void {
  const faults = wrong(summary);
  const { humansCalledMachines, machinesKnown, overall, beepsFound, beepsMet } = summary;
  expect(percent(machinesKnown), faults).toBeGreaterThanOrEqual(floor.machinesKnown);
  expect(percent(overall), faults).toBeGreaterThanOrEqual(floor.overall);
  expect(percent(beepsFound), faults).toBeGreaterThanOrEqual(floor.beepsFound);
  expect(percent(beepsMet), faults).toBeGreaterThanOrEqual(floor.beepsMet);
  expect(summary.falseBeeps.count, faults).toBeLessThanOrEqual(floor.falseBeeps);
  expect(percent(humansCalledMachines), faults).toBeLessThanOrEqual(floor.humansCalledMachines);
}

describe('recordings', () => {
  test('reach the minimum for people, machines, silence and beeps', { timeout }, () => {
    const summary = heard(recordings);

    expect(summary.files).toBe(73);
    expectAtLeast(asRecorded, summary);
    expect(percent(summary.silenceHeardAsSilence), wrong(summary)).toBe(100);
    expect(summary.humanVerdictDelayMs.median).toBeLessThanOrEqual(800);
    expect(summary.humanVerdictDelayMs.p95).toBeLessThanOrEqual(1_500);
  });

  test.each<[string, Change]>([
    ['12 dB quieter', { of: (samples) => samples.map((sample) => sample / 4) }],
    ['6 dB louder', { of: (samples) => samples.map((sample) => clipped(sample * 2)) }],
    ['with noise 20 dB below', { of: withNoise }],
    ['over A-law', { of: overAlaw }],
    ['with 2 % of the packets lost', { of: withLosses }],
    ['5 ms later', { laterMs: 5 }],
    ['800 ms later', { laterMs: 800 }],
  ])('are hardly worse %s', { timeout }, (_name, change) => {
    expectAtLeast(changed, heard(recordings, change));
  });
});

test('95 % of all beeps, recorded and synthetic, are reported within 150 ms of their end', {
  timeout,
}, () => {
  const summary = heard([...recordings, ...synthetic]);

  expect(summary.beepsMet.of).toBeGreaterThanOrEqual(50);
  expect(percent(summary.beepsMet), wrong(summary)).toBeGreaterThanOrEqual(95);
});

test('beeps alone and after greetings are found, nothing else counts as a beep, and silence is silence', {
  timeout,
}, () => {
  const summary = heard(synthetic);

  expectAtLeast(synthesised, summary);
  expect(percent(summary.silenceHeardAsSilence), wrong(summary)).toBe(100);
});

function clipped(sample: number): number {
  return Math.max(-32_768, Math.min(32_767, Math.round(sample)));
}

/** Adds noise below everything that is loud enough to be the speech. */
function withNoise(samples: Int16Array): Int16Array {
  const random = seededRandom(samples.length);
  const loud = samples.filter((sample) => Math.abs(sample) > 200);
  const power = loud.reduce((sum, sample) => sum + sample * sample, 0) / Math.max(1, loud.length);
  const level = Math.sqrt(power) / 10;
  return samples.map((sample) =>
    clipped(sample + (random() + random() + random() - 1.5) * 2 * level),
  );
}

function overAlaw(samples: Int16Array): Int16Array {
  return Int16Array.from(encode('PCMA', samples), (byte) => decodeTable.PCMA[byte] ?? 0);
}

/** Replaces lost packets by zeros, as a gateway before Offhook would. */
function withLosses(samples: Int16Array): Int16Array {
  const random = seededRandom(samples.length);
  const changed = Int16Array.from(samples);
  for (let at = 0; at < changed.length; at += 160) {
    if (random() < 0.02) changed.fill(0, at, at + 160);
  }
  return changed;
}
