// The log of speech-to-text: each reported failure, and one warning for each unconfigured name.

import { pino } from 'pino';
import { expect, test } from 'vitest';
import { createTranscriptionLog } from '../../src/media/transcription-log.ts';

function logging() {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string): void => {
    lines.push(JSON.parse(line) as Record<string, unknown>);
  };
  const tell = createTranscriptionLog(pino({ base: null, timestamp: false }, { write }));
  return { lines, tell };
}

test('warns once for each provider that is not configured', () => {
  const { lines, tell } = logging();

  for (const provider of ['vendor', 'vendor', 'other', 'vendor']) {
    tell({ provider, reason: 'unconfigured', failures: 1 });
  }

  const msg = 'speech-to-text provider is not configured, words are counted by ear';
  expect(lines).toEqual(['vendor', 'other'].map((provider) => ({ level: 40, provider, msg })));
});

test('warns of a hundred names at most, because names come from requests', () => {
  const { lines, tell } = logging();

  for (let index = 0; index < 1_000; index += 1) {
    tell({ provider: `vendor-${index}`, reason: 'unconfigured', failures: 1 });
  }

  expect(lines).toHaveLength(100);
});

test('logs each reported failure of a configured provider', () => {
  const { lines, tell } = logging();

  tell({ provider: 'engine', reason: 'refused-401', failures: 1 });
  tell({ provider: 'engine', reason: 'refused-401', failures: 7 });

  expect(lines.map(({ failures }) => failures)).toEqual([1, 7]);
});
