// Loads all voices and sounds of one part, from which its scenes are made.

import { dirname } from 'node:path';
import { type Random, seededRandom } from '../../amd/made-up-audio.ts';
import type { ClipStore } from './clips.ts';
import { isInstalled, soundsIn, unpacked } from './packages.ts';
import { promptLines } from './prompts.ts';
import { type Role, roles, sentences } from './sentences.ts';
import {
  type Appliance,
  appliances,
  type BeepModel,
  beepModels,
  recordedSounds,
} from './sounds.ts';
import { spokenIn, spokenMs, trimmed } from './timeline.ts';
import {
  type Part,
  type RecordedVoice,
  recordedVoices,
  type SyntheticVoice,
  syntheticVoices,
} from './voices.ts';

export type Line = {
  readonly clips: readonly Int16Array[];
  readonly words?: number;
  readonly text?: string;
};

export type Voice = {
  readonly name: string;
  readonly source: string;
  readonly isReal: boolean;
  readonly lines: Partial<Readonly<Record<Role, readonly Line[]>>>;
};

export type Sound = { readonly name: string; readonly samples: Int16Array };

export type Cast = {
  readonly part: Part;
  readonly voices: readonly Voice[];
  readonly household: readonly Sound[];
  readonly music: readonly Sound[];
  readonly appliances: readonly Appliance[];
  readonly beeps: readonly BeepModel[];
};

/** Maximum number of recordings per speaker. More of the same voice add little. */
const mostClips = 70;
const mostSounds = 25;

export function loadCast(
  part: Part,
  cache: string,
  clips: ClipStore,
  note: (text: string) => void,
): Cast {
  const isInPart = ({ part: its }: { readonly part: Part }) => its === part;
  const voices = [
    ...syntheticVoices.filter(isInPart).flatMap((voice) => synthetic(voice, clips, note)),
    ...recordedVoices.filter(isInPart).flatMap((voice) => recorded(voice, cache, clips, note)),
  ];
  const sounds = (kind: 'household' | 'music') =>
    recordedSounds
      .filter((source) => isInPart(source) && source.kind === kind)
      .flatMap(({ package: name, files }) => {
        const found = soundsIn(unpacked(cache, name), files);
        if (found.length === 0) note(`${name}: no sounds found`);
        return chosen(found, mostSounds).flatMap((path) => soundAt(path, name, clips));
      });
  return {
    part,
    voices: voices.map(withinLimits),
    household: sounds('household'),
    music: sounds('music'),
    appliances: appliances.filter(isInPart),
    beeps: beepModels.filter(isInPart),
  };
}

/**
 * A greeting has a few words; a longer recording is an instruction. Callers also do not wait for
 * the beep of a longer greeting.
 */
const longestMs: Partial<Readonly<Record<Role, number>>> = {
  shortGreeting: 6_000,
  longGreeting: 14_000,
};

function withinLimits(voice: Voice): Voice {
  const lines = Object.fromEntries(
    Object.entries(voice.lines).map(([role, all]) => {
      const mostMs = longestMs[role as Role] ?? Number.POSITIVE_INFINITY;
      return [role, all.filter(({ clips }) => lengthMs(clips) <= mostMs)];
    }),
  );
  return { ...voice, lines };
}

function lengthMs(clips: readonly Int16Array[]): number {
  return clips.reduce((sum, { length }) => sum + length / 8, 0);
}

function soundAt(path: string, source: string, clips: ClipStore): Sound[] {
  const samples = clips.recording(path);
  return samples === undefined ? [] : [{ name: `${source}: ${path.split('/').at(-1)}`, samples }];
}

const commands = {
  espeak: 'espeak-ng',
  flite: 'flite',
  festival: 'festival',
  gnuspeech: 'npm',
} as const;

function synthetic(voice: SyntheticVoice, clips: ClipStore, note: (text: string) => void): Voice[] {
  const name = `${voice.engine} ${voice.voice}`;
  const texts = sentences[voice.language];
  if (texts === undefined || !isInstalled(commands[voice.engine])) {
    note(`${name}: ${commands[voice.engine]} is not installed, or the language has no sentences`);
    return [];
  }
  clips.prepare(
    voice,
    roles.flatMap((role) => texts[role]),
  );
  const lines: Partial<Record<Role, Line[]>> = {};
  for (const role of roles) {
    lines[role] = texts[role].flatMap((text) => {
      const clip = clips.spoken(voice, text);
      if (clip === undefined || spokenMs(clip) < 120) return [];
      return { clips: [trimmed(clip)], words: text.split(' ').length, text };
    });
  }
  if ((lines.hello ?? []).length === 0) note(`${name}: the voice produced no hello`);
  return [{ name, source: name, isReal: false, lines }];
}

