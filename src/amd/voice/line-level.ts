// Measures the line's level, and tells three sounds apart: the line's own noise (the floor), the
// voice in front (the person who is speaking into the phone), and background noise. All levels are
// in dBFS.

import { decibels, silenceDbfs } from '../frame.ts';

/**
 * The floor is the quietest 60 ms in the last two seconds. This works because speech contains gaps,
 * whereas the noise of engines and crowds doesn't.
 */
const blockFrames = 25;
const blocks = 4;
/**
 * Weights of the new frame in two running means, one over about 60 ms and the other over about 100
 * ms.
 */
const shortShare = 0.5;
const longShare = 0.22;
/** Callers couldn't understand a voice that's quieter than this. */
const minSpeechDbfs = -54;
const aboveFloorDb = 7;
/**
 * Speech exceeds the line's floor by at least this much, plus `shareOfRange` of the distance
 * between the floor and the peaks.
 */
const wellAboveFloorDb = 5;
const shareOfRange = 0.25;
/** Even on a quiet line, no word is further below the peaks than this. */
const quietWordDb = 22;
/**
 * A frame that's quieter than the 60 ms mean by this much shows that the sound has already ended.
 */
const overDb = 9;
/** The line's own noise is never louder than its quietest frame by more than this. */
const noiseDb = 3;
/**
 * Even on a noisy line, a word may be quieter than the peaks by this much, because nobody's voice
 * is more even than that.
 */
const steadyWordDb = 6;
/** A voice that remains below the peaks by this much for a while is in the background. */
const backgroundDb = 9;
/**
 * The peaks decay by this much per frame, which is slow. They have to decay because the next voice
 * may be quieter.
 */
const peakFallDb = 0.02;

export type LineLevel = {
  /** Adds a frame's level, both as a power (full scale is 1) and in dBFS. */
  push(power: number, dbfs: number): void;
  /** Mean level over about 60 ms. */
  readonly dbfs: number;
  readonly loudnessDbfs: number;
  /** True if the line is loud enough for speech. */
  readonly above: boolean;
  /**
   * True if the sound isn't just audible, but as loud as the person who is speaking into the phone.
   */
  readonly inFront: boolean;
  /** Call this if the last frame contained the voice in front. */
  heardVoice(): void;
};

export function createLineLevel(): LineLevel {
  return new Level();
}

/**
 * We use a class so that fields change in place. A closure would allocate a number for each changed
 * variable, fifty times a second for each call.
 */
class Level implements LineLevel {
  readonly #floor = new Floor();
  #short = 0;
  #long = 0;
  #frameDbfs = silenceDbfs;
  #peakDbfs = silenceDbfs;
  dbfs = silenceDbfs;
  loudnessDbfs = silenceDbfs;

  get above(): boolean {
    const floorDbfs = this.#floor.dbfs;
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
  // Nobody has spoken yet, so there aren't any peaks to compare the level with.
  if (peakDbfs === silenceDbfs) return audible;
  const between = floorDbfs + wellAboveFloorDb + shareOfRange * (peakDbfs - floorDbfs);
  const wanted = Math.min(Math.max(between, peakDbfs - quietWordDb), peakDbfs - steadyWordDb);
  return Math.max(minSpeechDbfs, wanted);
}

/** Tracks the minimum per block, so that old minima expire. */
class Floor {
  readonly #minima = new Float64Array(blocks);
  #block = 0;
  #inBlock = 0;
  dbfs = 0;

  push(dbfs: number): void {
    const minima = this.#minima;
    minima[this.#block] = Math.min(minima[this.#block] as number, dbfs);
    this.#inBlock += 1;
    if (this.#inBlock === blockFrames) {
      this.#inBlock = 0;
      this.#block = (this.#block + 1) % blocks;
      minima[this.#block] = dbfs;
    }
    let least = 0;
    for (let index = 0; index < blocks; index += 1) {
      least = Math.min(least, minima[index] as number);
    }
    this.dbfs = least;
  }
}
