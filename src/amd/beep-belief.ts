// Is a beep believed, and when? After a machine's greeting at once. After a hello the same sound is rather the microwave's:
// then it must stay alone, on the line and in its pitch, for as long as appliances and the network take to repeat it. A
// mailbox is silent once it has beeped.

import { frameMs } from './frame.ts';
import type { ToneFound } from './tone-detector.ts';
import type { ToneDoubt } from './tone-doubt.ts';

/** What is known of the one who picked up. */
export type Company =
  /** A machine's verdict, or somebody who goes on like a recording. */
  | 'machine'
  /** Nobody has spoken yet. */
  | 'nobody'
  /** Somebody speaks, or did: no verdict yet. */
  | 'undecided'
  /** A person by a longer greeting: the likelier wrong. */
  | 'person'
  /** A person by a hello. */
  | 'hello';

export type BeepBelief = {
  /**
   * One frame: what ended in it, the pitch of a tone under way (0: none), whether somebody speaks. Returns a beep to be
   * stated, which may have ended a second ago, and every other tone as it comes.
   */
  take(
    found: ToneFound | undefined,
    underWayHz: number,
    speaks: boolean,
    company: Company,
  ): ToneFound | undefined;
  /** A beep is waited for to stay alone: nothing is decided meanwhile. */
  readonly waiting: boolean;
};

type Answer = 'yes' | 'no' | 'wait';

const believed: Readonly<Record<Company, Readonly<Record<ToneDoubt, Answer>>>> = {
  machine: { none: 'yes', cadence: 'wait', appliance: 'yes', fading: 'yes', echo: 'yes' },
  nobody: { none: 'yes', cadence: 'no', appliance: 'wait', fading: 'no', echo: 'no' },
  undecided: { none: 'yes', cadence: 'wait', appliance: 'wait', fading: 'yes', echo: 'wait' },
  person: { none: 'yes', cadence: 'wait', appliance: 'wait', fading: 'yes', echo: 'wait' },
  hello: { none: 'wait', cadence: 'no', appliance: 'no', fading: 'no', echo: 'no' },
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

export function createBeepBelief(): BeepBelief {
  let waitingFor: ToneFound | undefined;
  let leftMs = 0;
  let speaksMs = 0;
  let refused: readonly number[] = [];

  function refuse(hz: number): void {
    if (hz > 0 && !isNear(refused, hz)) refused = [...refused, hz].slice(-mostRefused);
    waitingFor = undefined;
  }

  function ended(found: ToneFound, company: Company): ToneFound | undefined {
    // What the network sent once it may send again.
    if (found.kind === 'signalling') refuse(found.hz);
    if (found.kind !== 'beep') return found;
    if (isNear(refused, found.hz)) return undefined;
    const answer = believed[company][found.doubt];
    if (answer === 'yes') return found;
    if (answer === 'no') refuse(found.hz);
    else waitFor(found);
    return undefined;
  }

  function waitFor(found: ToneFound): void {
    waitingFor = found;
    const cadenceMs = Math.max(leastCadenceWaitMs, found.ms + cadenceSlackMs);
    leftMs = found.doubt === 'cadence' ? cadenceMs : applianceWaitMs;
    speaksMs = 0;
  }

  /** Another tone, or a voice: then it was none. */
  function staysAlone(waiting: ToneFound, anotherHz: number, speaks: boolean): boolean {
    if (speaks) speaksMs += frameMs;
    if (anotherHz === 0 && speaksMs < speaksForMs) return true;
    refuse(waiting.hz);
    refuse(anotherHz);
    return false;
  }

  return {
    get waiting() {
      return waitingFor !== undefined;
    },
    take(found, underWayHz, speaks, company) {
      if (waitingFor === undefined) return found && ended(found, company);
      if (found?.kind === 'fax' || found?.kind === 'sit') return found;
      const waiting = waitingFor;
      if (!staysAlone(waiting, found?.hz ?? underWayHz, speaks)) return undefined;
      leftMs -= frameMs;
      if (leftMs > 0) return undefined;
      waitingFor = undefined;
      return waiting;
    },
  };
}

function isNear(pitches: readonly number[], hz: number): boolean {
  return pitches.some((pitch) => Math.abs(pitch - hz) <= samePitch * pitch);
}
