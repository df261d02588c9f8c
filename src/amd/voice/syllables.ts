// Counts syllables, i.e. peaks in the level of voiced sound, each of which follows a dip. These are
// the nuclei in de Jong & Wempe 2009, who use a 2 dB threshold.

const dipDb = 2.5;
/** People don't say more than twelve syllables a second. */
const minSyllableFrames = 4;

export type Syllables = {
  push(voiced: boolean, dbfs: number): void;
  count(): number;
  /** Continues the count at `from`, which is 0 or the result of an earlier count. */
  restart(from: number): void;
};

export function createSyllables(): Syllables {
  let counted = 0;
  let peak = 0;
  let dip = 0;
  let inNucleus = false;
  let sinceLast = minSyllableFrames;

  return {
    push(voiced, dbfs) {
      sinceLast += 1;
      if (inNucleus) {
        peak = Math.max(peak, dbfs);
        if (dbfs < peak - dipDb) {
          inNucleus = false;
          dip = dbfs;
        }
        return;
      }
      dip = Math.min(dip, dbfs);
      if (!voiced || dbfs <= dip + dipDb || sinceLast < minSyllableFrames) return;
      inNucleus = true;
      peak = dbfs;
      sinceLast = 0;
      counted += 1;
    },
    count: () => counted,
    restart(from) {
      counted = from;
    },
  };
}
