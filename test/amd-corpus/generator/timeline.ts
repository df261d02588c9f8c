// One answer under construction: what sounds when, which part is the greeting, and where the beep
// is.

const perMs = 8;

export type Answer = {
  readonly samples: Float64Array;
  readonly segments: readonly (readonly [startMs: number, endMs: number])[];
  readonly greetingStartMs?: number;
  readonly greetingEndMs?: number;
  readonly beep?: { readonly startMs: number; readonly endMs: number; readonly hz: string };
};

type Placed = { readonly atMs: number; readonly samples: ArrayLike<number>; readonly gain: number };

export class Timeline {
  readonly #placed: Placed[] = [];
  readonly #segments: [number, number][] = [];
  #nowMs = 0;
  #greetingEndMs: number | undefined;
  #beep: Answer['beep'];

  get nowMs(): number {
    return this.#nowMs;
  }

  wait(ms: number): this {
    this.#nowMs += Math.max(0, Math.round(ms));
    return this;
  }

  /** Adds a voice or a machine that says this clip, and advances the time. */
  say(clip: Int16Array, db = 0): this {
    for (const [from, to] of spokenIn(clip)) {
      this.#segments.push([this.#nowMs + from, this.#nowMs + to]);
    }
    return this.sound(levelled(clip), db);
  }

  sound(samples: ArrayLike<number>, db = 0): this {
    this.#place(samples, db, this.#nowMs);
    return this.wait(samples.length / perMs);
  }

  /** Ends the greeting: it is what was said so far. Everything later follows from it. */
  endGreeting(): this {
    this.#greetingEndMs ??= this.#segments.at(-1)?.[1];
    return this;
  }

  beep(samples: ArrayLike<number>, hz: string): this {
    const startMs = this.#nowMs;
    this.sound(samples);
    this.#beep ??= { startMs, endMs: this.#nowMs, hz };
    return this;
  }

  /** Mixes a sound under or over everything else, from a given time, without advancing the time. */
  behind(samples: ArrayLike<number>, db: number, atMs: number): this {
    this.#place(samples, db, atMs);
    return this;
  }

  finish(): Answer {
    const samples = new Float64Array(this.#nowMs * perMs);
    for (const { atMs, samples: part, gain } of this.#placed) {
      const at = Math.round(atMs) * perMs;
      const length = Math.min(part.length, samples.length - at);
      for (let index = 0; index < length; index += 1) {
        samples[at + index] = (samples[at + index] ?? 0) + (part[index] ?? 0) * gain;
      }
    }
    const [first] = this.#segments;
    const endMs = this.#greetingEndMs ?? this.#segments.at(-1)?.[1];
    return {
      samples,
      segments: this.#segments,
      ...(first === undefined ? {} : { greetingStartMs: first[0] }),
      ...(endMs === undefined ? {} : { greetingEndMs: endMs }),
      ...(this.#beep === undefined ? {} : { beep: this.#beep }),
    };
  }

  #place(samples: ArrayLike<number>, db: number, atMs: number): void {
    this.#placed.push({ atMs, samples, gain: 10 ** (db / 20) });
  }
}

const blockMs = 10;
/** Sound this far below the loudest blocks is room and breath. */
const quietDb = 32;
/** Shorter gaps are plosives. */
const shortestGapMs = 200;

/** Finds where a voice speaks in a clip, by the level of blocks of 10 ms. */
export function spokenIn(clip: Int16Array): [number, number][] {
  const levels = blockLevels(clip);
  const loudest = levels.toSorted().at(-3) ?? 0;
  const needed = loudest * 10 ** (-quietDb / 10);
  const found: [number, number][] = [];
  levels.forEach((power, index) => {
    if (power < needed || power === 0) return;
    const startMs = index * blockMs;
    const last = found.at(-1);
    if (last !== undefined && startMs - last[1] < shortestGapMs) last[1] = startMs + blockMs;
    else found.push([startMs, startMs + blockMs]);
  });
  // A click is not a word.
  return found.filter(([from, to]) => to - from >= 40);
}

export function spokenMs(clip: Int16Array): number {
  const segments = spokenIn(clip);
  return (segments.at(-1)?.[1] ?? 0) - (segments[0]?.[0] ?? 0);
}

function blockLevels(clip: Int16Array): Float64Array {
  const block = blockMs * perMs;
  return Float64Array.from({ length: Math.ceil(clip.length / block) }, (_, index) => {
    let power = 0;
    for (const sample of clip.subarray(index * block, (index + 1) * block)) power += sample ** 2;
    return power / block;
  });
}

/** Power of all speech, whatever its source: -20 dBFS. */
const speechPower = (32_768 * 0.1) ** 2;

export function levelled(clip: Int16Array): Float64Array {
  const levels = blockLevels(clip);
  const loud = levels.filter((power) => power > Math.max(...levels) * 0.01);
  const mean = loud.reduce((sum, power) => sum + power, 0) / Math.max(1, loud.length);
  const gain = Math.sqrt(speechPower / Math.max(1, mean));
  return Float64Array.from(clip, (sample) => sample * gain);
}

/** Removes the silence before and after a clip. */
export function trimmed(clip: Int16Array): Int16Array {
  const segments = spokenIn(clip);
  const from = Math.max(0, (segments[0]?.[0] ?? 0) - 20);
  const to = (segments.at(-1)?.[1] ?? clip.length / perMs) + 40;
  return clip.subarray(from * perMs, to * perMs);
}
