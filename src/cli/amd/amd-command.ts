// offhook amd: recordings in, events out; with a manifest the benchmark, with --plot the picture.

import { writeFile } from 'node:fs/promises';
import { timersSchema } from '../../api/dialout/dialout-schema.ts';
import type { AmdSettings } from '../../calls/call-types.ts';
import { readTimers } from '../calls/dial-options.ts';
import type { CliContext } from '../cli-context.ts';
import { CliError } from '../cli-error.ts';
import { compareLines, type EarlierSummary, readSummary } from './amd-compare.ts';
import { findRecordings, readRecording } from './amd-files.ts';
import { listenTo, verdictFrom } from './amd-listen.ts';
import { type Manifest, readManifest } from './amd-manifest.ts';
import type { AmdOptions } from './amd-options.ts';
import type { Plotted } from './amd-plot.ts';
import { duration, eventLine, plural, seconds, summaryLines } from './amd-report.ts';
import { faultsOf, type Judged, type Summary, summarise } from './amd-score.ts';
import { longestRecordingMs, type Recording, readWav } from './amd-wav.ts';

type Heard = Omit<Plotted, 'samples'>;

type Request = {
  readonly settings: AmdSettings;
  readonly channel: number;
  readonly options: AmdOptions;
  readonly manifest: Manifest | undefined;
  readonly before: EarlierSummary | undefined;
};

export async function runAmd(
  context: Pick<CliContext, 'print' | 'note' | 'interrupted'>,
  paths: readonly string[],
  options: AmdOptions,
): Promise<void> {
  const settings = settingsFrom(options);
  const channel = channelFrom(options.channel);
  const manifest =
    options.manifest === undefined ? undefined : await readManifest(options.manifest);
  for (const name of ['summary', 'compare'] as const) {
    if (options[name] === undefined || manifest !== undefined) continue;
    throw new CliError(`--${name} needs a --manifest: without the truth there are no figures`);
  }
  const before = options.compare === undefined ? undefined : await readSummary(options.compare);
  const files = paths.length > 0 ? await findRecordings(paths) : manifest?.files;
  if (files === undefined) throw new CliError('name recordings, folders, or a --manifest');
  if (files.length === 0) throw new CliError('no WAV files there');

  const request: Request = { settings, channel, options, manifest, before };
  const { heard, failed, listenedMs } = await hearAll(context, files, request);
  const summary = judge(context, heard, request, listenedMs);
  await writeFiles(context, heard, summary, options);
  if (failed > 0) {
    throw new CliError(`${failed} of ${plural(files.length, 'recording')} could not be heard`);
  }
}

type Session = {
  /** With samples where they are to be drawn. */
  readonly heard: Plotted[];
  failed: number;
  listenedMs: number;
  severalChannels: boolean;
};

async function hearAll(
  context: Pick<CliContext, 'print' | 'note' | 'interrupted'>,
  files: readonly string[],
  request: Request,
): Promise<Session> {
  const session: Session = { heard: [], failed: 0, listenedMs: 0, severalChannels: false };
  for (const file of files) {
    if (context.interrupted.aborted) throw new CliError('interrupted');
    const recording = await load(file, request.channel);
    if (typeof recording !== 'string') {
      hear(context, file, recording, request, session);
      continue;
    }
    session.failed += 1;
    context.note(`${file}: ${recording}`);
    if (request.options.json === true) context.print(JSON.stringify({ file, error: recording }));
  }
  if (session.severalChannels) {
    context.note(`Of several channels, number ${request.channel} was heard (--channel).`);
  }
  return session;
}

function hear(
  context: Pick<CliContext, 'print'>,
  file: string,
  { samples, channels }: Recording,
  { settings, manifest, options }: Request,
  session: Session,
): void {
  const startedMs = performance.now();
  const events = listenTo(samples, settings);
  session.listenedMs += performance.now() - startedMs;
  session.severalChannels ||= channels > 1;
  const truth = manifest?.truthOf(file);
  const heard: Heard = {
    file,
    durationMs: samples.length / 8,
    events,
    verdict: verdictFrom(events),
    ...(truth === undefined ? {} : { truth }),
  };
  show(context, heard, options);
  session.heard.push(options.plot === undefined ? heard : { ...heard, samples });
}

