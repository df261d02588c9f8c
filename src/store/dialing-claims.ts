// The claim of a call for dialing when the database goes away in that very moment: it may stand, and nobody was told. Such
// a claim may be tried again by the process that made it, and by nobody else, so that the call is neither lost nor dialled twice.

import type { AcceptedCall } from '../calls/call-types.ts';
import type { CallId } from '../calls/contract/identity.ts';

type Claim = (callId: CallId, owner: string, isRetry: boolean) => Promise<AcceptedCall | undefined>;

/** One for each call that was being taken when the database went away; calls beyond it are found at the next start. */
const doubtfulLimit = 10_000;

export class DialingClaims {
  readonly #claim: Claim;
  readonly #underWay = new Map<CallId, Promise<unknown>>();
  readonly #doubtful = new Set<CallId>();

  constructor(claim: Claim) {
    this.#claim = claim;
  }

  async claim(callId: CallId, owner: string): Promise<AcceptedCall | undefined> {
    const other = this.#underWay.get(callId);
    if (other !== undefined) {
      // Fails as the other does; where it succeeds, the call is the other's.
      await other;
      return undefined;
    }
    const claiming = this.#attempt(callId, owner);
    this.#underWay.set(callId, claiming);
    try {
      return await claiming;
    } finally {
      this.#underWay.delete(callId);
    }
  }

  doubtful(): readonly CallId[] {
    return [...this.#doubtful];
  }

  async #attempt(callId: CallId, owner: string): Promise<AcceptedCall | undefined> {
    try {
      const call = await this.#claim(callId, owner, this.#doubtful.has(callId));
      this.#doubtful.delete(callId);
      return call;
    } catch (error) {
      if (this.#doubtful.size < doubtfulLimit) this.#doubtful.add(callId);
      throw error;
    }
  }
}
