// One table: what a SIP status, or a failure of our own, means for the caller. The same words stand in SQL, on NATS, in the
// notification and in the metrics. Status codes not listed fall to the row of their class.

import {
  type CallFault,
  type CallOutcome,
  callOutcomes,
  type ReasonCode,
} from '../contract/call-words.ts';
import type { LegFailure } from '../ports.ts';

/** How a call ended, before it is written as the terminal event. */
export type CallEnd = {
  readonly at: Date;
  readonly outcome: CallOutcome;
  /** The status line of the far end, or what we did, or what failed. */
  readonly reason: string;
  readonly reasonCode: ReasonCode;
  readonly sipStatus?: number;
};

type Meaning = { readonly outcome: CallOutcome; readonly reasonCode: ReasonCode };

const busy: Meaning = { outcome: 'busy', reasonCode: 'Busy here' };
const declined: Meaning = { outcome: 'declined', reasonCode: 'Temporarily Unavailable' };
const unavailable: Meaning = { outcome: 'unavailable', reasonCode: 'Temporarily Unavailable' };
const noAnswer: Meaning = { outcome: 'no-answer', reasonCode: 'Temporarily Unavailable' };
const cancelled: Meaning = { outcome: 'cancelled', reasonCode: 'Temporarily Unavailable' };
const invalidNumber: Meaning = { outcome: 'invalid-number', reasonCode: 'Service Unavailable' };
const rejected: Meaning = { outcome: 'rejected', reasonCode: 'Service Unavailable' };
const carrierFailure: Meaning = { outcome: 'carrier-failure', reasonCode: 'Service Unavailable' };
const gatewayFailure: Meaning = { outcome: 'gateway-failure', reasonCode: 'Service Unavailable' };
const botFailure: Meaning = { outcome: 'bot-failure', reasonCode: 'Bot-disconnected' };
const unknown: Meaning = { outcome: 'unknown', reasonCode: 'Service Unavailable' };
const expired: Meaning = { outcome: 'expired', reasonCode: 'Service Unavailable' };

/** RFC 3261 section 21 unless said otherwise. */
export const outcomeBySipStatus: ReadonlyMap<number, Meaning> = new Map([
  [401, rejected],
  [403, rejected],
  [404, invalidNumber],
  [407, rejected],
  [408, noAnswer],
  [410, invalidNumber],
  [480, unavailable],
  [484, invalidNumber],
  [486, busy],
  // Without a CANCEL of ours: the SIP server's own timer C (185 s on drachtio), or a carrier that gave up ringing.
  [487, noAnswer],
  [600, busy],
  [603, declined],
  [604, invalidNumber],
  [606, rejected],
  // RFC 8197: the callee marked the call as unwanted.
  [607, declined],
  // RFC 8688: an analytics engine of the carrier rejected it on the callee's behalf.
  [608, declined],
]);

const outcomeByClass: ReadonlyMap<number, Meaning> = new Map([
  // Redirections are never followed: the number that would ring is not the one that was asked for.
  [3, rejected],
  [4, rejected],
  [5, carrierFailure],
  [6, rejected],
]);

const faultByOutcome: Readonly<Record<CallOutcome, CallFault | undefined>> = {
  completed: undefined,
  transferred: undefined,
  machine: undefined,
  'voicemail-left': undefined,
  busy: 'callee',
  declined: 'callee',
  'no-answer': 'callee',
  unavailable: 'callee',
  // A number that does not exist was asked for.
  'invalid-number': 'caller',
  cancelled: 'caller',
  rejected: 'carrier',
  'carrier-failure': 'carrier',
  'gateway-failure': 'gateway',
  // The request said where its bot is.
  'bot-failure': 'caller',
  // Its trunks are too slow for what they are given.
  expired: 'gateway',
  unknown: 'gateway',
};

/** Where the status says more than its outcome does. */
const faultBySipStatus: ReadonlyMap<number, CallFault> = new Map([
  // The trunk has no credentials, or wrong ones.
  [401, 'gateway'],
  [407, 'gateway'],
  // RFC 3261, section 21.6: from the user, not from a network on the way.
  [606, 'callee'],
  // RFC 8688: the callee was never asked.
  [608, 'carrier'],
]);

/** Undefined: no side is at fault, the call came to its end. Derived from what is stored of it, and not stored itself. */
export function faultOf(end: Pick<CallEnd, 'outcome' | 'sipStatus'>): CallFault | undefined {
  const { outcome, sipStatus } = end;
  const isRefusal = outcome === 'rejected' || outcome === 'declined';
  const ofStatus = isRefusal && sipStatus !== undefined && faultBySipStatus.get(sipStatus);
  return ofStatus || faultByOutcome[outcome];
}