async function load(file: string, channel: number): Promise<Recording | string> {
  const bytes = await readRecording(file);
  if (typeof bytes === 'string') return bytes;
  const result = readWav(bytes, channel);
  return result.kind === 'recording' ? result.recording : result.problem;
}

function show(context: Pick<CliContext, 'print'>, heard: Heard, options: AmdOptions): void {
  const { file, verdict, events, durationMs } = heard;
  if (options.json === true) {
    const lines = events.map(({ event, ...evidence }) => ({
      event,
      atMs: evidence.elapsedMs,
      ...evidence,
    }));
    context.print(JSON.stringify({ file, verdict, events: lines }));
    return;
  }
  if (options.quiet === true) return;
  const cut = durationMs >= longestRecordingMs ? ', the rest not heard' : '';
  context.print(`${file}  ${seconds(durationMs)}${cut}  → ${verdict}${truthRemark(heard)}`);
  for (const event of events) context.print(eventLine(event));
}

function truthRemark({ truth, ...rest }: Heard): string {
  if (truth === undefined) return '';
  const faults = faultsOf({ ...rest, truth });
  return faults.length === 0 ? `  ✓ ${truth.label}` : `  ✗ ${faults.join('; ')}`;
}

function judge(
  context: Pick<CliContext, 'print' | 'note'>,
  heard: readonly Heard[],
  { manifest, options, before }: Request,
  listenedMs: number,
): Summary | undefined {
  const audioMs = heard.reduce((sum, { durationMs }) => sum + durationMs, 0);
  // With --json standard output is for programs.
  const say = options.json === true ? context.note : context.print;
  if (manifest === undefined) {
    if (options.quiet === true) say(speedLine(heard.length, audioMs, listenedMs));
    return undefined;
  }
  const judged = heard.filter((item): item is Judged => item.truth !== undefined);
  const unlisted = heard.length - judged.length;
  if (unlisted > 0) context.note(`${plural(unlisted, 'recording')} not in the manifest`);
  if (judged.length === 0) return undefined;
  const summary = summarise(judged);
  if (options.quiet !== true || options.json === true) say('');
  const lines = before === undefined ? summaryLines(summary) : compareLines(before, summary);
  for (const line of lines) say(line);
  say('');
  say(speedLine(heard.length, audioMs, listenedMs));
  return summary;
}

function speedLine(files: number, audioMs: number, listenedMs: number): string {
  const times = Math.round(audioMs / Math.max(1, listenedMs));
  return `${plural(files, 'recording')}, ${duration(audioMs)} of audio in ${duration(listenedMs)}: ${times} times as fast as a call.`;
}

async function writeFiles(
  context: Pick<CliContext, 'note'>,
  heard: readonly Plotted[],
  summary: Summary | undefined,
  options: AmdOptions,
): Promise<void> {
  if (options.summary !== undefined && summary !== undefined) {
    await write(options.summary, `${JSON.stringify(summary, undefined, 2)}\n`);
    context.note(`figures: ${options.summary}`);
  }
  if (options.plot !== undefined) {
    const { plotPage } = await import('./amd-plot.ts');
    await write(options.plot, plotPage(heard, summary));
    context.note(`plot: ${options.plot}`);
  }
}

async function write(path: string, text: string): Promise<void> {
  await writeFile(path, text).catch((error: unknown) => {
    throw new CliError(`${path} cannot be written`, { cause: error });
  });
}

function settingsFrom(options: AmdOptions): AmdSettings {
  const timers = timersSchema.safeParse(readTimers(options.timer));
  if (!timers.success) {
    const [issue] = timers.error.issues;
    throw new CliError(`--timer ${issue?.path.join('.')}: ${issue?.message}`);
  }
  const words = options.thresholdWordCount;
  if (words !== undefined && !/^[1-9]\d{0,2}$/.test(words)) {
    throw new CliError('--threshold-word-count must be 1 to 999');
  }
  return {
    timers: timers.data,
    ...(words === undefined ? {} : { thresholdWordCount: Number(words) }),
  };
}

function channelFrom(text: string): number {
  const named: Readonly<Record<string, number>> = { left: 1, right: 2 };
  const channel = named[text] ?? (/^[1-9]\d?$/.test(text) ? Number(text) : undefined);
  if (channel === undefined) throw new CliError('--channel must be left, right, or 1 to 99');
  return channel;
}
