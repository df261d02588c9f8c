// Finds which words an answer of the corpus says, and when: the sentence in its manifest, spread
// over its segments by length. Recordings have no sentence there. The texts of Asterisk's prompts
// are in their packages. All other recordings have words that cannot be recognised.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { type Random, seededRandom } from '../../amd/made-up-audio.ts';
import { syntheticVoices } from '../generator/voices.ts';
import type { Truth } from '../score/manifest.ts';

export type SpokenWord = {
  readonly text: string;
  readonly fromMs: number;
  readonly untilMs: number;
};

export type Spoken = {
  readonly words: readonly SpokenWord[];
  /** The language as a call requests it. */
  readonly language: string;
  /** True if the words are those that were said. Otherwise only their number is about right. */
  readonly isKnown: boolean;
};

type Segments = Truth['segments'];

/** The texts of the prompts of one language, by name. */
type Prompts = ReadonlyMap<string, string>;

const promptLanguages = ['en', 'es', 'fr', 'it', 'ru'];
/** A speaker pauses before repeating a sentence. */
const repeatGapMs = 1_000;
const meanWordMs = 380;

export async function readPrompts(cache: string): Promise<ReadonlyMap<string, Prompts>> {
  const texts = await Promise.all(
    promptLanguages.map(async (language) => {
      const name = `asterisk-core-sounds-${language}`;
      const path = join(cache, 'packages', name, 'usr/share/doc', name);
      const text = gunzipSync(await readFile(join(path, `core-sounds-${language}.txt.gz`)));
      return [language, promptsFrom(text.toString('utf8'))] as const;
    }),
  );
  return new Map(texts);
}

/**
 * Returns the source of each row, in the manifest's order. The source is the last cell, and no cell
 * before it contains a line end.
 */
export async function readSources(manifestPath: string): Promise<readonly string[]> {
  const [, ...rows] = (await readFile(manifestPath, 'utf8')).trim().split('\n');
  return rows.map((row) => /"([^"]*)"\s*$/.exec(row)?.[1] ?? '');
}

/** Parses lines such as `vm-goodbye: Goodbye.` and skips comments after semicolons. */
export function promptsFrom(text: string): Prompts {
  const lines = [...text.matchAll(/^([a-z0-9/_-]+)\s*:\s*(.+?)\s*$/gim)];
  return new Map(lines.map(([, name = '', said = '']) => [name, said.replaceAll(/[[\]"]/g, '')]));
}

/**
 * Returns the words of an answer.
 * @param source the manifest's column of the same name
 */
export function spokenIn(
  truth: Truth,
  source: string,
  prompts: ReadonlyMap<string, Prompts>,
): Spoken {
  const greeting = greetingOf(truth);
  const language = languageOf(source);
  const sentence = sentenceOf(truth.transcript, source, prompts.get(language));
  if (sentence !== undefined) {
    return { words: wordsOf(sentence, greeting), language, isKnown: true };
  }
  // Music, fax and beeps have segments too, but no recogniser takes them for words.
  const isSpeech = truth.label === 'human' || truth.transcript !== undefined || isPaused(truth);
  const words = isSpeech ? unknownWords(greeting, seededRandom(greeting.flat().length + 1)) : [];
  return { words, language, isKnown: false };
}

function isPaused({ label, class: name = '' }: Truth): boolean {
  return label === 'machine' && name.includes('greeting');
}

/**
 * Returns the segments of the greeting. A dialogue goes on after it, but those words have no text.
 */
function greetingOf({ segments, greetingEndMs = Infinity }: Truth): Segments {
  return segments.filter(([fromMs]) => fromMs < greetingEndMs);
}

function languageOf(source: string): string {
  const voice = syntheticVoices.find((one) => source.startsWith(`${one.engine} ${one.voice}`));
  return voice?.language ?? /^asterisk-(?:core-sounds|prompt)-([a-z]{2})/.exec(source)?.[1] ?? 'en';
}

function sentenceOf(
  transcript: string | undefined,
  source: string,
  prompts: Prompts | undefined,
): string | undefined {
  if (transcript === undefined || !source.startsWith('asterisk-')) return transcript;
  const said = transcript.split(' ').map((name) => prompts?.get(name));
  return said.includes(undefined) ? undefined : said.join(' ');
}

export function wordsOf(sentence: string, segments: Segments): readonly SpokenWord[] {
  const words = sentence.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
  return repeats(segments).flatMap((part) => spread(words, part));
}

/** Splits an announcement that is made twice: parts of equal length, a second apart. */
function repeats(segments: Segments): readonly Segments[] {
  const parts: (readonly [number, number])[][] = [];
  let endMs = -Infinity;
  for (const segment of segments) {
    if (segment[0] - endMs >= repeatGapMs) parts.push([]);
    parts.at(-1)?.push(segment);
    [, endMs] = segment;
  }
  const lengths = parts.map(lengthMs);
  const [shortest, longest] = [Math.min(...lengths), Math.max(...lengths)];
  return parts.length > 1 && longest - shortest < 0.12 * longest ? parts : [segments];
}

function spread(words: readonly string[], segments: Segments): SpokenWord[] {
  const letters = words.reduce((sum, word) => sum + word.length + 1, 0);
  const msPerLetter = lengthMs(segments) / Math.max(1, letters);
  let at = 0;
  return words.map((text) => {
    const fromMs = placed(segments, at * msPerLetter);
    at += text.length + 1;
    return { text, fromMs, untilMs: placed(segments, at * msPerLetter) };
  });
}

/** Returns the time at which this much speech was spoken, without pauses. */
function placed(segments: Segments, spokenMs: number): number {
  let left = spokenMs;
  for (const [fromMs, toMs] of segments) {
    if (left <= toMs - fromMs + 1e-6) return fromMs + left;
    left -= toMs - fromMs;
  }
  return segments.at(-1)?.[1] ?? 0;
}

function lengthMs(segments: Segments): number {
  return segments.reduce((sum, [fromMs, toMs]) => sum + toMs - fromMs, 0);
}

/** Makes words of no language: they count as words and contain no phrase. */
function unknownWords(segments: Segments, random: Random): readonly SpokenWord[] {
  const count = Math.max(1, Math.round(lengthMs(segments) / meanWordMs));
  const syllable = () => 'bdgklmnprstvz'.charAt(random() * 13) + 'aeiou'.charAt(random() * 5);
  const words = Array.from({ length: segments.length === 0 ? 0 : count }, () =>
    Array.from({ length: 1 + Math.floor(random() * 3) }, syllable).join(''),
  );
  return spread(words, segments);
}
