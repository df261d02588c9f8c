// The times of the words that speech-to-text recognised.

import { expect, test } from 'vitest';
import { protocolFor } from '../../src/amd/stt/protocols.ts';
import { createWordTimes } from '../../src/amd/stt/word-times.ts';
import type { HeardWords } from '../../src/calls/capture/capture.ts';

function rig() {
  const reported: HeardWords[] = [];
  return { reported, times: createWordTimes((words) => reported.push(...words)) };
}

const settings = { sttProvider: 'engine', sttLanguage: 'en-US' };

test('words have the times that Deepgram and Vosk give', () => {
  const timed = [
    { word: 'hello', punctuated_word: 'Hello,', start: 0.5, end: 0.9 },
    { word: 'anna', punctuated_word: 'Anna.', start: 1, end: 1.4 },
  ];
  const results = {
    deepgram: {
      ...{ type: 'Results', is_final: true, start: 0, duration: 1.5 },
      channel: { alternatives: [{ transcript: 'Hello, Anna.', words: timed }] },
    },
    vosk: { text: 'hello anna', result: timed },
  };
  for (const kind of ['deepgram', 'vosk'] as const) {
    const provider = { kind, url: 'wss://x.example/', parameters: {} };
    const said = protocolFor(provider, settings).read(JSON.stringify(results[kind]));
    if (said.kind !== 'said') throw new Error(`${kind} was not understood`);
    const { reported, times } = rig();
    times.hear(said, 1_300);

    expect(reported.map(({ fromMs, untilMs }) => [fromMs, untilMs])).toEqual([
      [500, 900],
      // No later than the recogniser has listened.
      [1_000, 1_300],
    ]);
    expect(reported.map(({ text }) => text.toLowerCase().replace(/\W/g, ''))).toEqual([
      'hello',
      'anna',
    ]);
  }
});

test.each([
  [[{ word: 'a', start: -1, end: 1 }]],
  [[{ word: 7, start: 0, end: 1 }]],
  [[null]],
  [Array.from({ length: 400 }, () => ({ word: 'a', start: 0, end: 1 }))],
])('implausible times are dropped: %j', (result) => {
  const provider = { kind: 'vosk', url: 'wss://x.example/', parameters: {} } as const;
  expect(protocolFor(provider, settings).read(JSON.stringify({ text: 'a', result }))).toEqual({
    ...{ kind: 'said', transcript: 'a', isFinal: true, untilMs: 100 },
  });
});

test('without times a result lasts from the end of the silence before it to how far the recogniser has listened', () => {
  const { reported, times } = rig();
  times.hear({ transcript: '', isFinal: false }, 400);
  times.hear({ transcript: 'you', isFinal: false }, 700);
  times.hear({ transcript: 'you have', isFinal: true }, 1_100);
  times.hear({ transcript: 'reached\u0000us', isFinal: false }, 1_600);
  times.end();
  times.end();

  expect(reported).toEqual([
    { text: 'you have', fromMs: 400, untilMs: 1_100 },
    { text: 'reached us', fromMs: 1_100, untilMs: 1_600 },
  ]);
});
