// Determines what else a beep could be, judging by its sound alone: a cadenced network tone, an
// appliance, or something struck in a room. What a doubt means is up to beep-belief.ts, because it
// depends on who spoke and what follows.

import { frameMs } from '../frame.ts';
import { hasOctave } from './tone-beep.ts';
import type { EndedTone } from './tone-kinds.ts';
import type { ToneRun } from './tone-run.ts';

export type ToneDoubt =
  | 'none'
  /** It has the pitch and length of a busy, congestion or warning tone, and may repeat. */
  | 'cadence'
  /**
   * The line wasn't quiet before the tone: there was room noise or a voice. A mailbox doesn't send
   * anything before its beep.
   */
  | 'room'
  /** It has the pitch of a piezo buzzer, like those in microwaves, ovens and fridges. */
  | 'appliance'
  /** It dies away like the sound of a struck object. Note that some mailboxes' beeps do, too. */
  | 'fading'
  /** It leaves an echo or contains its octave, so it probably comes from a room. */
  | 'echo';

/**
 * The boundary between mailboxes and buzzers. Buzzers sound at about 2 kHz and above, because
 * they're built for 2,048 Hz, give or take a few per cent.
 */
const buzzerHz = 1_955;
/** Louder than silence after a codec, but not louder than a quiet room. */
const roomDbfs = -62;
/**
 * Machines' tones hold their level: in our measurements, 95 of 100 changed by less than 1.5 dB from
 * their first third to their last.
 */
const fallsDb = 4;
/**
 * A mailbox falls silent from one frame to the next, whereas sound in a room dies away for as long
 * as we listen.
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
 * Returns how much the tone's level falls from its first third to its last third. Ignores the
 * frames that are only partly tone.
 */
function fallOf({ db, keptFrames }: ToneRun): number {
  if (keptFrames * frameMs < 140) return 0;
  const third = Math.max(1, Math.floor((keptFrames - 2) / 3));
  return (
    mean(db.subarray(1, 1 + third)) - mean(db.subarray(keptFrames - 1 - third, keptFrames - 1))
  );
}

/**
 * Returns how far the line's level falls in the 60 ms after the tone's last frame, or 0 if the line
 * is then about as loud as before the tone.
 */
function echoOf({ afterDb, beforeDb, gap }: ToneRun): number {
  const { 1: first = Number.NaN, [gap - 1]: last = Number.NaN } = afterDb;
  // A lost frame doesn't tell us anything.
  if (Number.isNaN(first - last) || last < quietestDbfs) return 0;
  return Math.abs(first - beforeDb) <= noiseDb ? 0 : first - last;
}
/** Difference between two frames of the same noise. */
const noiseDb = 5;
/** If the line is this much louder after the tone than before it, the room is still ringing. */
const ringsOnDb = 8;
const ringingDbfs = -66;
const melodyWholeness = 0.92;
/** Below this level, the codec alone may cause differences. */
const quietestDbfs = -72;

/**
 * Returns true if the line stays louder than before the tone. After a mailbox's beep the line is as
 * quiet as it was before, but a room takes longer to fall silent.
 */
function ringsOn({ shape, riseDb, dropDb }: EndedTone): boolean {
  return riseDb - dropDb >= ringsOnDb && shape.db - dropDb >= ringingDbfs;
}

/**
 * Returns true for several pitches with gaps between them. Mailboxes don't leave a gap before their
 * second pitch.
 */
function isMelody({ shape, wholeness }: EndedTone): boolean {
  return shape.steps.length > 1 && wholeness < melodyWholeness;
}

function mean(values: Float32Array): number {
  let sum = 0;
  for (const value of values) sum += value;
  return sum / Math.max(1, values.length);
}
