// Keys by SIP INFO: they leave in order, one at a time, and are reported for each command.

import { beforeEach, describe, expect, test } from 'vitest';
import type { KeysSent } from '../../../src/calls/keys/keys.ts';
import { LineKeys } from '../../../src/calls/keys/line-keys.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { eventually } from '../../support/eventually.ts';
import { recordedLogger } from '../../support/recorded-logger.ts';

let pressed: string[];
let reported: KeysSent[];
let keys: LineKeys;
/** Answers to the keys that were sent, in order. */
let answers: ((isTaken: boolean) => void)[];

beforeEach(() => {
  [pressed, reported, answers] = [[], [], []];
  keys = new LineKeys(
    (digit, durationMs) => {
      pressed.push(`${digit} ${durationMs}`);
      return new Promise((resolve) => answers.push(resolve));
    },
    (report) => reported.push(report),
    silentLogger,
  );
});

async function answered(isTaken: boolean): Promise<void> {
  await eventually(() => answers.length > 0, 'a key was sent');
  answers.shift()?.(isTaken);
}

describe('keys by SIP INFO', () => {
  test('leave one at a time, in the order of their commands, and are reported for each command', async () => {
    keys.press({ commandId: 'one', digits: '4w#', durationMs: 40 });
    keys.press({ commandId: 'two', digits: 'A', durationMs: 60 });
    expect(pressed).toEqual(['4 40']);
    await answered(true);
    await answered(true);
    await eventually(() => reported.length === 1, 'the first command is reported');
    await answered(true);
    await eventually(() => reported.length === 2, 'the second command is reported');

    expect(pressed).toEqual(['4 40', '# 40', 'A 60']);
    expect(reported).toEqual([
      { commandId: 'one', digits: '4w#', complete: true },
      { commandId: 'two', digits: 'A', complete: true },
    ]);
  });

  test('stop at a key that the far end does not take, and go on with the next command', async () => {
    keys.press({ commandId: 'one', digits: '12', durationMs: 40 });
    keys.press({ commandId: 'two', digits: '3', durationMs: 40 });
    await answered(false);
    await answered(true);
    await eventually(() => reported.length === 2, 'both commands are reported');

    expect(pressed).toEqual(['1 40', '3 40']);
    expect(reported[0]).toEqual({ commandId: 'one', digits: '', complete: false });
  });

  test('are reported at once when they are stopped, including the key that has left; later keys are pressed', async () => {
    keys.press({ commandId: 'one', digits: '12', durationMs: 40 });
    keys.press({ commandId: 'two', digits: '3', durationMs: 40 });
    keys.stop();
    expect(reported).toEqual([
      { commandId: 'one', digits: '1', complete: false },
      { commandId: 'two', digits: '', complete: false },
    ]);

    keys.press({ commandId: 'three', digits: '4', durationMs: 40 });
    await answered(true);
    await answered(true);
    await eventually(() => reported.length === 3, 'the later command is reported');
    expect(pressed).toEqual(['1 40', '4 40']);
  });

  test('are not pressed if a hundred commands already wait', () => {
    for (let count = 0; count <= 100; count += 1) {
      keys.press({ commandId: String(count), digits: '1', durationMs: 40 });
    }

    expect(reported).toEqual([{ commandId: '100', digits: '', complete: false }]);
  });
});

test('logs a defect while a key is pressed, and reports the waiting keys as not pressed', async () => {
  const { logger, lines } = recordedLogger();
  const reports: KeysSent[] = [];
  const broken = new LineKeys(
    async () => {
      throw new Error('a defect');
    },
    (report) => reports.push(report),
    logger,
  );
  broken.press({ commandId: 'one', digits: '12', durationMs: 40 });
  broken.press({ commandId: 'two', digits: '3', durationMs: 40 });
  await eventually(() => reports.length === 2, 'both commands are reported');

  expect(reports).toMatchObject([
    { commandId: 'one', complete: false },
    { commandId: 'two', digits: '', complete: false },
  ]);
  expect(lines).toMatchObject([{ work: 'pressing keys', err: { message: 'a defect' } }]);
});
