// A transfer between the line and the machine: what it needs, what the line calls, what it reports,
// and what a report means for the call.

import type { Logger } from '../../lib/logger.ts';
import type { AcceptedCall } from '../call-types.ts';
import type { CallOutcome } from '../contract/call-words.ts';
import type { PressedKey } from '../keys/keys.ts';
import { endOfFailure } from '../life/call-outcome.ts';
import type { SecondLeg } from '../life/call-step.ts';
import type { Clock, LegEnd, LegFailure, SecondLegPort, SipPort } from '../ports.ts';

export type TransferPorts = {
  readonly sip: SipPort;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly admission: SecondLegPort;
  /**
   * Stores the state of a second leg as soon as possible. Never rejects.
   *
   * @returns false if it was not stored, because the call has ended or another process owns it
   */
  readonly storeLeg: (call: AcceptedCall, leg: SecondLeg) => Promise<boolean>;
};

/**
 * A transfer under way. It reports to the machine, and reports nothing more once it was given up.
 */
export type OngoingTransfer = {
  start(): void;
  /** Takes a key that the far end of the first leg has pressed. */
  passKey?(key: PressedKey): void;
  /** Gives the transfer up, because the call is over or does not want it any more. Idempotent. */
  giveUp(reason: string): void;
  /**
   * Calls the transfer off because the person is a machine after all. An agent who has already
   * answered stays connected.
   */
  withdraw?(): void;
  /**
   * Notes that the far end of the first leg has hung up.
   *
   * @returns true if that is the success of the transfer, which was reported to the machine
   */
  onFarEndHangUp?(): boolean;
};

/**
 * Reports of a transfer, in order: `ringing`, `answered`, `connected`, then `ended`, `failed` or
 * `referred`.
 */
export type TransferReport =
  | { readonly kind: 'ringing'; readonly sipStatus: number; readonly earlyMedia: boolean }
  /** The answer is stored and acknowledged, and the two hear each other. */
  | { readonly kind: 'answered'; readonly at: Date }
  /** Audio has gone both ways. The time counts from the 200 OK. */
  | { readonly kind: 'connected'; readonly msToTwoWayAudio: number }
  | { readonly kind: 'failed'; readonly failure: TransferEnd }
  /** The second leg is over, and so is the call. */
  | { readonly kind: 'ended'; readonly end: LegEnd }
  /**
   * The carrier has connected the person and the agent. The first leg must be hung up if the far
   * end has not hung up yet.
   */
  | { readonly kind: 'referred'; readonly at: Date; readonly hasHungUp: boolean };

export type TransferEnd =
  | { readonly kind: 'leg'; readonly failure: LegFailure }
  /** No phone answered within the time-out of the transfer. */
  | { readonly kind: 'timeout'; readonly at: Date }
  /** A beep corrected the verdict that a person is there. No agent is called for a machine. */
  | { readonly kind: 'machine'; readonly at: Date }
  /** The app may not call there, or not any more, or the trunk has no room. */
  | { readonly kind: 'refused'; readonly at: Date; readonly reason: string }
  /** This process could not go on with the transfer. */
  | { readonly kind: 'gateway'; readonly at: Date; readonly reason: string }
  /** The far end took the REFER, and reported nothing more. */
  | { readonly kind: 'unheard'; readonly at: Date; readonly reason: string };

/** Returns what a failure means, in the words of the end of a call. */
export function meaningOf(end: TransferEnd): {
  readonly outcome: CallOutcome;
  readonly reason: string;
  readonly sipStatus?: number;
} {
  switch (end.kind) {
    case 'leg': {
      const { outcome, reason, sipStatus } = endOfFailure(end.failure);
      return { outcome, reason, ...(sipStatus === undefined ? {} : { sipStatus }) };
    }
    case 'timeout':
      return { outcome: 'no-answer', reason: 'Ring time-out' };
    case 'machine':
      return { outcome: 'machine', reason: 'A machine after all' };
    case 'refused':
      return { outcome: 'rejected', reason: end.reason };
    case 'gateway':
      return { outcome: 'gateway-failure', reason: end.reason };
    case 'unheard':
      return { outcome: 'unknown', reason: end.reason };
  }
}

export function instantOf(end: TransferEnd): Date {
  return end.kind === 'leg' ? end.failure.at : end.at;
}
