// The tool that measures what words add: who says which words when, how they are misheard, and that
// they take the same path as in a call.

import { describe, expect, test } from 'vitest';
import { createSounds } from '../../src/embedded/sandbox/sounds.ts';
import { seededRandom } from '../amd/made-up-audio.ts';
import { createListener, type EngineKind, startEngine } from './words/engine.ts';
import { listenWithWords } from './words/listen-with-words.ts';
import { misheard } from './words/mishearing.ts';
import { promptsFrom, type SpokenWord, spokenIn, wordsOf } from './words/spoken.ts';

const sounds = createSounds();
const times = (words: readonly SpokenWord[]) =>
  words.map(({ text, fromMs, untilMs }) => [text, Math.round(fromMs), Math.round(untilMs)]);

describe('words', () => {
  test('are spread over the speech by their length, but not over pauses', () => {
    const words = wordsOf('abc – abc abc', [
      [1_000, 2_000],
      [2_400, 2_900],
    ]);

    expect(times(words)).toEqual([
      ['abc', 1_000, 1_500],
      ['abc', 1_500, 2_000],
      ['abc', 2_000, 2_900],
    ]);
  });

  test('come twice for an announcement that is made twice', () => {
    const words = wordsOf('not available', [
      [0, 1_000],
      [2_500, 3_480],
    ]);

    expect(words.map(({ text }) => text)).toEqual(['not', 'available', 'not', 'available']);
  });

  const truth = { label: 'machine', expect: new Set(''), segments: [[0, 2_000]] } as const;
  const prompts = new Map([['es', promptsFrom('; voicemail\nvm-goodbye: "Adiós"\n')]]);

  test.each([
    ['a sentence of a voice', 'espeak de+m1; a fridge', 'Guten Tag', 'de', 'Guten Tag', true],
    ['a prompt by its name', 'asterisk-prompt-es-co', 'vm-goodbye', 'es', 'Adiós', true],
  ])('of %s', (_, source, transcript, language, said, isKnown) => {
    const spoken = spokenIn({ ...truth, transcript }, source, prompts);

    expect(spoken).toMatchObject({ language, isKnown });
    expect(spoken.words.map(({ text }) => text).join(' ')).toBe(said);
  });

  test('have no language if they are not written down; music has no words', () => {
    const person = spokenIn({ ...truth, label: 'human' }, 'a package', prompts);
    const music = spokenIn({ ...truth, label: 'other' }, 'a package', prompts);

    expect(person.isKnown).toBe(false);
    expect(person.words).toHaveLength(5);
    expect(music.words).toEqual([]);
  });
});

describe('misheard', () => {
  const words = Array.from({ length: 1_000 }, (_, index) => ({
    text: `w${index}`,
    fromMs: index,
    untilMs: index + 1,
  }));
  const heardWith = (share: number) =>
    misheard(words, { share, random: seededRandom(1), vocabulary: ['other'] });

  test('no word at 0 %: all are as they were said', () => {
    expect(heardWith(0).map(({ text, atFirst }) => [text, atFirst])).toEqual(
      words.map(({ text }) => [text, text]),
    );
  });

  test('the requested share of the words, and the same for the same seed', () => {
    const heard = heardWith(0.25);
    const right = heard.filter(({ text }) => text !== 'other').length;

    expect(heard).toEqual(heardWith(0.25));
    // An inserted word leaves the real word in its place.
    expect(right).toBeGreaterThan(750);
    expect(right).toBeLessThan(850);
  });
});

test('the recogniser returns no word before it has heard it, corrects the newest, and ends a result after a pause', () => {
  const listener = createListener([
    { text: 'hello', atFirst: 'yellow', fromMs: 0, untilMs: 400 },
    { text: 'there', atFirst: 'there', fromMs: 400, untilMs: 800 },
  ]);

  expect(listener(300)).toEqual({ text: '', isFinal: false });
  expect(listener(400)).toEqual({ text: 'yellow', isFinal: false });
  expect(listener(800)).toEqual({ text: 'hello there', isFinal: false });
  expect(listener(1_500)).toEqual({ text: 'hello there', isFinal: true });
  expect(listener(1_600)).toEqual({ text: '', isFinal: false });
});

describe.each<EngineKind>(['vosk', 'websocket'])('a call with %s', (kind) => {
  const { samples } = sounds.hello;
  const heard = (sentence: string) => ({
    language: 'en',
    words: wordsOf(sentence, [[300, 900]]).map((word) => ({ ...word, atFirst: word.text })),
  });

  test('gets the words as they come and knows a phrase before the silence', async () => {
    await using engine = await startEngine(kind, 300);

    const person = await listenWithWords(samples, heard('hello Anna speaking'), engine, kind);
    const machine = await listenWithWords(samples, heard('after the tone'), engine, kind);

    expect(person[0]).toMatchObject({ event: 'amd_human_detected', transcription: 'used' });
    expect(machine[0]).toMatchObject({
      event: 'amd_machine_detected',
      reason: 'voicemail-phrase',
      transcript: 'after the tone',
    });
    // The last word is heard at 900 ms. The recogniser returns it with the answer to the next 100
    // ms, and it counts from the frame after that.
    expect(machine[0]?.elapsedMs).toBe(1_220);
  });
});