function recorded(
  { package: source, files, says }: RecordedVoice,
  cache: string,
  clips: ClipStore,
  note: (text: string) => void,
): Voice[] {
  const folder = unpacked(cache, source);
  const found = soundsIn(folder, files);
  if (found.length === 0) {
    note(`${source} ${files.source}: no recordings found`);
    return [];
  }
  const name = `${source} ${files.source}`;
  if (says === 'prompts') {
    const byName = new Map(found.map((path) => [nameOf(path), path]));
    const lines = promptLines((prompt) => {
      const path = byName.get(prompt);
      const clip = path === undefined ? undefined : clips.recording(path);
      return clip === undefined ? undefined : trimmed(clip);
    });
    return [{ name, source, isReal: true, lines }];
  }
  const said = chosen(found, mostClips);
  const lines =
    says === 'both' ? { ...talk(said, clips), ...recited(said, clips) } : talk(said, clips);
  return [{ name, source, isReal: true, lines }];
}

/** Returns names such as `digits/4` and `vm-intro`. */
function nameOf(path: string): string {
  const [, folder, file = ''] = /([^/]+)\/([^/]+)\.[a-z]+$/.exec(path) ?? [];
  return dirname(path).endsWith('/digits') ? `${folder}/${file}` : file;
}

type PartByLength = { readonly role: Role; readonly ms: readonly [least: number, most: number] };

/**
 * Roles by length: for a recorded phrase in any language, only its length decides which role it can
 * play.
 */
const partsByLength: readonly PartByLength[] = [
  { role: 'hello', ms: [200, 1_000] },
  { role: 'opening', ms: [200, 900] },
  { role: 'name', ms: [600, 2_200] },
  { role: 'again', ms: [300, 1_800] },
  { role: 'business', ms: [2_200, 5_200] },
  { role: 'chatty', ms: [2_200, 5_200] },
];
/** Longest pause in a business name, because it is recited in one breath. */
const longestBreathMs = 450;

function talk(
  paths: readonly string[],
  clips: ClipStore,
): Partial<Readonly<Record<Role, readonly Line[]>>> {
  const phrases = paths.flatMap((path) => {
    const clip = clips.recording(path);
    return clip === undefined ? [] : { clip: trimmed(clip), ms: spokenMs(clip) };
  });
  return Object.fromEntries(
    partsByLength.map(({ role, ms: [least, most] }) => [
      role,
      phrases
        .filter(({ clip, ms }) => ms >= least && ms <= most && isSpokenAs(role, clip))
        .map(({ clip }) => ({ clips: [clip] })),
    ]),
  );
}

type Recital = {
  readonly role: Role;
  /** Length of the whole recital, with pauses. */
  readonly ms: readonly [least: number, most: number];
};

/** The lengths match what other machines in the corpus say. */
const recitals: readonly Recital[] = [
  { role: 'shortGreeting', ms: [1_200, 4_000] },
  { role: 'longGreeting', ms: [5_500, 12_000] },
  { role: 'screening', ms: [3_000, 6_000] },
  { role: 'full', ms: [2_500, 5_000] },
  { role: 'announcement', ms: [3_000, 6_000] },
  { role: 'queue', ms: [4_000, 9_000] },
];
const recitalsOfEach = 8;

/** Joins phrases of one speaker with the pauses of a reader. */
function recited(
  paths: readonly string[],
  clips: ClipStore,
): Partial<Readonly<Record<Role, readonly Line[]>>> {
  const phrases = paths
    .flatMap((path) => clips.recording(path) ?? [])
    .map(trimmed)
    .filter((clip) => spokenMs(clip) >= 400);
  const random = seededRandom(phrases.length);
  const recite = ([least, most]: Recital['ms']): Line | undefined => {
    const parts: Int16Array[] = [];
    const wantedMs = least + (most - least) * random();
    while (phrases.length > 0 && parts.length < 40 && lengthMs(parts) < wantedMs) {
      if (parts.length > 0) parts.push(new Int16Array(Math.round(8 * (60 + 360 * random() ** 2))));
      parts.push(phrases[Math.floor(random() * phrases.length)] ?? new Int16Array(0));
    }
    const ms = lengthMs(parts);
    return ms >= least && ms <= most ? { clips: [joined(parts)] } : undefined;
  };
  return Object.fromEntries(
    recitals.map(({ role, ms }) => [
      role,
      Array.from({ length: recitalsOfEach }).flatMap(() => recite(ms) ?? []),
    ]),
  );
}

function joined(parts: readonly Int16Array[]): Int16Array {
  return Int16Array.from(parts.flatMap((part) => [...part]));
}

function isSpokenAs(role: Role, clip: Int16Array): boolean {
  const isOneBreath = longestPauseMs(clip) < longestBreathMs;
  if (role === 'business') return isOneBreath;
  return role !== 'chatty' || !isOneBreath;
}

function longestPauseMs(clip: Int16Array): number {
  const segments = spokenIn(clip);
  return segments.reduce((longest, [from], index) => {
    const before = segments[index - 1];
    return before === undefined ? longest : Math.max(longest, from - before[1]);
  }, 0);
}

/** Chooses items at even distances, the same ones on every machine. */
function chosen<Item>(items: readonly Item[], most: number): Item[] {
  const random: Random = seededRandom(items.length);
  return items
    .map((item) => ({ item, at: random() }))
    .sort((a, b) => a.at - b.at)
    .slice(0, most)
    .map(({ item }) => item);
}
