// Scenes in which a machine or the network picks up.

import type { Random } from '../../amd/made-up-audio.ts';
import type { Cast, Line, Voice } from './cast.ts';
import { quiet, sines } from './made-sounds.ts';
import {
  beepAfter,
  between,
  excerpt,
  lineOf,
  pick,
  type Scene,
  say,
  someBeep,
  voiceFor,
} from './scene.ts';
import type { Role } from './sentences.ts';
import { Timeline } from './timeline.ts';

function machine(
  name: string,
  expect: readonly string[],
  timeline: Timeline,
  voice?: Voice,
  line?: Line,
): Scene {
  return {
    label: 'machine',
    class: name,
    expect,
    sources: voice === undefined ? ['generated'] : [voice.source],
    isReal: voice?.isReal ?? false,
    timeline,
    ...(line?.words === undefined ? {} : { words: line.words }),
    ...(line?.text === undefined ? {} : { text: line.text }),
  };
}

type Spoken = { readonly timeline: Timeline; readonly voice: Voice; readonly line: Line };

function spoken(random: Random, cast: Cast, role: Role): Spoken {
  const voice = voiceFor(random, cast, role);
  const line = lineOf(random, voice, role);
  const timeline = new Timeline().wait(between(random, 60, 1_400));
  say(timeline, line, random, between(random, 0.95, 1.06));
  return { timeline, voice, line };
}

/** Draws a gap: from none after the last word up to that of slow mailboxes. */
function beepGapMs(random: Random): number {
  return random() < 0.25 ? between(random, 0, 120) : between(random, 150, 2_800);
}

function withBeep(name: string, role: Role) {
  return (random: Random, cast: Cast): Scene => {
    const { timeline, voice, line } = spoken(random, cast, role);
    beepAfter(timeline.endGreeting(), random, cast, beepGapMs(random));
    return machine(name, ['machine', 'tone'], timeline, voice, line);
  };
}

/** A scene with "Hi.", a pause, and then the greeting. */
function paused(random: Random, cast: Cast): Scene {
  const voice = pick(
    random,
    cast.voices.filter(({ lines }) => lines.opening?.length && lines.shortGreeting?.length),
  );
  const timeline = new Timeline().wait(between(random, 80, 1_200));
  const speed = between(random, 0.95, 1.06);
  say(timeline, lineOf(random, voice, 'opening'), random, speed);
  timeline.wait(between(random, 1_000, 2_500));
  const line = lineOf(random, voice, random() < 0.5 ? 'shortGreeting' : 'longGreeting');
  say(timeline, line, random, speed);
  beepAfter(timeline.endGreeting(), random, cast, beepGapMs(random));
  return machine('paused greeting', ['machine', 'tone'], timeline, voice);
}

function silentAfter(name: string, role: Role) {
  return (random: Random, cast: Cast): Scene => {
    const { timeline, voice, line } = spoken(random, cast, role);
    timeline.endGreeting().wait(between(random, 5_000, 8_000));
    return machine(name, ['machine', 'stopped'], timeline, voice, line);
  };
}

/** A scene with an announcement. It is often said twice, with a pause. */
function announcement(random: Random, cast: Cast): Scene {
  const { timeline, voice, line } = spoken(random, cast, 'announcement');
  if (random() < 0.6) {
    timeline.wait(between(random, 500, 1_600));
    say(timeline, line, random, 1);
  }
  timeline.endGreeting().wait(5_000);
  return machine('announcement', ['machine', 'stopped'], timeline, voice, line);
}

function afterSit(random: Random, cast: Cast): Scene {
  const voice = voiceFor(random, cast, 'announcement');
  const line = lineOf(random, voice, 'announcement');
  const timeline = new Timeline().wait(between(random, 100, 800));
  const ms = pick(random, [276, 330, 380]);
  for (const hz of [950, 1_400, 1_800]) timeline.sound(sines([hz], ms, -14));
  timeline.wait(between(random, 100, 600));
  say(timeline, line, random, 1);
  timeline.endGreeting().wait(5_000);
  return machine('SIT', ['machine'], timeline, voice, line);
}

function beepAlone(random: Random, cast: Cast): Scene {
  // Before any voice, a tone with a pitch of the network is a network tone, so it cannot reveal a
  // machine.
  const beeps = cast.beeps.filter(({ hz }) => Math.min(...hz) > 520);
  const { samples, name } = someBeep(random, { ...cast, beeps });
  const timeline = new Timeline()
    .wait(between(random, 600, 3_500))
    .beep(samples, name)
    .wait(3_000);
  return machine('beep alone', ['tone'], timeline);
}

function fax(random: Random): Scene {
  const timeline = new Timeline().wait(between(random, 300, 1_500));
  const isAnswering = random() < 0.6;
  const sound = isAnswering ? sines([2_100], 3_000, -14) : sines([1_100], 500, -14);
  timeline
    .sound(sound)
    .sound(quiet(3_000))
    .sound(isAnswering ? quiet(10) : sound)
    .wait(2_000);
  return machine('fax', ['machine'], timeline);
}

/** A scene with hold music after a sentence. */
function queue(random: Random, cast: Cast): Scene {
  const { timeline, voice, line } = spoken(random, cast, 'queue');
  timeline.endGreeting();
  if (random() < 0.5 && cast.music.length > 0) {
    timeline.wait(300).sound(excerpt(random, pick(random, cast.music), 8_000), -4);
  }
  timeline.wait(4_000);
  return machine('queue', ['machine'], timeline, voice, line);
}

export const machineScenes: readonly (readonly [number, (random: Random, cast: Cast) => Scene])[] =
  [
    [55, withBeep('short greeting', 'shortGreeting')],
    [55, withBeep('long greeting', 'longGreeting')],
    [40, paused],
    [18, silentAfter('short greeting, no beep', 'shortGreeting')],
    [18, silentAfter('call screening', 'screening')],
    [16, silentAfter('mailbox full', 'full')],
    [18, announcement],
    [14, afterSit],
    [10, beepAlone],
    [8, fax],
    [14, queue],
  ];
