// Measures how loud the line is and interprets it: the line's own noise (the floor), the voice in
// front, and the background. Levels are in dBFS.

import { decibels, silenceDbfs } from '../frame.ts';

/**
 * The floor is the quietest 60 ms of the last two seconds. Words and sentences have gaps; engines
 * and crowds have none.
 */
const blockFrames = 25;
const blocks = 4;
/** Weights of the new frame in two running means: one over about 60 ms, one over about 100 ms. */
const shortShare = 0.5;
const longShare = 0.22;
/** Quieter than any voice that a caller would understand. */
const minSpeechDbfs = -54;
const aboveFloorDb = 7;
/**
 * Speech lies at least this far above the line's floor, plus `shareOfRange` of the distance from
 * the floor to the peaks.
 */
const wellAboveFloorDb = 5;
const shareOfRange = 0.25;
/** A word is at most this much quieter than the peaks, however quiet the line is. */
const quietWordDb = 22;
/** A frame that is quieter than the 60 ms mean by this much comes after the sound. */
const overDb = 9;
/** Frames of the line's own noise lie within this distance of its quietest one. */
const noiseDb = 3;
/**
 * Even on a noisy line, a word this much quieter than the peaks is loud enough: no speaker stays
 * closer to the peaks.
 */
const steadyWordDb = 6;
/** A voice that stays this far below the peaks for a while speaks in the background. */
const backgroundDb = 9;
/**
 * Fall of the peaks per frame. They are forgotten slowly, because the next voice may be quieter.
 */
const peakFallDb = 0.02;

export type LineLevel = {
  /** Takes a frame's power (1: full scale) and the same value in dBFS. */
  push(power: number, dbfs: number): void;
  /** Level over about 60 ms. */
  readonly dbfs: number;
  readonly loudnessDbfs: number;
  /** Loud enough to be speech. */
  readonly above: boolean;
  /** As loud as the person who speaks into the telephone, not merely audible. */
  readonly inFront: boolean;
  /** Reports that the last frame was the voice in front. */
  heardVoice(): void;
};

export function createLineLevel(): LineLevel {
  return new Level();
}

/**
 * A class, because its fields change in place. A closure would allocate a number for each changed
 * variable, fifty times a second per call.
 */
class Level implements LineLevel {
  readonly #floor = createFloor();
  #short = 0;
  #long = 0;
  #frameDbfs = silenceDbfs;
  #peakDbfs = silenceDbfs;
  dbfs = silenceDbfs;
  loudnessDbfs = silenceDbfs;

  get above(): boolean {
    const floorDbfs = this.#floor.dbfs();
    const levelDbfs = Math.min(this.dbfs, this.#frameDbfs + overDb);
    return (
      this.#frameDbfs >= floorDbfs + noiseDb && levelDbfs >= neededDbfs(floorDbfs, this.#peakDbfs)
    );
  }

  get inFront(): boolean {
    return this.loudnessDbfs >= this.#peakDbfs - backgroundDb;
  }

  push(power: number, dbfs: number): void {
    this.#short += shortShare * (power - this.#short);
    this.#long += longShare * (power - this.#long);
    this.dbfs = decibels(this.#short);
    this.#frameDbfs = dbfs;
    this.loudnessDbfs = decibels(this.#long);
    this.#peakDbfs = Math.max(silenceDbfs, this.#peakDbfs - peakFallDb);
    this.#floor.push(this.dbfs);
  }

  heardVoice(): void {
    this.#peakDbfs = Math.max(this.#peakDbfs, this.loudnessDbfs);
  }
}

function neededDbfs(floorDbfs: number, peakDbfs: number): number {
  const audible = Math.max(minSpeechDbfs, floorDbfs + aboveFloorDb);
  // No speech yet, so there are no peaks to compare with.
  if (peakDbfs === silenceDbfs) return audible;
  const between = floorDbfs + wellAboveFloorDb + shareOfRange * (peakDbfs - floorDbfs);
  const wanted = Math.min(Math.max(between, peakDbfs - quietWordDb), peakDbfs - steadyWordDb);
  return Math.max(minSpeechDbfs, wanted);
}

/** Minimum statistics over blocks, so that old minima are forgotten. */
function createFloor(): { push(dbfs: number): void; dbfs(): number } {
  const minima = new Float64Array(blocks).fill(0);
  let block = 0;
  let inBlock = 0;
  return {
    push(dbfs) {
      minima[block] = Math.min(minima[block] ?? 0, dbfs);
      inBlock += 1;
      if (inBlock < blockFrames) return;
      inBlock = 0;
      block = (block + 1) % blocks;
      minima[block] = dbfs;
    },
    dbfs() {
      let least = 0;
      for (let index = 0; index < blocks; index += 1) least = Math.min(least, minima[index] ?? 0);
      return least;
    },
  };
}
