// Runs `offhook amd`, which analyses recordings and prints their events. With --plot, the command
// also draws the recordings on an HTML page.

import { writeFile } from 'node:fs/promises';
import { timersSchema } from '../../api/dialout/dialout-schema.ts';
import type { AmdSettings } from '../../calls/call-types.ts';
import { type DetectionPace, paceSettings } from '../../calls/detection/detection-members.ts';
import { readTimers } from '../calls/dial-options.ts';
import type { CliContext } from '../cli-context.ts';
import { CliError } from '../cli-error.ts';
import { talkTime } from '../picked-up.ts';
import { findRecordings, readRecording } from './amd-files.ts';
import { eventLine, firstVerdictNote, plural, seconds } from './amd-lines.ts';
import { firstVerdictFrom, listenTo, verdictFrom } from './amd-listen.ts';
import type { Plotted } from './amd-plot.ts';
import { maxRecordingMs, type Recording, readWav } from './amd-wav.ts';

export type AmdOptions = {
  readonly json?: boolean;
  readonly plot?: string;
  readonly quiet?: boolean;
  readonly channel: string;
  readonly thresholdWordCount?: string;
  readonly detection?: DetectionPace;
  readonly timer: readonly string[];
};

type Output = Pick<CliContext, 'print' | 'note' | 'interrupted'>;

type Heard = {
  count: number;
  audioMs: number;
  listenedMs: number;
  severalChannels: boolean;
  /** Recordings to draw. Always empty without --plot. */
  readonly plotted: Plotted[];
};

export async function runAmd(
  context: Output,
  paths: readonly string[],
  options: AmdOptions,
): Promise<void> {
  const settings = settingsFrom(options);
  const channel = channelFrom(options.channel);
  if (paths.length === 0) throw new CliError('no recordings or folders given');
  const files = await findRecordings(paths);
  if (files.length === 0) throw new CliError('no WAV files found');

  const heard = await hearAll(context, files, { settings, channel, options });
  if (heard.severalChannels)
    context.note(
      `Some recordings have several channels: channel ${channel} was analysed (--channel).`,
    );
  // With --json, standard output is reserved for programs.
  if (options.quiet === true) context[options.json === true ? 'note' : 'print'](speedLine(heard));
  if (options.plot !== undefined) await writePlot(context, options.plot, heard.plotted);
  const failed = files.length - heard.count;
  if (failed > 0)
    throw new CliError(`${failed} of ${plural(files.length, 'recording')} could not be analysed`);
}

type Request = {
  readonly settings: AmdSettings;
  readonly channel: number;
  readonly options: AmdOptions;
};

async function hearAll(
  context: Output,
  files: readonly string[],
  request: Request,
): Promise<Heard> {
  const heard: Heard = {
    ...{ count: 0, audioMs: 0, listenedMs: 0 },
    ...{ severalChannels: false, plotted: [] },
  };
  for (const file of files) {
    if (context.interrupted.aborted) throw new CliError('interrupted');
    const recording = await load(file, request.channel);
    if (typeof recording !== 'string') hear(context, file, recording, request, heard);
    else {
      context.note(`${file}: ${recording}`);
      if (request.options.json === true) context.print(JSON.stringify({ file, error: recording }));
    }
  }
  return heard;
}

function hear(
  context: Output,
  file: string,
  { samples, channels }: Recording,
  { settings, options }: Request,
  heard: Heard,
): void {
  const startedMs = performance.now();
  const events = listenTo(samples, settings);
  heard.listenedMs += performance.now() - startedMs;
  const durationMs = samples.length / 8;
  heard.count += 1;
  heard.audioMs += durationMs;
  heard.severalChannels ||= channels > 1;
  const plotted = { file, durationMs, events, verdict: verdictFrom(events), samples };
  show(context, plotted, options);
  if (options.plot !== undefined) heard.plotted.push(plotted);
}

async function load(file: string, channel: number): Promise<Recording | string> {
  const bytes = await readRecording(file);
  if (typeof bytes === 'string') return bytes;
  const result = readWav(bytes, channel);
  return result.kind === 'recording' ? result.recording : result.problem;
}

function show(
  { print }: Output,
  { file, verdict, events, durationMs }: Plotted,
  { json, quiet }: AmdOptions,
): void {
  if (json === true) {
    const lines = events.map(({ event, ...evidence }) => ({
      event,
      atMs: evidence.elapsedMs,
      ...evidence,
    }));
    const { verdict: firstVerdict } = firstVerdictFrom(events);
    print(JSON.stringify({ file, verdict, firstVerdict, events: lines }));
    return;
  }
  if (quiet === true) return;
  const cut = durationMs >= maxRecordingMs ? ', the rest ignored' : '';
  print(`${file}  ${seconds(durationMs)}${cut}  → ${verdict}${firstVerdictNote(events)}`);
  for (const event of events) print(eventLine(event));
}

function speedLine({ count, audioMs, listenedMs }: Heard): string {
  const times = Math.round(audioMs / Math.max(1, listenedMs));
  return `${plural(count, 'recording')}, ${talkTime(audioMs)} of audio in ${talkTime(listenedMs)}: ${times} times as fast as a call.`;
}

async function writePlot({ note }: Output, path: string, plotted: Plotted[]): Promise<void> {
  const { plotPage } = await import('./amd-plot.ts');
  await writeFile(path, await plotPage(plotted)).catch((error: unknown) => {
    throw new CliError(`${path} cannot be written`, { cause: error });
  });
  note(`plot: ${path}`);
}

export function settingsFrom(
  options: Pick<AmdOptions, 'timer' | 'thresholdWordCount' | 'detection'>,
): AmdSettings {
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
    ...paceSettings(options.detection ?? 'fast'),
    ...(words === undefined ? {} : { thresholdWordCount: Number(words) }),
  };
}

function channelFrom(text: string): number {
  const named: Readonly<Record<string, number>> = { left: 1, right: 2 };
  const channel = named[text] ?? (/^[1-9]\d?$/.test(text) ? Number(text) : undefined);
  if (channel === undefined) throw new CliError('--channel must be left, right, or 1 to 99');
  return channel;
}
