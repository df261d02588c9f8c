// How loud the line is, and what that means: its own noise (the floor), the voice in front, and what only sounds behind it.
// Levels in dBFS.

import { decibels, silenceDbfs } from '../frame.ts';

/** The floor is the quietest 60 ms of the last two seconds: words and sentences have gaps, engines and crowds have none. */
const blockFrames = 25;
const blocks = 4;
/** Of the running mean over about 60 ms, and of the one over about 100 ms. */
const shortShare = 0.5;
const longShare = 0.22;
/** Quieter than any voice that a caller would understand. */
const quietestSpeechDbfs = -54;
const aboveFloorDb = 7;
/** Speech lies well above the line's floor, the further the louder it is ... */
const wellAboveFloorDb = 5;
const shareOfRange = 0.25;
/** ... but a word may be this much quieter than the peaks, on however quiet a line. */
const quietWordDb = 22;
/** What has fallen this far below the mean of 60 ms is over. */
const overDb = 9;
/** And a frame of the line's own noise lies within this of its quietest. */
const noiseDb = 3;
/** However noisy: no speaker's words keep to within this of their peaks. */
const steadyWordDb = 6;
/** A voice that stays this far below the peaks for a while speaks in the background. */
const backgroundDb = 9;
/** The peaks are forgotten slowly: the next voice may be quieter. */
const peakFallDb = 0.02;

export type LineLevel = {
  /** A frame: its power, 1 being full scale, and the same in dBFS. */
  push(power: number, dbfs: number): void;
  /** Over 60 ms. */
  readonly dbfs: number;
  readonly loudnessDbfs: number;
  /** Loud enough to be speech. */
  readonly above: boolean;
  /** As loud as the one who speaks into the telephone, not merely audible. */
  readonly inFront: boolean;
  /** This was the voice in front. */
  heardVoice(): void;
};

export function createLineLevel(): LineLevel {
  return new Level();
}

/** A class, as its fields change in place: variables would allocate a number each, fifty times a second for each call. */
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
  const audible = Math.max(quietestSpeechDbfs, floorDbfs + aboveFloorDb);
  // No speech yet: nothing to compare with.
  if (peakDbfs === silenceDbfs) return audible;
  const between = floorDbfs + wellAboveFloorDb + shareOfRange * (peakDbfs - floorDbfs);
  const wanted = Math.min(Math.max(between, peakDbfs - quietWordDb), peakDbfs - steadyWordDb);
  return Math.max(quietestSpeechDbfs, wanted);
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