/** Returns one end for each outcome with each fault that it may have. */
export function endsOfAllKinds(): readonly Pick<CallEnd, 'outcome' | 'sipStatus'>[] {
  const ofStatus = [...faultBySipStatus.keys()].flatMap((sipStatus) => {
    const outcome = outcomeBySipStatus.get(sipStatus)?.outcome;
    return outcome === undefined ? [] : [{ outcome, sipStatus }];
  });
  return [...callOutcomes.map((outcome) => ({ outcome })), ...ofStatus];
}

/** The end of a call that was not answered. */
export function endOfFailure(failure: LegFailure): CallEnd {
  const { at, sipStatus, reason } = failure;
  const line = sipStatus === undefined ? reason : `${sipStatus} ${reason}`.trim();
  return {
    at,
    ...meaningOfFailure(failure),
    reason: line,
    ...(sipStatus === undefined ? {} : { sipStatus }),
  };
}

function meaningOfFailure(failure: LegFailure): Meaning {
  switch (failure.kind) {
    case 'response': {
      const status = failure.sipStatus ?? 0;
      return (
        outcomeBySipStatus.get(status) ??
        outcomeByClass.get(Math.floor(status / 100)) ??
        carrierFailure
      );
    }
    // The stack's own 408 (the INVITE was not answered for 32 s) and 503 (ICMP, refused, DNS) are the carrier's silence,
    // not the person's.
    case 'stack':
    case 'unusable':
      return carrierFailure;
    case 'transport':
      return gatewayFailure;
    case 'cancelled':
      return cancelled;
  }
}

/** The phone rang for as long as was asked for. The CANCEL's 487 is not waited for, so that no SIP status is claimed here. */
export function endOfRingTimeout(at: Date): CallEnd {
  return { at, ...noAnswer, reason: 'Ring time-out' };
}

/** Who ends a call from our side. */
export type EndCommand =
  /** The bot or the dialer application, over HTTP or NATS. */
  | { readonly by: 'application' }
  /** This process, and why: it shuts down, media or its own limits failed. */
  | { readonly by: 'gateway'; readonly reason: string };

export function endBeforeAnswer(command: EndCommand, at: Date): CallEnd {
  return command.by === 'application'
    ? { at, ...cancelled, reason: 'Cancelled by the application' }
    : { at, ...gatewayFailure, reason: command.reason };
}

export function endAfterAnswer(command: EndCommand, at: Date): CallEnd {
  return command.by === 'application'
    ? { at, outcome: 'completed', reason: '200 OK', reasonCode: 'Bot-disconnected' }
    : {
        at,
        outcome: 'gateway-failure',
        reason: command.reason,
        reasonCode: 'Gateway-disconnected',
      };
}

/** Its stream was not taken, or broke and could not be made again. */
export function endOfBotFailure(at: Date): CallEnd {
  return { at, ...botFailure, reason: 'Bot unreachable' };
}

export function endOfRemoteBye(at: Date): CallEnd {
  return { at, outcome: 'completed', reason: '200 OK', reasonCode: 'Caller-disconnected' };
}

/** The far end's carrier has connected them to an agent. */
export function endOfReferral(at: Date): CallEnd {
  return { at, outcome: 'transferred', reason: '200 OK', reasonCode: 'Bot-disconnected' };
}

/** `machineDetection: disconnect`, or a plan that leaves no message, did what it was asked for. */
export function endOfMachine(at: Date): CallEnd {
  return { at, outcome: 'machine', reason: '200 OK', reasonCode: 'Bot-disconnected' };
}

/** A plan left its message, or began to: `complete` says which. */
export function endOfVoicemail(at: Date): CallEnd {
  return { at, outcome: 'voicemail-left', reason: '200 OK', reasonCode: 'Bot-disconnected' };
}

/** The call's own maximum length: nothing failed, but the gateway ended it. */
export function endOfMaxDuration(at: Date): CallEnd {
  return {
    at,
    outcome: 'completed',
    reason: 'Maximum call duration reached',
    reasonCode: 'Gateway-disconnected',
  };
}

/** What became of the process that had a call: this node started again, another node is gone, or the call is lost within it. */
export type GatewayLoss = 'restarted' | 'lost' | 'failed';

const losses: Readonly<Record<GatewayLoss, readonly [what: string, more: string]>> = {
  restarted: ['Gateway restarted', ''],
  lost: ['Gateway lost', '; another node ended the call'],
  failed: ['Gateway failed', ''],
};

/** The call was up. */
export function endOfLoss(loss: GatewayLoss, at: Date): CallEnd {
  const [what, more] = losses[loss];
  return endAfterAnswer({ by: 'gateway', reason: `${what}${more}` }, at);
}

/** Found after a crash in the state "an INVITE may have left": whether a phone rang is not known, and it is not rung again. */
export function endOfUnknown(loss: GatewayLoss, at: Date): CallEnd {
  const [what, more] = losses[loss];
  return { at, ...unknown, reason: `${what} while the call was being placed${more}` };
}

/** Waited in the queue longer than its limit; not dialled late. */
export function endOfExpiry(at: Date): CallEnd {
  return { at, ...expired, reason: 'Waited too long in the queue' };
}
