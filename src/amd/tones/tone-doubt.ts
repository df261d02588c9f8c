// Determines what else a beep could be, judging only by its sound: a cadenced network tone, an
// appliance, or an object that was struck in a room. beep-belief.ts decides how to treat each
// doubt, because that depends on who has spoken and on what follows the tone.

import { frameMs } from '../frame.ts';
import { hasOctave } from './tone-beep.ts';
import type { EndedTone } from './tone-kinds.ts';
import { measurements, type ToneRun } from './tone-run.ts';

export type ToneDoubt =
  | 'none'
  /** Pitch and length match a busy, congestion or warning tone, which may be about to repeat. */
  | 'cadence'
  /**
   * The line wasn't quiet before the tone, because there was room noise or a voice. A mailbox
   * doesn't send anything before its beep.
   */
  | 'room'
  /** The pitch is that of a piezo buzzer, like those in microwaves, ovens and fridges. */
  | 'appliance'
  /**
   * The tone dies away like the sound of a struck object. Note that the beeps of some mailboxes die
   * away, too.
   */
  | 'fading'
  /** The tone leaves an echo or contains its octave, so it was probably made in a room. */
  | 'echo';

/**
 * The boundary between mailboxes and buzzers. Buzzers are built for 2,048 Hz, so they sound at
 * about 2 kHz and above, give or take a few per cent.
 */
const buzzerHz = 1_955;
/** Louder than a codec's silence, but not louder than a quiet room. */
const roomDbfs = -62;
/**
 * Tones that machines generate have a constant level. In our measurements, 95 out of 100 changed by
 * less than 1.5 dB from the first third to the last third.
 */
const fallsDb = 4;
/**
 * A mailbox falls silent from one frame to the next, whereas sound in a room is still dying away
 * when we stop listening.
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
 * Returns how much the tone's level falls from its first third to its last third, ignoring the
 * frames that contain only part of the tone.
 */
function fallOf(run: ToneRun): number {
  const { keptFrames } = run;
  if (keptFrames * frameMs < 140) return 0;
  const third = Math.max(1, Math.floor((keptFrames - 2) / 3));
  const first = measurements(run, 'db', 1, 1 + third);
  return mean(first) - mean(measurements(run, 'db', keptFrames - 1 - third, keptFrames - 1));
}

/**
 * Returns how far the line's level falls in the 60 ms after the tone's last frame. Returns 0 if the
 * line is then about as loud as it was before the tone.
 */
function echoOf({ afterDb, beforeDb, gap }: ToneRun): number {
  const { 1: first = Number.NaN, [gap - 1]: last = Number.NaN } = afterDb;
  // We can't learn anything from a lost frame.
  if (Number.isNaN(first - last) || last < quietestDbfs) return 0;
  return Math.abs(first - beforeDb) <= noiseDb ? 0 : first - last;
}
/** Two frames of the same noise may differ by this much. */
const noiseDb = 5;
/** If the line is this much louder after the tone than before it, the room is still ringing. */
const ringsOnDb = 8;
const ringingDbfs = -66;
const melodyWholeness = 0.92;
/** Below this level, the codec alone may cause differences. */
const quietestDbfs = -72;

/**
 * The line stays louder than it was before the tone. After a mailbox's beep the line is just as
 * quiet as before, but a room takes longer to fall silent.
 */
function ringsOn({ shape, riseDb, dropDb }: EndedTone): boolean {
  return riseDb - dropDb >= ringsOnDb && shape.db - dropDb >= ringingDbfs;
}

/**
 * Several pitches with gaps between them. A mailbox that uses two pitches doesn't leave a gap
 * between them.
 */
function isMelody({ shape, wholeness }: EndedTone): boolean {
  return shape.steps.length > 1 && wholeness < melodyWholeness;
}

function mean(values: Float32Array): number {
  let sum = 0;
  for (const value of values) sum += value;
  return sum / Math.max(1, values.length);
}
