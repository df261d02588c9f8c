// Where a recording is on its call's clock, and what the page says about it.

import { describe, expect, test } from 'vitest';
import { timelineOf } from '../../src/recording/thread/timeline.ts';

type Clock = {
  readonly startedAtMs: number;
  readonly durationMs?: number;
  readonly isCut: boolean;
  readonly pauses: readonly { readonly fromMs: number; readonly untilMs?: number }[];
  readonly gaps: readonly object[];
};
type ClockPage = {
  readonly recordingClock: (call: object, metadata?: object) => Clock | undefined;
  readonly filePosition: (clock: Clock, ms: number) => number;
  readonly callTime: (clock: Clock, fileMs: number) => number;
  readonly recordingItems: (clock: Clock, fromMs: number) => readonly object[];
};
type WordsPage = {
  readonly recordingWords: (about: object) => { readonly text: string };
  readonly pauseWords: (clock: object) => string;
};

const load = async (name: string): Promise<unknown> =>
  await import(new URL(`../../src/console/page/${name}`, import.meta.url).href);
const page = (await load('recording-clock.js')) as ClockPage;
const words = (await load('recording-words.js')) as WordsPage;

const startedAt = '2026-11-20T09:00:00.000Z';
const startedAtMs = Date.parse(startedAt);
const event = (type: string, data: object) => ({ type: `recording-${type}`, data });
const started = (fill: string) => event('started', { startedAt, fill });
const [paused, resumed] = [
  (offsetMs: number) => event('paused', { offsetMs, by: 'keys' }),
  (offsetMs: number) => event('resumed', { offsetMs }),
];

describe('the clock of a recording', () => {
  test('finds each sample of a file from which pauses were cut out', () => {
    const audio = (fromMs: number, untilMs: number) => ({
      ...{ kind: 'stored', at: fromMs * 8, bytes: (untilMs - fromMs) * 16 },
      read: () => undefined,
    });
    const pause = (fromMs: number) => ({ kind: 'pause', at: fromMs * 8, by: 'keys' });
    const resume = (untilMs: number) => ({ kind: 'resume', at: untilMs * 8 });
    const parts = [
      ...[audio(0, 1_000), pause(1_000), resume(3_000), audio(3_000, 3_500)],
      ...[pause(3_500), resume(3_600), audio(3_600, 5_000), { kind: 'end', at: 40_000, end: {} }],
    ] as Parameters<typeof timelineOf>[0];
    const file = timelineOf(parts, 'cut');
    const pauses = file.pauses.map(({ from, until, fileAt, by }) => ({
      ...{ fromMs: from / 8, untilMs: until / 8, fileMs: fileAt / 8, by },
    }));
    const metadata = { startedAt, durationMs: file.samples / 8, fill: 'cut', pauses, gaps: [] };
    const clock = page.recordingClock({ timeline: [] }, metadata) as Clock;

    expect(page.filePosition(clock, 5_000)).toBe(file.fileSamples / 8);
    for (const { fromMs, untilMs, fileMs } of pauses) {
      expect(
        [fromMs, (fromMs + untilMs) / 2, untilMs].map((ms) => page.filePosition(clock, ms)),
      ).toEqual([...[fileMs, fileMs, fileMs]]);
      expect(page.callTime(clock, fileMs)).toBe(untilMs);
      expect(page.callTime(clock, fileMs - 1)).toBe(fromMs - 1);
    }
    for (const ms of [0, 999, 3_000, 3_499, 3_600, 4_999])
      expect(page.callTime(clock, page.filePosition(clock, ms))).toBe(ms);
  });

  test('is the file’s own if pauses are silence', () => {
    const timeline = [started('silence'), paused(1_000), resumed(3_000)];
    const clock = page.recordingClock({ timeline, recording: { durationMs: 4_000 } }) as Clock;
    expect(page.filePosition(clock, 2_000)).toBe(2_000);
    expect(page.callTime(clock, 3_500)).toBe(3_500);
  });

  test('is read from the call’s events until there is metadata', () => {
    const timeline = [started('cut'), paused(1_000), resumed(3_000), paused(6_000)];
    expect(page.recordingClock({ timeline: [] })).toBeUndefined();
    const live = page.recordingClock({ timeline, recording: { state: 'paused' } }) as Clock;
    expect(live).toMatchObject({ startedAtMs, isCut: true, gaps: [] });
    expect(live.pauses).toEqual([
      { fromMs: 1_000, untilMs: 3_000, by: 'keys' },
      { fromMs: 6_000, untilMs: undefined, by: 'keys' },
    ]);
    // What isn't over lasts to the end of the picture.
    expect(page.recordingItems(live, startedAtMs - 500)).toEqual([
      { atMs: 500, untilMs: Number.POSITIVE_INFINITY, text: 'recorded', tone: 'recorded' },
      { atMs: 1_500, untilMs: 3_500, text: 'paused by keys', tone: 'paused' },
      {
        ...{ atMs: 6_500, untilMs: Number.POSITIVE_INFINITY },
        ...{ text: 'paused by keys', tone: 'paused' },
      },
    ]);
    const ended = page.recordingClock({ timeline, recording: { durationMs: 9_000 } }) as Clock;
    expect(ended.pauses[1]).toMatchObject({ fromMs: 6_000, untilMs: 9_000 });
  });
});

describe('the page’s words for a recording', () => {
  test.each([
    [{ state: 'paused', pausedBy: 'keys' }, /^Paused while the person presses keys\./],
    [{ state: 'storing' }, /^Being stored\. /],
    [{ state: 'storing', durationMs: 61_000 }, /^Being stored: 1:01\. /],
    [{ state: 'failed', reason: 'lost', durationMs: 0 }, /^Failed: the gateway died/],
    [{ state: 'failed', reason: 'disk-slow', durationMs: 4_000 }, /^Failed after 4\.0 s: .*slow/],
    [{ state: 'stored', deletedAt: startedAt, deletedBy: 'app-dev' }, /by the app app-dev\.$/],
    [{ state: 'stored', deletedAt: startedAt, deletedBy: 'person' }, /about this person\.$/],
  ])('%j', (recording, text) => {
    expect(words.recordingWords({ recording, startedAt }).text).toMatch(text);
  });

  test('say what became of pauses', () => {
    const pauses = [
      { fromMs: 1_000, untilMs: 2_000 },
      { fromMs: 3_000, untilMs: 3_500 },
    ];
    expect(words.pauseWords({ pauses: [], isCut: true })).toBe('');
    expect(words.pauseWords({ pauses, isCut: true })).toBe(
      'Paused 2 times, 1.5 s in all, which is cut out.',
    );
  });
});
