// Counts syllables, i.e. peaks in the level of voiced sound, each of which follows a dip. These are
// the nuclei in de Jong & Wempe 2009, who use a 2 dB threshold.

const dipDb = 2.5;
/** People don't say more than twelve syllables a second. */
const minSyllableFrames = 4;

/** A class, so that fields change in place, whereas a closure would allocate changed numbers. */
export class Syllables {
  count = 0;
  #peak = 0;
  #dip = 0;
  #inNucleus = false;
  #sinceLast = minSyllableFrames;

  push(voiced: boolean, dbfs: number): void {
    this.#sinceLast += 1;
    if (this.#inNucleus) {
      this.#followNucleus(dbfs);
      return;
    }
    this.#dip = Math.min(this.#dip, dbfs);
    if (!voiced || dbfs <= this.#dip + dipDb || this.#sinceLast < minSyllableFrames) return;
    this.#inNucleus = true;
    this.#peak = dbfs;
    this.#sinceLast = 0;
    this.count += 1;
  }

  /** Continues the count at `from`, which is 0 or the result of an earlier count. */
  restart(from: number): void {
    this.count = from;
  }

  #followNucleus(dbfs: number): void {
    this.#peak = Math.max(this.#peak, dbfs);
    if (dbfs >= this.#peak - dipDb) return;
    this.#inNucleus = false;
    this.#dip = dbfs;
  }
}
