// The log of speech-to-text: each reported failure, and one warning for each unconfigured name.

import { pino } from 'pino';
import { expect, test } from 'vitest';
import { createTranscriptionLog } from '../../src/media/transcription-log.ts';

function logging() {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string): void => {
    lines.push(JSON.parse(line) as Record<string, unknown>);
  };
  const report = createTranscriptionLog(pino({ base: null, timestamp: false }, { write }));
  return { lines, report };
}

test('warns once for each provider that is not configured', () => {
  const { lines, report } = logging();

  for (const provider of ['vendor', 'vendor', 'other', 'vendor']) {
    report({ provider, reason: 'unconfigured', failures: 1 });
  }

  const msg = 'speech-to-text provider is not configured, so words are estimated from the audio';
  expect(lines).toEqual(['vendor', 'other'].map((provider) => ({ level: 40, provider, msg })));
});

test('warns of a hundred names at most, because names come from requests', () => {
  const { lines, report } = logging();

  for (let index = 0; index < 1_000; index += 1) {
    report({ provider: `vendor-${index}`, reason: 'unconfigured', failures: 1 });
  }

  expect(lines).toHaveLength(100);
});

test('logs each reported failure of a configured provider', () => {
  const { lines, report } = logging();

  report({ provider: 'engine', reason: 'refused-401', failures: 1 });
  report({ provider: 'engine', reason: 'refused-401', failures: 7 });

  expect(lines.map(({ failures }) => failures)).toEqual([1, 7]);
});
