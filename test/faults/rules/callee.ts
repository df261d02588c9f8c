// The callee of the rules storm: it answers INVITEs as its random numbers say, and logs each INVITE
// at the moment at which it arrives. The oracle reads nothing else about calls.

import { setTimeout as pause } from 'node:timers/promises';
import type { AcceptedCall } from '../../../src/calls/call-types.ts';
import type { Random } from '../random.ts';

/** All instants come from `Date.now()`. */
export type Invite = {
  readonly at: number;
  readonly callId: string;
  readonly accountId: string;
  readonly number: string;
  /** The rule set that the request named. */
  readonly rules?: string;
  /** Further gateways of one call are no further attempts. */
  readonly gateway: number;
  answeredAt?: number;
  /** Set once a process knows of the answer. A process that dies before takes it to its grave. */
  isAnswerStored?: true;
};

const shares = { answers: 0.3, failsOver: 0.1 };
const mostRingMs = 60;

export class Callee {
  readonly invites: Invite[] = [];
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Logs an INVITE. The caller must not wait between its last check and this. */
  invite({ callId, accountId, request }: AcceptedCall, gateway: number): Invite {
    if (request.target.kind !== 'tel') throw new Error('the callee only has numbers');
    const { rules, target } = request;
    const invite: Invite = {
      ...{ at: Date.now(), callId, accountId, number: target.number, gateway },
      ...(rules === undefined ? {} : { rules }),
    };
    this.invites.push(invite);
    return invite;
  }

  /** Rings, and then answers, refuses, or fails so that the next gateway is tried. */
  async ring(invite: Invite, isCancelled: () => boolean): Promise<'answered' | 'busy' | 'next'> {
    const result = this.#random.next();
    await pause(this.#random.between(0, mostRingMs));
    if (isCancelled()) return 'busy';
    if (invite.gateway === 1 && result < shares.failsOver) return 'next';
    if (result > shares.failsOver + shares.answers) return 'busy';
    invite.answeredAt = Date.now();
    return 'answered';
  }

  async talk(): Promise<void> {
    await pause(this.#random.between(0, mostRingMs));
  }
}
