// The interface of a transfer: the ports it needs, the methods that the line calls, its reports to
// the machine, and what its failures mean.

import type { Logger } from '../../lib/logger.ts';
import type { AcceptedCall } from '../call-types.ts';
import type { CallOutcome } from '../contract/call-words.ts';
import type { PressedKey } from '../keys/keys.ts';
import { endOfFailure } from '../life/call-outcome.ts';
import type { SecondLeg } from '../life/call-step.ts';
import type { Cause } from '../life/end-facts.ts';
import type { Admission, Clock, LegEnd, LegFailure, SecondLegPort, SipPort } from '../ports.ts';
import { refusalReasons } from '../rules/refusal.ts';

export type TransferPorts = {
  readonly sip: SipPort;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly admission: SecondLegPort;
  /**
   * Stores a second leg's state. Never rejects.
   *
   * @returns false if it wasn't stored, because the call has ended or another process owns it
   */
  readonly storeLeg: (call: AcceptedCall, leg: SecondLeg) => Promise<boolean>;
};

/** A transfer in progress. It reports to the machine until `giveUp` is called. */
export type OngoingTransfer = {
  start(): void;
  /** Handles a key pressed by the far end of the first leg. */
  passKey?(key: PressedKey): void;
  /** Gives up the transfer because the call has ended or no longer wants it. Idempotent. */
  giveUp(reason: string): void;
  /**
   * Calls off the transfer because a machine answered rather than a person. If an agent has already
   * answered, the agent stays connected.
   */
  withdraw?(): void;
  /** Handles a hang-up by the far end of the first leg, which may complete the transfer. */
  onFarEndHangUp?(): void;
};

/**
 * A transfer's reports, in order: `ringing`, `reached`, `answered`, `connected`, then `ended`,
 * `failed` or `referred`.
 */
export type TransferReport =
  | { readonly kind: 'ringing'; readonly sipStatus: number; readonly earlyMedia: boolean }
  /** The agent has answered, and can hear the person and be heard. The answer isn't stored yet. */
  | { readonly kind: 'reached'; readonly at: Date }
  /** The answer has been stored and acknowledged. `at` is when the agent answered. */
  | { readonly kind: 'answered'; readonly at: Date }
  /** Audio had gone both ways this many milliseconds after the 200 OK. */
  | { readonly kind: 'connected'; readonly msToTwoWayAudio: number }
  | { readonly kind: 'failed'; readonly failure: TransferEnd }
  /** The second leg ended after its answer, which means that the call must end. */
  | { readonly kind: 'ended'; readonly end: LegEnd }
  /**
   * The carrier has connected the person and the agent. If the far end hasn't hung up the first leg
   * yet, we must do so.
   */
  | { readonly kind: 'referred'; readonly at: Date; readonly hasHungUp: boolean };

export type TransferEnd =
  | { readonly kind: 'leg'; readonly failure: LegFailure }
  /** The second leg wasn't answered within the transfer's time-out. */
  | { readonly kind: 'timeout'; readonly at: Date }
  /**
   * A beep corrected the verdict that a person had answered. We never connect agents to machines.
   */
  | { readonly kind: 'machine'; readonly at: Date }
  /** The app may not dial the target or has reached its daily limit, or the trunk had no room. */
  | { readonly kind: 'refused'; readonly at: Date; readonly reason: string }
  /** No call of the account may reach the target. */
  | { readonly kind: 'suppressed'; readonly at: Date }
  /** This process couldn't continue the transfer. */
  | { readonly kind: 'gateway'; readonly at: Date; readonly reason: string }
  /** The far end accepted the REFER but never reported the result. */
  | { readonly kind: 'unheard'; readonly at: Date; readonly reason: string };

/** Why a transfer failed, in the terms used for call ends. */
export type TransferMeaning = {
  readonly outcome: CallOutcome;
  readonly reason: string;
  readonly sipStatus?: number;
  readonly cause?: Cause;
};

export function meaningOf(end: TransferEnd): TransferMeaning {
  switch (end.kind) {
    case 'leg': {
      const { outcome, reason, sipStatus, facts } = endOfFailure(end.failure);
      return {
        ...{ outcome, reason },
        ...(sipStatus === undefined ? {} : { sipStatus }),
        ...(facts?.cause === undefined ? {} : { cause: facts.cause }),
      };
    }
    case 'timeout':
      return { outcome: 'no-answer', reason: 'Ring time-out' };
    case 'machine':
      return { outcome: 'machine', reason: 'A machine after all' };
    case 'refused':
      return { outcome: 'rejected', reason: end.reason };
    case 'suppressed':
      return { outcome: 'not-permitted', reason: refusalReasons.suppressed };
    case 'gateway':
      return { outcome: 'gateway-failure', reason: end.reason };
    case 'unheard':
      return { outcome: 'unknown', reason: end.reason };
  }
}

/** The end of a transfer that was not admitted. */
export function endOfAdmission(
  { reason, isSuppressed }: Extract<Admission, { readonly ok: false }>,
  at: Date,
): TransferEnd {
  return isSuppressed === true ? { kind: 'suppressed', at } : { kind: 'refused', at, reason };
}

export function instantOf(end: TransferEnd): Date {
  return end.kind === 'leg' ? end.failure.at : end.at;
}
