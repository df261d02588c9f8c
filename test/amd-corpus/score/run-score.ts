// Runs detection on labelled recordings. It prints the figures and the mistakes. On request it
// compares the figures with those of an earlier version, stores them in a file, or draws the
// recordings on a page.

import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { settingsFrom } from '../../../src/cli/amd/amd-command.ts';
import { listenTo, verdictFrom } from '../../../src/cli/amd/amd-listen.ts';
import { type Plotted, plotPage } from '../../../src/cli/amd/amd-plot.ts';
import { compareLines, readSummary } from './compare.ts';
import { summaryLines } from './figures.ts';
import { readManifest, readSamples, type Truth } from './manifest.ts';
import { faultsOf, type Judged, summarise } from './score.ts';

export async function runScore(
  args: readonly string[],
  print: (line: string) => void,
): Promise<void> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      summary: { type: 'string' },
      compare: { type: 'string' },
      plot: { type: 'string' },
      'threshold-word-count': { type: 'string' },
      'person-after-silence-ms': { type: 'string' },
      timer: { type: 'string', multiple: true, default: [] },
    },
  });
  const [manifest] = positionals;
  if (manifest === undefined || positionals.length > 1)
    throw new Error('give exactly one manifest');
  const before = values.compare === undefined ? undefined : await readSummary(values.compare);
  const thresholdWordCount = values['threshold-word-count'];
  const silenceMs = values['person-after-silence-ms'];
  const settings = {
    ...settingsFrom({
      timer: values.timer,
      ...(thresholdWordCount === undefined ? {} : { thresholdWordCount }),
    }),
    ...(silenceMs === undefined ? {} : { personAfterSilenceMs: Number(silenceMs) }),
  };
  const judged: Judged[] = [];
  const plotted: Plotted[] = [];
  for (const { file, truth } of await readManifest(manifest)) {
    const samples = await readSamples(file);
    const events = listenTo(samples, settings);
    const result = { file, durationMs: samples.length / 8, events, verdict: verdictFrom(events) };
    judged.push({ ...result, truth });
    if (values.plot !== undefined)
      plotted.push({ ...result, samples, truth: drawable({ ...result, truth }) });
  }
  const summary = summarise(judged);
  if (values.summary !== undefined)
    await writeFile(values.summary, `${JSON.stringify(summary, undefined, 2)}\n`);
  if (values.plot !== undefined) await writeFile(values.plot, await plotPage(plotted));
  const lines = before === undefined ? summaryLines(summary) : compareLines(before, summary);
  for (const line of lines) print(line);
}

function drawable(judged: Judged): NonNullable<Plotted['truth']> {
  const { label } = judged.truth;
  const lane = { kind: 'truth', name: 'Truth', items: truthItems(judged.truth) };
  return { label, faults: faultsOf(judged), lane };
}

function truthItems({ segments, transcript, words, beep }: Truth) {
  const said = transcript === undefined ? `${words ?? '?'} words` : `“${transcript}”`;
  const spoken = segments.map(([atMs, untilMs]) => ({ atMs, untilMs, text: said, tone: 'speech' }));
  if (beep === undefined) return spoken;
  const { startMs: atMs, endMs: untilMs, hz } = beep;
  return [...spoken, { atMs, untilMs, text: `beep ${hz ?? '?'} Hz`, tone: 'beep' }];
}
