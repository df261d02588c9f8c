// The decision between person and machine, from what was said so far.

import { describe, expect, test } from 'vitest';
import { decide } from '../../src/amd/verdict.ts';
import type { Utterance } from '../../src/amd/voice/utterance.ts';

function said(parts: Partial<Utterance>): Utterance {
  const spanMs = parts.spanMs ?? 400;
  return {
    speechMs: Math.round(spanMs * 0.75),
    onsetMs: 400,
    spanMs,
    pauseMs: 0,
    longestGapMs: 0,
    waitedMs: 0,
    beginning: false,
    syllables: Math.max(1, Math.round(spanMs / 200)),
    words: Math.max(1, Math.round(spanMs / 300)),
    bursts: 1,
    ...parts,
  };
}

describe('without a word threshold', () => {
  test.each([
    ['one word, and two thirds of a second of silence', { spanMs: 400, pauseMs: 680 }],
    ['one drawn-out word', { spanMs: 1_400, syllables: 2, pauseMs: 680 }],
    ['a hello with a name', { spanMs: 1_200, syllables: 4, pauseMs: 680 }],
    ['a name and a question', { spanMs: 1_600, syllables: 8, pauseMs: 1_200 }],
  ])('is a person after %s', (_, parts) => {
    expect(decide(said(parts), {})).toMatchObject({
      who: 'human',
      reason: 'short-greeting',
    });
  });

  test('is a person after a business name in one breath and silence, with less confidence the longer it was', () => {
    const confidence = (spanMs: number) => {
      const verdict = decide(said({ spanMs, speechMs: 3_000, pauseMs: 1_300 }), {});
      expect(verdict).toMatchObject({ who: 'human', reason: 'greeting-then-silence' });
      return verdict?.confidence ?? 0;
    };

    expect(confidence(2_600)).toBeGreaterThan(confidence(4_400));
    expect(confidence(4_400)).toBeGreaterThan(0.6);
  });

  test.each([
    ['long-greeting', { spanMs: 5_000, speechMs: 3_000 }],
    ['dense-speech', { spanMs: 4_000, speechMs: 3_820 }],
    ['many-words', { spanMs: 3_800, speechMs: 3_300, words: 17 }],
    ['several-sentences', { spanMs: 4_100, speechMs: 2_900, longestGapMs: 700 }],
  ])('knows a machine while it speaks: %s', (reason, parts) => {
    expect(decide(said(parts), {})).toMatchObject({ who: 'machine', reason });
  });

  test.each([
    ['the pause is short', { spanMs: 400, pauseMs: 660 }],
    ['a hello with a name is too long for a hello', { spanMs: 1_220, syllables: 4, pauseMs: 700 }],
    ['more than a hello was said in a second', { spanMs: 900, syllables: 5, pauseMs: 1_100 }],
    ['a sentence may follow', { spanMs: 1_600, syllables: 8, pauseMs: 1_100 }],
    ['a voice begins to speak', { spanMs: 400, pauseMs: 700, beginning: true }],
    ['the greeting goes on', { spanMs: 3_000 }],
  ])('listens on while %s', (_, parts) => {
    expect(decide(said(parts), {})).toBeUndefined();
  });
});

describe('with the words of a recogniser', () => {
  const understood = { isTranscribed: true, words: 6 };

  test('continued sound is not a machine for a while if there are hardly any words', () => {
    const room = { isTranscribed: true, words: 1, speechMs: 3_900, longestGapMs: 700 };

    expect(decide(said({ ...room, spanMs: 6_900 }), {})).toBeUndefined();
    expect(decide(said({ ...room, spanMs: 6_900, pauseMs: 1_300 }), {})).toMatchObject({
      who: 'human',
      confidence: 0.65,
    });
    expect(decide(said({ ...room, spanMs: 7_000 }), {})).toMatchObject({ who: 'machine' });
  });

  test('a word threshold still decides alone', () => {
    const parts = { ...understood, spanMs: 2_000, pauseMs: 1_300 };

    expect(decide(said(parts), { thresholdWordCount: 9 })).toMatchObject({
      who: 'human',
      reason: 'word-count',
    });
  });
});

describe('with a word threshold', () => {
  test('a greeting that reaches it is a machine, however short; one below it is a person, however long', () => {
    expect(decide(said({ words: 3 }), { thresholdWordCount: 3 })).toMatchObject({
      who: 'machine',
      reason: 'word-count',
    });
    expect(decide(said({ spanMs: 9_000, words: 8 }), { thresholdWordCount: 9 })).toBeUndefined();
    expect(
      decide(said({ spanMs: 9_000, words: 8, pauseMs: 1_300 }), { thresholdWordCount: 9 }),
    ).toMatchObject({
      who: 'human',
      reason: 'word-count',
    });
  });
});

describe('careful detection', () => {
  const careful = { personAfterSilenceMs: 2_500 };

  test('calls nobody a person before that much silence', () => {
    const hello = { spanMs: 500, speechMs: 450 };

    expect(decide(said({ ...hello, pauseMs: 2_480 }), careful)).toBeUndefined();
    expect(decide(said({ ...hello, pauseMs: 2_500 }), careful)).toMatchObject({ who: 'human' });
    const counted = { ...careful, thresholdWordCount: 9 };
    expect(decide(said({ ...hello, pauseMs: 2_480 }), counted)).toBeUndefined();
  });

  test('does not take a person who says hello again and again for a long greeting', () => {
    const again = {
      spanMs: 5_600,
      speechMs: 1_500,
      words: 4,
      longestGapMs: 2_100,
      waitedMs: 4_100,
    };

    expect(decide(said(again), {})).toMatchObject({ who: 'machine' });
    expect(decide(said(again), careful)).toBeUndefined();
    expect(decide(said({ ...again, pauseMs: 2_500 }), careful)).toMatchObject({ who: 'human' });
  });

  test('states machines as soon as otherwise', () => {
    expect(decide(said({ spanMs: 5_000, speechMs: 3_000 }), careful)).toMatchObject({
      who: 'machine',
    });
  });
});
