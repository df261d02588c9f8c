// The REFERs of one dialog, one after the other, and whose a NOTIFY is (RFC 3515, section 2.4.6): from the second REFER on it names the
// CSeq of its own in `Event: refer;id=`; without an id it is of the first that is not over. Of a dialog with one REFER every
// NOTIFY is taken: some carriers pass on the ids of their next hop; a second REFER is not heard of over those.

import type { ReferEvent } from '../../calls/ports.ts';
import type { ReceivedRequest, Responder } from '../engine/srf-types.ts';
import { Referral, type ReferralOptions } from './referral.ts';

export class Referrals {
  /** As many as a call may have transfers. */
  readonly #all: Referral[] = [];

  /** The one before is not heard of any more. */
  begin(options: ReferralOptions, tell: (event: ReferEvent) => void): void {
    this.stop();
    this.#all.push(new Referral(options, tell));
  }

  /** False: nothing was referred, and so nothing is subscribed to. */
  onNotify(request: ReceivedRequest, response: Responder): boolean {
    const [first] = this.#all;
    if (first === undefined) return false;
    const referral = this.#all.length === 1 ? first : this.#of(idOf(request));
    referral?.onNotify(request, response);
    return referral !== undefined;
  }

  /** The dialog has ended, or another referral begins. */
  stop(): void {
    this.#all.at(-1)?.stop();
  }

  #of(id: string | undefined): Referral | undefined {
    if (id !== undefined) return this.#all.find((referral) => referral.hasId(id));
    return this.#all.find(({ isSubscribed }) => isSubscribed) ?? this.#all.at(-1);
  }
}

function idOf(request: ReceivedRequest): string | undefined {
  return /;\s*id\s*=\s*"?([^;\s"]+)/i.exec(request.get('Event') ?? '')?.[1];
}
