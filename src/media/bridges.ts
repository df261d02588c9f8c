// A worker's bridges. Each bridge connects a call's first session to its second leg's session, and
// tracks which phase that connection has reached.

import type { BridgePhase } from '../calls/transfer/transfer.ts';
import type { RtpSession } from './rtp/rtp-session.ts';

type Bridge = {
  /** Session id of the person we called first. */
  readonly person: number;
  /** Session id of the second leg. */
  readonly partner: number;
  phase: BridgePhase | undefined;
};

export class Bridges {
  readonly #findSession: (id: number) => RtpSession | undefined;
  readonly #onConnected: (partner: number) => void;
  /** Each bridge is stored twice, under both of its session ids. */
  readonly #bridges = new Map<number, Bridge>();

  /** `onConnected` is called once both far ends have been sent each other's audio. */
  constructor(
    findSession: (id: number) => RtpSession | undefined,
    onConnected: (partner: number) => void,
  ) {
    this.#findSession = findSession;
    this.#onConnected = onConnected;
  }

  get isEmpty(): boolean {
    return this.#bridges.size === 0;
  }

  enter(personId: number, partnerId: number, phase: BridgePhase): void {
    const person = this.#findSession(personId);
    const partner = this.#findSession(partnerId);
    if (person === undefined || partner === undefined) return;
    const bridge = this.#findOrCreateBridge(personId, partnerId);
    if (bridge === undefined) return;
    switch (phase) {
      case 'ringing':
        // Don't play ringback over early media that the second leg already sends.
        if (bridge.phase === undefined) person.ring(true);
        break;
      case 'early':
        if (bridge.phase === 'answered') return;
        // Stop ringback at the first early media packet. Some far ends announce early media but
        // don't send any, in which case the person keeps hearing ringback.
        if (bridge.phase !== 'early') partner.relayTo(person, () => person.ring(false));
        break;
      case 'answered':
        this.#connect(bridge, person, partner);
        break;
    }
    bridge.phase = phase;
  }

  /** Ends the bridge of session `id`. The two sides can no longer hear each other. */
  leave(id: number): void {
    const bridge = this.#bridges.get(id);
    if (bridge === undefined) return;
    this.#bridges.delete(bridge.person);
    this.#bridges.delete(bridge.partner);
    this.#findSession(bridge.person)?.ring(false);
    this.#findSession(bridge.person)?.stopRelay();
    this.#findSession(bridge.partner)?.stopRelay();
  }

  /**
   * Returns the bridge between the two sessions, or creates it if neither session has one.
   * @returns undefined if either session is in another bridge
   */
  #findOrCreateBridge(person: number, partner: number): Bridge | undefined {
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
