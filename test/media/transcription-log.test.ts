// What the log says of speech-to-text: failures as they are reported, and a name that is not configured once.

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

test('a provider that is not configured is warned of once for its name', () => {
  const { lines, tell } = logging();

  for (const provider of ['vendor', 'vendor', 'other', 'vendor']) {
    tell({ provider, reason: 'unconfigured', failures: 1 });
  }

  const msg = 'speech-to-text provider is not configured, words are counted by ear';
  expect(lines).toEqual(['vendor', 'other'].map((provider) => ({ level: 40, provider, msg })));
});

test('names come from requests: after a hundred of them no more are warned of', () => {
  const { lines, tell } = logging();

  for (let index = 0; index < 1_000; index += 1) {
    tell({ provider: `vendor-${index}`, reason: 'unconfigured', failures: 1 });
  }

  expect(lines).toHaveLength(100);
});

test('a failure of one that is configured is told each time that it is reported', () => {
  const { lines, tell } = logging();

  tell({ provider: 'engine', reason: 'refused-401', failures: 1 });
  tell({ provider: 'engine', reason: 'refused-401', failures: 7 });

  expect(lines.map(({ failures }) => failures)).toEqual([1, 7]);
});
