// Keys by SIP INFO: in order, one at a time, and what is told of them.

import { beforeEach, describe, expect, test } from 'vitest';
import type { KeysSent } from '../../../src/calls/keys/keys.ts';
import { LineKeys } from '../../../src/calls/keys/line-keys.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { eventually } from '../../support/eventually.ts';
import { recordedLogger } from '../../support/recorded-logger.ts';

let pressed: string[];
let told: KeysSent[];
let keys: LineKeys;
/** Of those that are out, in their order. */
let answers: ((isTaken: boolean) => void)[];

beforeEach(() => {
  [pressed, told, answers] = [[], [], []];
  keys = new LineKeys(
    (digit, durationMs) => {
      pressed.push(`${digit} ${durationMs}`);
      return new Promise((resolve) => answers.push(resolve));
    },
    (report) => told.push(report),
    silentLogger,
  );
});

async function answered(isTaken: boolean): Promise<void> {
  await eventually(() => answers.length > 0, 'a key is out');
  answers.shift()?.(isTaken);
}

describe('keys by SIP INFO', () => {
  test('leave one at a time, those of the next command last, and are told as a whole', async () => {
    keys.press({ commandId: 'one', digits: '4w#', durationMs: 40 });
    keys.press({ commandId: 'two', digits: 'A', durationMs: 60 });
    expect(pressed).toEqual(['4 40']);
    await answered(true);
    await answered(true);
    await eventually(() => told.length === 1, 'the first command is done');
    await answered(true);
    await eventually(() => told.length === 2, 'the second one, too');

    expect(pressed).toEqual(['4 40', '# 40', 'A 60']);
    expect(told).toEqual([
      { commandId: 'one', digits: '4w#', complete: true },
      { commandId: 'two', digits: 'A', complete: true },
    ]);
  });

  test('end with one that is not taken; those of the next command are pressed', async () => {
    keys.press({ commandId: 'one', digits: '12', durationMs: 40 });
    keys.press({ commandId: 'two', digits: '3', durationMs: 40 });
    await answered(false);
    await answered(true);
    await eventually(() => told.length === 2, 'both are told');

    expect(pressed).toEqual(['1 40', '3 40']);
    expect(told[0]).toEqual({ commandId: 'one', digits: '', complete: false });
  });

  test('that are stopped are told at once, with the one that has left; later ones are pressed', async () => {
    keys.press({ commandId: 'one', digits: '12', durationMs: 40 });
    keys.press({ commandId: 'two', digits: '3', durationMs: 40 });
    keys.stop();
    expect(told).toEqual([
      { commandId: 'one', digits: '1', complete: false },
      { commandId: 'two', digits: '', complete: false },
    ]);

    keys.press({ commandId: 'three', digits: '4', durationMs: 40 });
    await answered(true);
    await answered(true);
    await eventually(() => told.length === 3, 'the later one is done');
    expect(pressed).toEqual(['1 40', '4 40']);
  });

  test('of more than a hundred commands that wait are not pressed', () => {
    for (let count = 0; count <= 100; count += 1) {
      keys.press({ commandId: String(count), digits: '1', durationMs: 40 });
    }

    expect(told).toEqual([{ commandId: '100', digits: '', complete: false }]);
  });
});

test('a defect while a key is pressed is logged, and the keys that wait are told as not pressed', async () => {
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
  await eventually(() => reports.length === 2, 'both are told');

  expect(reports).toMatchObject([
    { commandId: 'one', complete: false },
    { commandId: 'two', digits: '', complete: false },
  ]);
  expect(lines).toMatchObject([{ work: 'pressing keys', err: { message: 'a defect' } }]);
});
