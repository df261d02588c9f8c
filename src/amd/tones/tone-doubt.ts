// What a beep may be instead, by itself: a tone of the network with a cadence, an appliance, something struck in a room.
// Judges nothing: what becomes of a doubt depends on who spoke and on what follows (beep-belief.ts).

import { frameMs } from '../frame.ts';
import { hasOctave } from './tone-beep.ts';
import type { EndedTone } from './tone-kinds.ts';
import type { ToneRun } from './tone-run.ts';

export type ToneDoubt =
  | 'none'
  /** Its pitch and length are those of a busy tone, congestion, or a warning: it may come again. */
  | 'cadence'
  /** The line was not quiet before it: a room was heard, or a voice. A mailbox sends nothing before it sounds. */
  | 'room'
  /** Piezo buzzers sound there: microwaves, ovens, fridges. */
  | 'appliance'
  /** It dies away, as what is struck does, and some mailboxes' beeps. */
  | 'fading'
  /** It leaves an echo, or has its octave: it sounds in a room. */
  | 'echo';

/** Between what mailboxes use and the buzzers' 2 kHz and above, which are made for 2,048 Hz and off by a few per cent. */
const buzzerHz = 1_955;
/** Louder than what codecs make of silence, and as quiet as the quieter rooms. */
const roomDbfs = -62;
/** Machines' tones keep their level: measured, 95 of 100 within 1.5 dB from their first third to their last. */
const fallsDb = 4;
/** A mailbox is quiet from one frame to the next; a room dies away for as long as we look. */
const echoDb = 5;

export function doubtOf(tone: EndedTone, run: ToneRun, isNetworks: boolean): ToneDoubt {
  if (isNetworks) return 'cadence';
  if (echoOf(run) >= echoDb || hasOctave(tone.shape) || ringsOn(tone) || isMelody(tone))
    return 'echo';
  if (fallOf(run) >= fallsDb) return 'fading';
  if (tone.shape.hz >= buzzerHz) return 'appliance';
  return run.beforeDb >= roomDbfs ? 'room' : 'none';
}

/** Level of the first third less that of the last, without the frames that are only partly tone. */
function fallOf({ db, keptFrames }: ToneRun): number {
  if (keptFrames * frameMs < 140) return 0;
  const third = Math.max(1, Math.floor((keptFrames - 2) / 3));
  return (
    mean(db.subarray(1, 1 + third)) - mean(db.subarray(keptFrames - 1 - third, keptFrames - 1))
  );
}

/** How far the line falls in the 60 ms after the frame that holds the tone's end, unless it is as loud as before the tone. */
function echoOf({ afterDb, beforeDb, gap }: ToneRun): number {
  const { 1: first = Number.NaN, [gap - 1]: last = Number.NaN } = afterDb;
  // A lost frame says nothing.
  if (Number.isNaN(first - last) || last < quietestDbfs) return 0;
  return Math.abs(first - beforeDb) <= noiseDb ? 0 : first - last;
}
/** One frame of noise from another. */
const noiseDb = 5;
/** ... above what the line was before the tone. */
const ringsOnDb = 8;
const ringingDbfs = -66;
const melodyWholeness = 0.92;
/** Below it only codecs differ. */
const quietestDbfs = -72;

/** What a mailbox leaves is as quiet as what was before it; a room is not at once. */
function ringsOn({ shape, riseDb, dropDb }: EndedTone): boolean {
  return riseDb - dropDb >= ringsOnDb && shape.db - dropDb >= ringingDbfs;
}

/** A mailbox's second pitch follows the first without a gap. */
function isMelody({ shape, wholeness }: EndedTone): boolean {
  return shape.steps.length > 1 && wholeness < melodyWholeness;
}

function mean(values: Float32Array): number {
  let sum = 0;
  for (const value of values) sum += value;
  return sum / Math.max(1, values.length);
}
