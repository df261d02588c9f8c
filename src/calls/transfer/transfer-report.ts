// A transfer between the line and the machine: what it needs, what the line asks of it, what becomes of it, and what that comes to.

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
  /** As soon as possible; false: it was not stored, and the call is not this process's any more, or has ended. Never rejects. */
  readonly storeLeg: (call: AcceptedCall, leg: SecondLeg) => Promise<boolean>;
};

/** Tells the machine what comes of it, and nothing more once it was given up. */
export type OngoingTransfer = {
  start(): void;
  /** The far end of the first leg has pressed a key. */
  passKey?(key: PressedKey): void;
  /** The call is over, or does not want it any more. Idempotent. */
  giveUp(reason: string): void;
  /** Who was to be connected is a machine after all: no agent is called for it. An agent who has answered already is left with it. */
  withdraw?(): void;
  /** The first leg was hung up by its far end: whether that is what the transfer was to come to. Then the machine was told so. */
  endsBySuccess?(): boolean;
};

/** What becomes of a transfer, in order: `ringing`, `answered`, `connected`, then `ended`, `failed` or `referred`. */
export type TransferReport =
  | { readonly kind: 'ringing'; readonly sipStatus: number; readonly earlyMedia: boolean }
  /** Stored, acknowledged, and the two hear each other. */
  | { readonly kind: 'answered'; readonly at: Date }
  /** Audio has gone both ways; since the 200 OK. */
  | { readonly kind: 'connected'; readonly msToTwoWayAudio: number }
  | { readonly kind: 'failed'; readonly failure: TransferEnd }
  /** The second leg is over: the call is, too. */
  | { readonly kind: 'ended'; readonly end: LegEnd }
  /** The carrier has connected them: the first leg is to be hung up, if it is not yet. */
  | { readonly kind: 'referred'; readonly at: Date; readonly hasHungUp: boolean };

export type TransferEnd =
  | { readonly kind: 'leg'; readonly failure: LegFailure }
  /** No phone answered for as long as was asked for. */
  | { readonly kind: 'timeout'; readonly at: Date }
  /** A beep took back that a person is there: no agent is called for a machine. */
  | { readonly kind: 'machine'; readonly at: Date }
  /** The app may not call there, or no more; or the trunk has no room. */
  | { readonly kind: 'refused'; readonly at: Date; readonly reason: string }
  /** This process could not go on with it. */
  | { readonly kind: 'gateway'; readonly at: Date; readonly reason: string }
  /** The REFER was taken, and nothing more was heard. */
  | { readonly kind: 'unheard'; readonly at: Date; readonly reason: string };

/** In the words of a call's end. */
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
