// Says what else a beep may be, judged by its sound alone: a cadenced network tone, an appliance,
// or something struck in a room. beep-belief.ts decides what a doubt means, because that depends on
// who spoke and on what follows.

import { frameMs } from '../frame.ts';
import { hasOctave } from './tone-beep.ts';
import type { EndedTone } from './tone-kinds.ts';
import type { ToneRun } from './tone-run.ts';

export type ToneDoubt =
  | 'none'
  /**
   * It has the pitch and length of a busy tone, a congestion tone or a warning tone, which may
   * repeat.
   */
  | 'cadence'
  /**
   * The line was not quiet before the tone, but carried room noise or a voice. A mailbox sends
   * nothing before its beep.
   */
  | 'room'
  /** It has the pitch of a piezo buzzer, as in microwaves, ovens and fridges. */
  | 'appliance'
  /** It dies away, like the sound of a struck object, but also like some mailboxes' beeps. */
  | 'fading'
  /** It leaves an echo, or contains its octave, so it probably sounds in a room. */
  | 'echo';

/**
 * Lies between the pitches of mailboxes and those of buzzers. Buzzers sound at about 2 kHz and
 * above: they are built for 2,048 Hz, give or take a few per cent.
 */
const buzzerHz = 1_955;
/** Above the level that codecs give to silence, and no louder than a quiet room. */
const roomDbfs = -62;
/**
 * The tones of machines keep their level. We measured that 95 of 100 change by less than 1.5 dB
 * from their first third to their last.
 */
const fallsDb = 4;
/**
 * A mailbox falls silent from one frame to the next. A room dies away for as long as the detector
 * listens.
 */
const echoDb = 5;

export function doubtOf(tone: EndedTone, run: ToneRun, isNetworkTone: boolean): ToneDoubt {
  if (isNetworkTone) return 'cadence';
  if (echoOf(run) >= echoDb || hasOctave(tone.shape) || ringsOn(tone) || isMelody(tone))
    return 'echo';
  if (fallOf(run) >= fallsDb) return 'fading';
  if (tone.shape.hz >= buzzerHz) return 'appliance';
  return run.beforeDb >= roomDbfs ? 'room' : 'none';
}

/**
 * Returns the level of the tone's first third less that of its last third, without the frames that
 * are only partly tone.
 */
function fallOf({ db, keptFrames }: ToneRun): number {
  if (keptFrames * frameMs < 140) return 0;
  const third = Math.max(1, Math.floor((keptFrames - 2) / 3));
  return (
    mean(db.subarray(1, 1 + third)) - mean(db.subarray(keptFrames - 1 - third, keptFrames - 1))
  );
}

/**
 * Returns how far the line falls in the 60 ms after the frame that holds the tone's end, or 0 if
 * the line is then about as loud as before the tone.
 */
function echoOf({ afterDb, beforeDb, gap }: ToneRun): number {
  const { 1: first = Number.NaN, [gap - 1]: last = Number.NaN } = afterDb;
  // A lost frame gives no information.
  if (Number.isNaN(first - last) || last < quietestDbfs) return 0;
  return Math.abs(first - beforeDb) <= noiseDb ? 0 : first - last;
}
/** Difference between two frames of the same noise. */
const noiseDb = 5;
/** A line that is louder after the tone than before it by this much still rings. */
const ringsOnDb = 8;
const ringingDbfs = -66;
const melodyWholeness = 0.92;
/** Below this level, differences come from the codec. */
const quietestDbfs = -72;

/**
 * Returns true if the line stays louder than it was before the tone. A mailbox leaves the line as
 * quiet as before its beep. A room takes longer to fall silent.
 */
function ringsOn({ shape, riseDb, dropDb }: EndedTone): boolean {
  return riseDb - dropDb >= ringsOnDb && shape.db - dropDb >= ringingDbfs;
}

/**
 * Returns true for several pitches with gaps. A mailbox's second pitch follows the first without a
 * gap.
 */
function isMelody({ shape, wholeness }: EndedTone): boolean {
  return shape.steps.length > 1 && wholeness < melodyWholeness;
}

function mean(values: Float32Array): number {
  let sum = 0;
  for (const value of values) sum += value;
  return sum / Math.max(1, values.length);
}
