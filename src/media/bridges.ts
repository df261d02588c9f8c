// A worker's bridges. Each bridge connects a call's first session to the session of its second leg,
// and tracks the phase of that connection.

import type { BridgePhase } from '../calls/transfer/transfer.ts';
import type { RtpSession } from './rtp/rtp-session.ts';

type Bridge = {
  /** Session id of the person who was called first. */
  readonly person: number;
  /** Session id of the second leg. */
  readonly partner: number;
  phase: BridgePhase | undefined;
};

export class Bridges {
  readonly #sessionOf: (id: number) => RtpSession | undefined;
  readonly #onConnected: (partner: number) => void;
  /** Each bridge is stored twice: under the id of each of its two sessions. */
  readonly #bridges = new Map<number, Bridge>();

  /** `onConnected` is called once each far end has been sent audio from the other. */
  constructor(
    sessionOf: (id: number) => RtpSession | undefined,
    onConnected: (partner: number) => void,
  ) {
    this.#sessionOf = sessionOf;
    this.#onConnected = onConnected;
  }

  get isEmpty(): boolean {
    return this.#bridges.size === 0;
  }

  enter(personId: number, partnerId: number, phase: BridgePhase): void {
    const person = this.#sessionOf(personId);
    const partner = this.#sessionOf(partnerId);
    if (person === undefined || partner === undefined) return;
    const bridge = this.#bridgeOf(personId, partnerId);
    if (bridge === undefined) return;
    switch (phase) {
      case 'ringing':
        // Do not play ringback over early media that the second leg already sends.
        if (bridge.phase === undefined) person.ring(true);
        break;
      case 'early':
        if (bridge.phase === 'answered') return;
        // Ringback stops at the first packet of early media. If the far end announces early media
        // and sends none, the person keeps hearing ringback.
        if (bridge.phase !== 'early') partner.relayTo(person, () => person.ring(false));
        break;
      case 'answered':
        this.#connect(bridge, person, partner);
        break;
    }
    bridge.phase = phase;
  }

  /** Ends the bridge of session `id`. The two sides no longer hear each other. */
  leave(id: number): void {
    const bridge = this.#bridges.get(id);
    if (bridge === undefined) return;
    this.#bridges.delete(bridge.person);
    this.#bridges.delete(bridge.partner);
    this.#sessionOf(bridge.person)?.ring(false);
    this.#sessionOf(bridge.person)?.stopRelay();
    this.#sessionOf(bridge.partner)?.stopRelay();
  }

  /**
   * Returns the bridge between the two sessions. Creates it if neither session has a bridge.
   * @returns undefined if either session is in another bridge
   */
  #bridgeOf(person: number, partner: number): Bridge | undefined {
    const known = this.#bridges.get(person) ?? this.#bridges.get(partner);
    if (known !== undefined) {
      return known.person === person && known.partner === partner ? known : undefined;
    }
    const bridge: Bridge = { person, partner, phase: undefined };
    this.#bridges.set(person, bridge);
    this.#bridges.set(partner, bridge);
    return bridge;
  }

  #connect(bridge: Bridge, person: RtpSession, partner: RtpSession): void {
    if (bridge.phase === 'answered') return;
    let waiting = 2;
    const onFirst = (): void => {
      waiting -= 1;
      if (waiting === 0) this.#onConnected(bridge.partner);
    };
    person.ring(false);
    person.abandonPlans();
    person.relayTo(partner, onFirst);
    partner.relayTo(person, onFirst);
  }
}
