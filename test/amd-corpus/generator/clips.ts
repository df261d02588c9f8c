// Loads sound as 8 kHz samples, from files and from speech synthesisers. The cache keeps each clip
// once it is made.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export type Engine = 'espeak' | 'flite' | 'festival' | 'gnuspeech';
/** `encoding`: the text encoding that a Festival voice reads. */
export type Speaker = {
  readonly engine: Engine;
  readonly voice: string;
  readonly encoding?: string;
};

export type ClipStore = {
  /** Returns undefined if the sound cannot be read, or is too short. */
  recording(path: string): Int16Array | undefined;
  /** Synthesises all texts in one run of the engine. */
  prepare(speaker: Speaker, texts: readonly string[]): void;
  spoken(speaker: Speaker, text: string): Int16Array | undefined;
};

/** A fifth of a second. */
const fewestSamples = 1_600;

export function openClips(cache: string): ClipStore {
  const folder = join(cache, 'clips');
  mkdirSync(folder, { recursive: true });
  const kept = new Map<string, Int16Array | undefined>();

  function at(key: string, make: (raw: string) => void): Int16Array | undefined {
    const known = kept.get(key);
    if (known !== undefined || kept.has(key)) return known;
    const raw = pathOf(folder, key);
    if (!existsSync(raw)) {
      try {
        make(raw);
      } catch {
        writeFileSync(raw, '');
      }
    }
    const bytes = readFileSync(raw);
    const samples = new Int16Array(
      bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + (bytes.length & ~1)),
    );
    const clip = samples.length < fewestSamples ? undefined : samples;
    kept.set(key, clip);
    return clip;
  }

  return {
    recording: (path) => at(path, (raw) => toRaw(path, raw)),
    prepare(speaker, texts) {
      const run = inOneRun[speaker.engine];
      const missing = texts.filter((text) => !existsSync(pathOf(folder, keyOf(speaker, text))));
      if (missing.length > 0) run?.(folder, speaker, missing);
    },
    spoken: (speaker, text) => at(keyOf(speaker, text), (raw) => speak(speaker, text, raw)),
  };
}

function pathOf(folder: string, key: string): string {
  return join(folder, `${createHash('sha256').update(key).digest('hex').slice(0, 24)}.raw`);
}

function keyOf({ engine, voice }: Speaker, text: string): string {
  return `${engine} ${voice} ${text}`;
}

/** Converts to mono at 8 kHz with peaks at -3 dBFS, at most 20 s. */
function toRaw(from: string, raw: string): void {
  const output = ['-t', 's16', '-r', '8000', '-c', '1', raw];
  const effects = ['trim', '0', '20', 'highpass', '60', 'gain', '-n', '-3'];
  execFileSync('sox', ['-q', ...formatOf(from), from, ...output, ...effects], { stdio: 'ignore' });
}

function formatOf(path: string): string[] {
  return /\.oga$/i.test(path) ? ['-t', 'ogg'] : [];
}

function speak({ engine, voice }: Speaker, text: string, raw: string): void {
  const wav = `${raw}.wav`;
  if (engine === 'flite') execFileSync('flite', ['-voice', voice, '-t', text, '-o', wav]);
  if (engine === 'espeak') execFileSync('espeak-ng', ['-v', voice, '-w', wav, text]);
  // One run made all of Festival's sentences. A sentence that it could not say has no file.
  toRaw(wav, raw);
}

type Run = (folder: string, speaker: Speaker, texts: readonly string[]) => void;
const inOneRun: Partial<Readonly<Record<Engine, Run>>> = {
  festival: runFestival,
  gnuspeech: runGnuspeech,
};

/** Articulatory synthesis from npm, installed into the cache. */
const gnuspeech = '@echogarden/gnuspeech-wasm@0.3.0';

function runGnuspeech(folder: string, { voice, ...rest }: Speaker, texts: readonly string[]): void {
  const program = `
    import { writeFileSync } from 'node:fs';
    import { synthesize } from '@echogarden/gnuspeech-wasm';
    for (const [text, wav] of ${JSON.stringify(texts.map((text) => [text, `${pathOf(folder, keyOf({ voice, ...rest }, text))}.wav`]))}) {
      const { audioData } = await synthesize(text, { voice: '${voice}', controlRate: 250, tempo: 1 });
      writeFileSync(wav, audioData);
    }`;
  const cwd = join(folder, '..', 'gnuspeech');
  try {
    mkdirSync(cwd, { recursive: true });
    execFileSync('npm', ['install', '--silent', '--no-save', '--prefix', cwd, gnuspeech]);
    writeFileSync(join(cwd, 'speak.mjs'), program);
    execFileSync('node', ['speak.mjs'], { cwd, stdio: 'ignore', timeout: 600_000 });
  } catch {
    // The sentences before the one that failed are there.
  }
}

function runFestival(folder: string, speaker: Speaker, texts: readonly string[]): void {
  const lines = texts.map((text) => {
    const wav = `${pathOf(folder, keyOf(speaker, text))}.wav`;
    const quoted = text.replaceAll(/["\\]/g, '');
    return `(set! u (utt.synth (Utterance Text "${quoted}")))(utt.save.wave u "${wav}" 'riff)`;
  });
  const script = join(folder, `${speaker.voice}.scm`);
  const program = `(voice_${speaker.voice})\n${lines.join('\n')}\n`;
  const encoded =
    speaker.encoding === undefined
      ? program
      : execFileSync('iconv', ['-c', '-f', 'UTF-8', '-t', `${speaker.encoding}//TRANSLIT`], {
          input: program,
        });
  writeFileSync(script, encoded);
  try {
    execFileSync('festival', ['-b', script], { stdio: 'ignore', timeout: 600_000 });
  } catch {
    // The sentences before the one that failed are there.
  }
}
