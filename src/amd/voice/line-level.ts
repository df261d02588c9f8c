// Measures the line's level and separates its own noise (the floor), the voice in front, and the
// background. All levels are in dBFS.

import { decibels, silenceDbfs } from '../frame.ts';

/**
 * The floor is the quietest 60 ms in the last two seconds. This works because speech has gaps,
 * unlike engines and crowds.
 */
const blockFrames = 25;
const blocks = 4;
/** Weights of the new frame in two running means: one over about 60 ms, one over about 100 ms. */
const shortShare = 0.5;
const longShare = 0.22;
/** A caller couldn't understand a voice that's quieter than this. */
const minSpeechDbfs = -54;
const aboveFloorDb = 7;
/**
 * Speech is louder than the line's floor by at least this much, plus `shareOfRange` of the distance
 * from the floor to the peaks.
 */
const wellAboveFloorDb = 5;
const shareOfRange = 0.25;
/** Even on a quiet line, words aren't quieter than the peaks by more than this. */
const quietWordDb = 22;
/** If a frame is this much quieter than the 60 ms mean, the sound has already ended. */
const overDb = 9;
/** The line's own noise stays within this distance of its quietest frame. */
const noiseDb = 3;
/**
 * Even on a noisy line, a word may be this much quieter than the peaks, because nobody speaks more
 * evenly than that.
 */
const steadyWordDb = 6;
/** A voice that stays this far below the peaks for a while is in the background. */
const backgroundDb = 9;
/** How much the peaks decay per frame. They do so slowly, because the next voice may be quieter. */
const peakFallDb = 0.02;

export type LineLevel = {
  /** Adds a frame by its power (1: full scale) and the same value in dBFS. */
  push(power: number, dbfs: number): void;
  /** Level over about 60 ms. */
  readonly dbfs: number;
  readonly loudnessDbfs: number;
  /** True if the line is loud enough for speech. */
  readonly above: boolean;
  /** True if the sound is as loud as the person speaking into the phone, not merely audible. */
  readonly inFront: boolean;
  /** Call this if the last frame was the voice in front. */
  heardVoice(): void;
};

export function createLineLevel(): LineLevel {
  return new Level();
}

/**
 * This is a class so that fields change in place. A closure would allocate a number for each
 * changed variable, fifty times a second per call.
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
  // Nobody has spoken yet, so we don't have any peaks to compare with.
  if (peakDbfs === silenceDbfs) return audible;
  const between = floorDbfs + wellAboveFloorDb + shareOfRange * (peakDbfs - floorDbfs);
  const wanted = Math.min(Math.max(between, peakDbfs - quietWordDb), peakDbfs - steadyWordDb);
  return Math.max(minSpeechDbfs, wanted);
}

/** Tracks the minimum per block, so that we forget old minima. */
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
