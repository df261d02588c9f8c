// A media worker that stalls: it counts the frames that detection and bots heard late, and the log
// has one warning a minute.

import { describe, expect, test } from 'vitest';
import {
  createLateFramesLog,
  LateFrames,
  type LateFramesReport,
} from '../../src/media/playout/late-frames.ts';
import { eventually } from '../support/eventually.ts';
import { freePortRange } from '../support/free-port.ts';
import { recordedLogger } from '../support/recorded-logger.ts';
import { FarEnd } from './support/far-end.ts';
import { answerFor, callId, createScripted } from './support/gateway.ts';
import { observe, settingsFor } from './support/observed.ts';
import { script, standstillMs } from './support/scripted-detector.ts';

const tickMs = 20;
/** Later than this, a frame counts as late. */
const inTimeMs = 60;
const warning = 'a media worker stalled, so detection or a bot heard frames late, or not at all';

test('counts late frames of a busy worker for calls with listeners, and logs one warning', async () => {
  const { logger, lines } = recordedLogger();
  await using ports = await freePortRange(20);
  await using media = createScripted({ ...ports, logger });
  await using farEnd = await FarEnd.open();
  const open = async () => {
    const session = await media.open(callId, observe());
    session?.applyAnswer(answerFor(farEnd.port), 'answer');
    return session;
  };
  const late = async () => (await media.statistics()).framesLate;
  const fewest = Math.floor((standstillMs - inTimeMs) / tickMs) - 1;
  // Three calls: one without listeners, one with detection, and one that keeps the thread busy.
  await open();
  (await open())?.send({ kind: 'detect', settings: settingsFor() });
  (await open())?.send({ kind: 'detect', settings: settingsFor(script.blocks) });
  await eventually(async () => (await late()) >= 2 * fewest, 'the frames are counted');
  const first = await late();
  (await open())?.send({ kind: 'detect', settings: settingsFor(script.blocks) });
  await eventually(
    async () => (await late()) >= first + 3 * fewest,
    'the frames of the second stall are counted',
  );

  const warnings = lines.filter(({ msg }) => msg === warning);
  expect(warnings).toHaveLength(1);
  expect(warnings[0]?.['frames']).toBeGreaterThan(0);
  expect(warnings[0]?.['lateMs']).toBeGreaterThan(inTimeMs);
  const { ticksLate, framesLate } = await media.statistics();
  // Frames of the call without listeners are never counted.
  expect(framesLate).toBeLessThanOrEqual(3 * ticksLate);
});

describe('the reports of a worker', () => {
  function reporting() {
    const counts = { framesLate: 0, framesUnheard: 0 };
    const reports: LateFramesReport[] = [];
    const frames = new LateFrames(counts, (report) => reports.push(report));
    return { counts, reports, frames };
  }

  test('are not sent while every frame is in time', () => {
    const { frames, reports } = reporting();
    frames.check(20, 5, true);
    frames.check(40, 59, true);

    expect(reports).toEqual([]);
  });

  test('are sent once for each stall, when the worker has caught up', () => {
    const { frames, counts, reports } = reporting();
    counts.framesLate = 10;
    frames.check(1_000, 700, false);
    counts.framesLate = 30;
    counts.framesUnheard = 5;
    frames.check(1_005, 505, false);
    counts.framesLate = 35;
    frames.check(1_010, 310, true);
    frames.check(1_030, 1, true);
    counts.framesLate = 36;
    frames.check(2_000, 81, true);

    expect(reports).toEqual([
      { frames: 35, unheard: 5, lateMs: 700 },
      { frames: 1, unheard: 0, lateMs: 81 },
    ]);
  });

  test('are sent once a second by a worker that never catches up', () => {
    const { frames, counts, reports } = reporting();
    for (let nowMs = 0; nowMs <= 3_000; nowMs += 10) {
      counts.framesLate += 1;
      frames.check(nowMs, 100 + nowMs, false);
    }

    expect(reports.map((report) => report.frames)).toEqual([101, 101]);
  });
});

test('the log has one warning a minute for all workers, with all late frames since the previous one', () => {
  const { logger, lines } = recordedLogger();
  let nowMs = 5_000;
  const report = createLateFramesLog(logger, () => nowMs);
  for (; nowMs <= 125_000; nowMs += 1_000)
    report({ frames: 2, unheard: 1, lateMs: nowMs === 30_000 ? 900 : 80 });

  expect(lines).toMatchObject([
    { level: 40, msg: warning, frames: 2, unheard: 1, lateMs: 80 },
    { msg: warning, frames: 120, unheard: 60, lateMs: 900 },
    { msg: warning, frames: 120, lateMs: 80 },
  ]);
});
