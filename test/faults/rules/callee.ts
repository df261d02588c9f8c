// The callee of the rules storm: it answers INVITEs as its random numbers say, and logs each INVITE
// at the moment at which it arrives. The oracle knows no other INVITEs.

import { setTimeout as pause } from 'node:timers/promises';
import type { AcceptedCall } from '../../../src/calls/call-types.ts';
import type { Random } from '../random.ts';
import type { Invite } from './rules-oracle.ts';

const shares = { answers: 0.3, failsOver: 0.1, isSilent: 0.002 };
const mostRingMs = 60;
/**
 * A gateway that says nothing. The call tries the next one after this time, which is later than the
 * answer to a PUT that has waited for the call in vain.
 */
const silentMs = 12_500;

export class Callee {
  readonly invites: Invite[] = [];
  /** Calls whose gateway is silent. */
  readonly silent = new Set<Invite>();
  /** No gateway stays silent after the end of the storm. */
  isOver = false;
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Logs an INVITE. The caller must not wait between its last check and this. */
  invite(
    { callId, accountId, request }: AcceptedCall,
    checkedAfter: number,
    gateway: number,
  ): Invite {
    if (request.target.kind !== 'tel') throw new Error('the callee only has numbers');
    const { rules, target } = request;
    const invite: Invite = {
      ...{ at: Date.now(), checkedAfter, callId, accountId, number: target.number, gateway },
      ...(rules === undefined ? {} : { rules }),
    };
    this.invites.push(invite);
    return invite;
  }

  /** Rings, and then answers, refuses, or fails so that the next gateway is tried. */
  async ring(invite: Invite, isCancelled: () => boolean): Promise<'answered' | 'busy' | 'next'> {
    const result = this.#random.next();
    const isFirst = invite.gateway === 1;
    if (isFirst && result < shares.isSilent) return await this.#saysNothing(invite, isCancelled);
    await pause(this.#random.between(0, mostRingMs));
    if (isCancelled()) return 'busy';
    if (isFirst && result < shares.failsOver) return 'next';
    if (result > shares.failsOver + shares.answers) return 'busy';
    invite.answeredAt = Date.now();
    return 'answered';
  }

  async #saysNothing(invite: Invite, isCancelled: () => boolean): Promise<'busy' | 'next'> {
    this.silent.add(invite);
    const until = Date.now() + silentMs;
    while (Date.now() < until && !isCancelled() && !this.isOver) await pause(50);
    this.silent.delete(invite);
    return isCancelled() ? 'busy' : 'next';
  }

  async talk(): Promise<void> {
    await pause(this.#random.between(0, mostRingMs));
  }
}
