// A dialer that uses nothing of what has been added sees no byte of difference: events and bodies
// as the version before plans, sounds and transfers made them (046d13f).

import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { recordCalls } from '../../support/recorded-calls.ts';

test('calls without plans say what they said before there were any, to the byte', async () => {
  const recorded = new URL('../../fixtures/notifications/recorded-bodies.jsonl', import.meta.url);

  expect(await recordCalls()).toBe(await readFile(recorded, 'utf8'));
});
