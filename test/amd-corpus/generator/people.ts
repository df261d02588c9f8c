// Scenes in which a person picks up.

import type { Random } from '../../amd/made-up-audio.ts';
import type { Cast, Line, Voice } from './cast.ts';
import {
  busyCadences,
  cadence,
  echoed,
  joinedSounds,
  keys,
  quiet,
  ringbacks,
} from './made-sounds.ts';
import {
  between,
  excerpt,
  householdSound,
  lineOf,
  pick,
  type Scene,
  say,
  voiceFor,
} from './scene.ts';
import type { Role } from './sentences.ts';
import { levelled, Timeline } from './timeline.ts';

type Person = {
  readonly timeline: Timeline;
  readonly voice: Voice;
  readonly line: Line;
  readonly speed: number;
};

function answers(random: Random, cast: Cast, role: Role, onsetMs?: number): Person {
  const voice = voiceFor(random, cast, role);
  const line = lineOf(random, voice, role);
  const speed = between(random, 0.95, 1.06);
  const timeline = new Timeline().wait(onsetMs ?? between(random, 80, 1_100));
  say(timeline, line, random, speed);
  timeline.endGreeting();
  return { timeline, voice, line, speed };
}

function scene(
  name: string,
  { timeline, voice, line }: Person,
  more: readonly string[] = [],
): Scene {
  return {
    label: 'human',
    class: name,
    expect: ['human', 'no tone'],
    sources: [voice.source, ...more],
    isReal: voice.isReal,
    timeline,
    ...(line.words === undefined ? {} : { words: line.words }),
    ...(line.text === undefined ? {} : { text: line.text }),
  };
}

const greetings: readonly Role[] = ['hello', 'hello', 'name'];

function plain(name: string, role: Role) {
  return (random: Random, cast: Cast): Scene => {
    const person = answers(random, cast, role);
    person.timeline.wait(between(random, 4_000, 6_000));
    return scene(name, person);
  };
}

function late(random: Random, cast: Cast): Scene {
  const person = answers(random, cast, pick(random, greetings), between(random, 1_500, 4_400));
  person.timeline.wait(4_000);
  return scene('late', person);
}

/** A scene with a household sound, at any time from a fifth of a second after the last word. */
function household(random: Random, cast: Cast): Scene {
  const person = answers(random, cast, pick(random, greetings));
  const sound = householdSound(random, cast);
  person.timeline
    .wait(between(random, 200, 3_200))
    .sound(sound.samples, sound.db)
    .wait(2_500);
  return scene('household', person, [sound.name]);
}

/** A scene in which the person hears nothing, asks again, gets an answer and goes on. */
function dialogue(random: Random, cast: Cast): Scene {
  const voices = cast.voices.filter(({ lines }) => lines.again?.length);
  const person = answers(random, { ...cast, voices }, pick(random, greetings));
  const turns = 1 + Math.floor(3 * random());
  for (let turn = 0; turn < turns; turn += 1) {
    person.timeline.wait(between(random, 1_300, 4_500));
    const role = pick(
      random,
      (['again', 'name', 'chatty'] as const).filter((each) => person.voice.lines[each]?.length),
    );
    say(person.timeline, lineOf(random, person.voice, role), random, person.speed);
  }
  person.timeline.wait(3_000);
  return scene('dialogue', person);
}

/** A scene with a television, other people or music behind the person all the time. */
function company(random: Random, cast: Cast): Scene {
  const person = answers(random, cast, pick(random, greetings));
  person.timeline.wait(5_000);
  const db = between(random, -26, -12);
  const ms = person.timeline.nowMs;
  const kind = random();
  if (kind < 0.4 && cast.music.length > 0) {
    const song = pick(random, cast.music);
    person.timeline.behind(excerpt(random, song, ms), db, 0);
    return scene('music behind', person, [song.name]);
  }
  const others = babble(random, cast, ms, kind < 0.7 ? 1 : 4);
  person.timeline.behind(others, db, 0);
  return scene(kind < 0.7 ? 'a voice behind' : 'voices behind', person);
}

function babble(random: Random, cast: Cast, ms: number, speakers: number): Float64Array {
  const whole = new Float64Array(ms * 8);
  for (let speaker = 0; speaker < speakers; speaker += 1) {
    const parts: ArrayLike<number>[] = [];
    let length = 0;
    while (length < whole.length) {
      const voice = voiceFor(random, cast, 'again');
      const { clips } = lineOf(random, voice, 'again');
      const part = joinedSounds([...clips.map(levelled), quiet(between(random, 60, 500))]);
      parts.push(part);
      length += part.length;
    }
    echoed(joinedSounds(parts), random).forEach((sample, index) => {
      if (index < whole.length) whole[index] = (whole[index] ?? 0) + sample / Math.sqrt(speakers);
    });
  }
  return whole;
}

/** A scene in which the person hangs up and the exchange sends its busy or reorder tone. */
function hangsUp(random: Random, cast: Cast): Scene {
  const person = answers(random, cast, pick(random, greetings));
  const [hz, times] = pick(random, busyCadences);
  person.timeline
    .wait(between(random, 500, 3_500))
    .sound(cadence(hz, times))
    .wait(1_500);
  return scene('hangs up', person);
}

function pressesKeys(random: Random, cast: Cast): Scene {
  const person = answers(random, cast, pick(random, greetings));
  const digits = pick(random, ['1', '15', '0', '2#', '937']);
  person.timeline
    .wait(between(random, 200, 2_500))
    .sound(keys(digits, random))
    .wait(3_000);
  return scene('keys', person);
}

function afterRingback(random: Random, cast: Cast): Scene {
  const voice = voiceFor(random, cast, 'hello');
  const line = lineOf(random, voice, 'hello');
  const [hz, [onMs]] = pick(random, ringbacks);
  const timeline = new Timeline().sound(cadence(hz, [onMs * between(random, 0.4, 1), 300, 1]));
  say(timeline, line, random, 1);
  timeline.endGreeting().wait(4_500);
  return scene('after ringback', { timeline, voice, line, speed: 1 });
}

export const peopleScenes: readonly (readonly [number, (random: Random, cast: Cast) => Scene])[] = [
  [40, plain('hello', 'hello')],
  [30, plain('name', 'name')],
  [35, plain('business', 'business')],
  [16, plain('chatty', 'chatty')],
  [40, household],
  [30, dialogue],
  [28, company],
  [14, late],
  [14, hangsUp],
  [8, pressesKeys],
  [8, afterRingback],
];
