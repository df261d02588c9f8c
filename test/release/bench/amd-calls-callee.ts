// The callee of the bench: sipp. From the answer on, it streams ten seconds of a recorded person or
// voicemail as G.711.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createDetector } from '../../../src/amd/detector.ts';
import { frameSamples } from '../../../src/amd/frame.ts';
import { defaultAmdTimers } from '../../../src/calls/call-types.ts';
import { type AmdEvent, verdictOf } from '../../../src/calls/detection/amd-event.ts';
import { encode } from '../../../src/media/g711.ts';
import { readManifest, readSamples } from '../../amd-corpus/score/manifest.ts';
import { startSipp } from '../../support/sipp.ts';

export const callSeconds = 10;
/**
 * A verdict that takes longer than this might come after the end of a call that is set up slowly.
 */
const latestVerdictSeconds = 8;
const framesASecond = 50;
const samplesASecond = framesASecond * frameSamples;
const samplesAMillisecond = samplesASecond / 1_000;
/**
 * The delays of the audio to try. Some are not multiples of a frame, because the frame boundaries
 * influence the verdict.
 */
const startsMs = [0, 7, 20, 33, 100, 500, 1_000] as const;
/** sipp requires a bound. This one suffices for a run of hours. */
const mostCalls = 10_000_000;
const longestRunMs = 6 * 3_600_000;

export type Callee = AsyncDisposable & {
  readonly recordings: number;
  /** Returns the SIP URI that plays this recording. */
  readonly uri: (recording: number) => string;
  readonly nameOf: (recording: number) => string;
  readonly verdictOf: (recording: number) => string;
};

type Recording = {
  readonly name: string;
  readonly samples: Int16Array;
  readonly verdict: string;
};

export async function startCallee(): Promise<Callee> {
  const recordings = await chooseRecordings();
  const folder = await mkdtemp(join(tmpdir(), 'offhook-bench-amd-calls-'));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    const files = recordings.map((_, index) => join(folder, `${index}.ulaw`));
    for (const [index, { samples }] of recordings.entries()) {
      await writeFile(files[index] ?? '', encode('PCMU', samples));
    }
    const sipp = await startSipp({
      scenario: 'amd-calls',
      keys: { recordings: branches(files) },
      calls: mostCalls,
      pauseMs: callSeconds * 1_000,
      keepMessages: false,
      timeoutMs: longestRunMs,
    });
    return {
      recordings: recordings.length,
      uri: (recording) => sipp.uri(`r${recording}`),
      nameOf: (recording) => recordings[recording]?.name ?? '',
      verdictOf: (recording) => recordings[recording]?.verdict ?? '',
      async [Symbol.asyncDispose]() {
        await sipp.stop();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

/**
 * Returns scenario elements that play the file of each recording. sipp does not accept a variable
 * for the name of a file.
 */
function branches(files: readonly string[]): string {
  const choices = files.map(
    (_, index) => `<nop next="play${index}" test="is${index}"><action>
<test assign_to="is${index}" variable="number" compare="equal" value="${index}"/></action></nop>`,
  );
  const plays = files.map(
    (file, index) => `<label id="play${index}"/>
<nop next="talking"><action><exec rtp_stream="${file},1,0,PCMU/8000"/></action></nop>`,
  );
  return [...choices, '<nop next="talking"/>', ...plays].join('\n');
}

/**
 * Chooses as many people as machines, alternating. Takes only recordings whose label the detector
 * alone finds in time. `npm run amd:score` measures how often the detector is right. This bench
 * only checks that it is right as often on live calls.
 */
async function chooseRecordings(): Promise<readonly Recording[]> {
  const labelled = await readManifest(
    fileURLToPath(new URL('../../fixtures/amd/manifest.csv', import.meta.url)),
  );
  const people: Recording[] = [];
  const machines: Recording[] = [];
  for (const { file, truth } of labelled) {
    const { label } = truth;
    if (label !== 'human' && label !== 'machine') continue;
    const samples = await readTenSeconds(file);
    const verdict = `amd_${label}_detected`;
    if (detects(samples, verdict))
      (label === 'human' ? people : machines).push({ name: basename(file), samples, verdict });
  }
  const pairs = Math.min(people.length, machines.length);
  return Array.from({ length: pairs }, (_, index) => [people[index], machines[index]])
    .flat()
    .filter((recording) => recording !== undefined);
}

/** Reads ten seconds of a recording. A shorter one is followed by silence. */
async function readTenSeconds(file: string): Promise<Int16Array> {
  const samples = new Int16Array(callSeconds * samplesASecond);
  samples.set((await readSamples(file)).subarray(0, samples.length));
  return samples;
}

/**
 * Returns true if the detector finds the verdict for every delay of the audio. A recording at the
 * edge of a timer says nothing about load.
 */
function detects(samples: Int16Array, verdict: string): boolean {
  return startsMs.every((startMs) => hear(samples, startMs * samplesAMillisecond) === verdict);
}

function hear(samples: Int16Array, start: number): string | undefined {
  const heard = new Int16Array(samples.length);
  heard.set(samples.subarray(0, samples.length - start), start);
  const detector = createDetector({ timers: defaultAmdTimers });
  const events: AmdEvent[] = [];
  for (let frame = 0; frame < latestVerdictSeconds * framesASecond; frame += 1) {
    const from = frame * frameSamples;
    events.push(...detector.push(heard.slice(from, from + frameSamples), false));
  }
  detector.stop('recording-ended');
  return verdictOf(events);
}
