// Decides whether to believe that a sound is a mailbox's beep, and when. After a machine's greeting
// we believe the beep immediately. After a hello, the same sound is more likely a microwave. We
// then wait for as long as appliances and the network take to repeat a tone, and reject the beep if
// another tone or a voice follows. A mailbox is silent after its beep.

import { frameMs } from './frame.ts';
import type { ToneFound } from './tones/tone-detector.ts';
import type { ToneDoubt } from './tones/tone-doubt.ts';

/** What detection knows about who picked up. */
export type Answerer =
  /** A verdict of "machine", or detection is done and the call is leaving a message. */
  | 'machine'
  /** No voice so far. */
  | 'silence'
  /**
   * A voice was heard, but there is no verdict yet. Or the voice kept talking like a recording
   * after a verdict of "human".
   */
  | 'undecided'
  /** A verdict of "human" after a longer greeting, which is wrong more often than after a hello. */
  | 'person'
  /** A verdict of "human" after a hello, or a hello without a verdict yet. */
  | 'hello';

type Decision = 'yes' | 'no' | 'wait';

const afterSpeech: Readonly<Record<ToneDoubt, Decision>> = {
  none: 'yes',
  room: 'yes',
  cadence: 'wait',
  appliance: 'wait',
  fading: 'yes',
  echo: 'wait',
};

const believed: Readonly<Record<Answerer, Readonly<Record<ToneDoubt, Decision>>>> = {
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

/** Microwaves, fridges and washing machines repeat their beep within 0.9 s. */
const applianceWaitMs = 1_100;
/**
 * The network's pauses are as long as its tones (E.180 allows a tenth more). The wait is longer
 * than the tone by this much, which leaves time to recognise the next tone.
 */
const cadenceSlackMs = 240;
/**
 * Minimum wait for the network's next tone. After a tone of 200 ms, the next one may come 600 ms
 * later.
 */
const minCadenceWaitMs = 740;
/** A shorter sound is an echo of the tone, or a click. */
const speaksForMs = 160;
const samePitch = 0.025;
/** A pitch once rejected as a beep stays rejected. The class remembers this many pitches. */
const maxRejected = 8;

export class BeepBelief {
  #waitingFor: ToneFound | undefined;
  #leftMs = 0;
  #speaksMs = 0;
  #rejected: readonly number[] = [];

  /**
   * True while we wait to see whether anything follows a beep. Detection gives no verdict
   * meanwhile.
   */
  get waiting(): boolean {
    return this.#waitingFor !== undefined;
  }

  /** Returns true if a tone of this pitch was rejected before. */
  isRejected(hz: number): boolean {
    return hz > 0 && isNear(this.#rejected, hz);
  }

  /** Returns true if `take` will return this tone as a beep in the frame in which it is found. */
  isSure({ kind, hz, doubt }: ToneFound, answerer: Answerer): boolean {
    if (kind !== 'beep' || this.waiting || isNear(this.#rejected, hz)) return false;
    return believed[answerer][doubt] === 'yes';
  }

  /**
   * Takes the next frame: the tone that ended in it, the pitch of the tone under way (0 without a
   * tone), and whether a voice is heard. Returns a beep once it is believed, up to a second after
   * its end, and any other tone as soon as it ends.
   */
  take(
    found: ToneFound | undefined,
    underWayHz: number,
    speaks: boolean,
    answerer: Answerer,
  ): ToneFound | undefined {
    const waiting = this.#waitingFor;
    if (waiting === undefined) return found && this.#ended(found, answerer);
    if (found?.kind === 'fax' || found?.kind === 'sit') return found;
    if (!this.#staysAlone(waiting, found?.hz ?? underWayHz, speaks)) return undefined;
    this.#leftMs -= frameMs;
    if (this.#leftMs > 0) return undefined;
    this.#waitingFor = undefined;
    return waiting;
  }

  #ended(found: ToneFound, answerer: Answerer): ToneFound | undefined {
    // The network may repeat a tone that it sent once.
    if (found.kind === 'signalling') this.#reject(found.hz);
    if (found.kind !== 'beep') return found;
    if (isNear(this.#rejected, found.hz)) return undefined;
    const decision = believed[answerer][found.doubt];
    if (decision === 'yes') return found;
    if (decision === 'no') this.#reject(found.hz);
    else this.#waitFor(found);
    return undefined;
  }

  #reject(hz: number): void {
    if (hz > 0 && !isNear(this.#rejected, hz)) {
      this.#rejected = [...this.#rejected, hz].slice(-maxRejected);
    }
    this.#waitingFor = undefined;
  }

  #waitFor(found: ToneFound): void {
    this.#waitingFor = found;
    const cadenceMs = Math.max(minCadenceWaitMs, found.ms + cadenceSlackMs);
    this.#leftMs = found.doubt === 'cadence' ? cadenceMs : applianceWaitMs;
    this.#speaksMs = 0;
  }

  /** Returns false, and rejects the beep, if another tone or a voice follows it. */
  #staysAlone(waiting: ToneFound, anotherHz: number, speaks: boolean): boolean {
    if (speaks) this.#speaksMs += frameMs;
    if (anotherHz === 0 && this.#speaksMs < speaksForMs) return true;
    this.#reject(waiting.hz);
    this.#reject(anotherHz);
    return false;
  }
}

function isNear(pitches: readonly number[], hz: number): boolean {
  return pitches.some((pitch) => Math.abs(pitch - hz) <= samePitch * pitch);
}
