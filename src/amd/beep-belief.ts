// Decides whether to accept a sound as a mailbox's beep, and when. After a machine's greeting we
// accept the beep immediately. After a hello, however, the same sound is more likely to come from a
// microwave. In that case we wait until an appliance or the network would have repeated the sound,
// and reject the beep if another tone or a voice follows, because a mailbox stays silent after its
// beep.

import { frameMs } from './frame.ts';
import type { ToneFound } from './tones/tone-detector.ts';
import type { ToneDoubt } from './tones/tone-doubt.ts';

/** What detection has found out about who picked up. */
export type Answerer =
  /** The verdict is "machine", or detection has ended and the call is leaving a message. */
  | 'machine'
  /** We haven't heard a voice yet. */
  | 'silence'
  /**
   * We've heard a voice but don't have a verdict yet. Or the verdict was "human", but the voice
   * kept talking like a recording.
   */
  | 'undecided'
  /**
   * The verdict is "human" after a longer greeting. That verdict is wrong more often than after a
   * hello.
   */
  | 'person'
  /** We've heard a hello, whether or not there's a verdict "human" yet. */
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
 * The network's pauses are as long as its tones (E.180 allows 10 % more). So we wait for as long as
 * the tone lasted, plus this slack, in which we'd recognise the next tone.
 */
const cadenceSlackMs = 240;
/**
 * We wait at least this long for the network's next tone, which may follow up to 600 ms after a 200
 * ms tone.
 */
const minCadenceWaitMs = 740;
/** A shorter tone is probably a click or an echo of the first tone. */
const speaksForMs = 160;
const samePitch = 0.025;
/**
 * We remember this many rejected pitches, because a pitch that was once rejected isn't accepted as
 * a beep later.
 */
const maxRejected = 8;

export class BeepBelief {
  #waitingFor: ToneFound | undefined;
  #leftMs = 0;
  #speaksMs = 0;
  #rejected: readonly number[] = [];

  /**
   * True while we're waiting to see whether anything follows a beep. In the meantime, detection
   * doesn't give a verdict.
   */
  get waiting(): boolean {
    return this.#waitingFor !== undefined;
  }

  /** Returns true if we've already rejected a tone at this pitch. */
  isRejected(hz: number): boolean {
    return hz > 0 && isNear(this.#rejected, hz);
  }

  /**
   * Returns true if `take` is going to return this tone as a beep immediately, i.e. in the frame in
   * which the tone is found.
   */
  isSure({ kind, hz, doubt }: ToneFound, answerer: Answerer): boolean {
    if (kind !== 'beep' || this.waiting || isNear(this.#rejected, hz)) return false;
    return believed[answerer][doubt] === 'yes';
  }

  /**
   * Processes the next frame, i.e. the tone that ended in it, the pitch of the current tone (0 if
   * there isn't one), and whether someone is speaking. Beeps are returned as soon as we've accepted
   * them, up to a second after they ended. Other tones are returned as soon as they end.
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
    // The network may well repeat this tone.
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

  /** If another tone or a voice follows the beep, rejects the beep and returns false. */
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
