// Work that nobody waits for. Its failure is one line of the log and does not end the process.

import { expect, test } from 'vitest';
import { inBackground } from '../../src/lib/in-background.ts';
import { recordedLogger } from '../support/recorded-logger.ts';

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('logs a failure with the name of the work', async () => {
  const { logger, lines } = recordedLogger();
  inBackground(Promise.reject(new Error('a defect')), logger, 'storing a capture');
  await settled();

  expect(lines).toMatchObject([
    {
      ...{ level: 50, msg: 'work in the background failed', work: 'storing a capture' },
      err: { message: 'a defect' },
    },
  ]);
});

test('ignores the result of the work', async () => {
  const { logger, lines } = recordedLogger();
  inBackground(Promise.resolve('stored'), logger, 'storing a capture');
  await settled();

  expect(lines).toEqual([]);
});
