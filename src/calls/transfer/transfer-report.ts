// What becomes of a transfer, as the line tells the machine, and what it comes to.

import type { CallOutcome } from '../contract/call-words.ts';
import { endOfFailure } from '../life/call-outcome.ts';
import type { LegEnd, LegFailure } from '../ports.ts';

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
