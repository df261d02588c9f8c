// A dialer that uses no newer feature gets the same bytes as before: the bodies of the version
// before plans, sounds and transfers (046d13f), and its events except for the contexts in them.

import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { recordCalls } from '../../support/recorded-calls.ts';

test('calls without plans have the same events and bodies, byte for byte, as before plans existed', async () => {
  const recorded = new URL('../../fixtures/notifications/recorded-bodies.jsonl', import.meta.url);

  expect(await recordCalls()).toBe(await readFile(recorded, 'utf8'));
});
