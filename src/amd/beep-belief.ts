// Is a beep believed, and when? After a machine's greeting at once. After a hello the same sound is rather the microwave's:
// then it must stay alone, on the line and in its pitch, for as long as appliances and the network take to repeat it. A
// mailbox is silent once it has beeped.

import { frameMs } from './frame.ts';
import type { ToneFound } from './tones/tone-detector.ts';
import type { ToneDoubt } from './tones/tone-doubt.ts';

/** What is known of the one who picked up. */
export type Company =
  /** A machine's verdict, or a voice that goes on like a recording. */
  | 'machine'
  /** No voice was heard yet. */
  | 'silence'
  /** A voice is heard, or was: no verdict yet. */
  | 'undecided'
  /** A person by a longer greeting: the likelier wrong. */
  | 'person'
  /** A person by a hello. */
  | 'hello';

type Answer = 'yes' | 'no' | 'wait';

const afterSpeech: Readonly<Record<ToneDoubt, Answer>> = {
  none: 'yes',
  room: 'yes',
  cadence: 'wait',
  appliance: 'wait',
  fading: 'yes',
  echo: 'wait',
};

const believed: Readonly<Record<Company, Readonly<Record<ToneDoubt, Answer>>>> = {
  machine: {
    none: 'yes',
    room: 'yes',
    cadence: 'wait',
    appliance: 'yes',
    fading: 'yes',
    echo: 'yes',
  },
  silence: {
    none: 'yes',
    room: 'wait',
    cadence: 'no',
    appliance: 'wait',
    fading: 'no',
    echo: 'no',
  },
  undecided: afterSpeech,
  person: afterSpeech,
  hello: { none: 'wait', room: 'wait', cadence: 'wait', appliance: 'no', fading: 'no', echo: 'no' },
};

/** Microwaves, fridges and washing machines repeat within 0.9 s. */
const applianceWaitMs = 1_100;
/** The network's pauses are as long as its tones (E.180 allows a tenth more), and the next tone has to be known ... */
const cadenceSlackMs = 240;
/** ... or 600 ms after one of 200 ms. */
const leastCadenceWaitMs = 740;
/** Less is what rings on, or a click. */
const speaksForMs = 160;
const samePitch = 0.025;
/** A pitch that was none stays none: so many of them are remembered. */
const mostRefused = 8;

export class BeepBelief {
  #waitingFor: ToneFound | undefined;
  #leftMs = 0;
  #speaksMs = 0;
  #refused: readonly number[] = [];

  /** A beep is waited for to stay alone: nothing is decided meanwhile. */
  get waiting(): boolean {
    return this.#waitingFor !== undefined;
  }

  /** A pitch once rejected as a beep stays rejected. */
  isRefused(hz: number): boolean {
    return hz > 0 && isNear(this.#refused, hz);
  }

  /** Whether `take` will return this tone as a beep in the frame in which it is found. */
  isSure({ kind, hz, doubt }: ToneFound, company: Company): boolean {
    if (kind !== 'beep' || this.waiting || isNear(this.#refused, hz)) return false;
    return believed[company][doubt] === 'yes';
  }

  /**
   * Takes the next frame: the tone that ended in it, the pitch of the tone under way (0 without a tone), and whether a voice
   * is heard. Returns a beep once it is believed, up to a second after its end, and any other tone as soon as it ends.
   */
  take(
    found: ToneFound | undefined,
    underWayHz: number,
    speaks: boolean,
    company: Company,
  ): ToneFound | undefined {
    const waiting = this.#waitingFor;
    if (waiting === undefined) return found && this.#ended(found, company);
    if (found?.kind === 'fax' || found?.kind === 'sit') return found;
    if (!this.#staysAlone(waiting, found?.hz ?? underWayHz, speaks)) return undefined;
    this.#leftMs -= frameMs;
    if (this.#leftMs > 0) return undefined;
    this.#waitingFor = undefined;
    return waiting;
  }

  #ended(found: ToneFound, company: Company): ToneFound | undefined {
    // What the network sent once it may send again.
    if (found.kind === 'signalling') this.#refuse(found.hz);
    if (found.kind !== 'beep') return found;
    if (isNear(this.#refused, found.hz)) return undefined;
    const answer = believed[company][found.doubt];
    if (answer === 'yes') return found;
    if (answer === 'no') this.#refuse(found.hz);
    else this.#waitFor(found);
    return undefined;
  }

  #refuse(hz: number): void {
    if (hz > 0 && !isNear(this.#refused, hz)) {
      this.#refused = [...this.#refused, hz].slice(-mostRefused);
    }
    this.#waitingFor = undefined;
  }

  #waitFor(found: ToneFound): void {
    this.#waitingFor = found;
    const cadenceMs = Math.max(leastCadenceWaitMs, found.ms + cadenceSlackMs);
    this.#leftMs = found.doubt === 'cadence' ? cadenceMs : applianceWaitMs;
    this.#speaksMs = 0;
  }

  /** Another tone, or a voice: then it was none. */
  #staysAlone(waiting: ToneFound, anotherHz: number, speaks: boolean): boolean {
    if (speaks) this.#speaksMs += frameMs;
    if (anotherHz === 0 && this.#speaksMs < speaksForMs) return true;
    this.#refuse(waiting.hz);
    this.#refuse(anotherHz);
    return false;
  }
}

function isNear(pitches: readonly number[], hz: number): boolean {
  return pitches.some((pitch) => Math.abs(pitch - hz) <= samePitch * pitch);
}
