// Maps SIP statuses and gateway failures to call outcomes. The same outcome names appear in the
// database, NATS messages, notifications and metrics. Statuses without a row of their own use the
// row for their class.

import {
  type CallFault,
  type CallOutcome,
  callOutcomes,
  type ReasonCode,
} from '../contract/call-words.ts';
import type { LegEnd, LegFailure } from '../ports.ts';
import { type RuleRefusal, refusalReasons } from '../rules/refusal.ts';
import type { EndFacts } from './end-facts.ts';

/** How a call ended, before it becomes the terminal event. */
export type CallEnd = {
  readonly at: Date;
  readonly outcome: CallOutcome;
  /** The far end's status line if there is one. Otherwise what the gateway did, or what failed. */
  readonly reason: string;
  readonly reasonCode: ReasonCode;
  readonly sipStatus?: number;
  /** What the far end stated in the response or BYE that ended the call. */
  readonly facts?: EndFacts;
  /** The calling rule that ended the call. Only for `not-permitted`. */
  readonly refusal?: RuleRefusal;
};

type Meaning = { readonly outcome: CallOutcome; readonly reasonCode: ReasonCode };

const busy: Meaning = { outcome: 'busy', reasonCode: 'Busy here' };
const declined: Meaning = { outcome: 'declined', reasonCode: 'Temporarily Unavailable' };
const blocked: Meaning = { outcome: 'blocked', reasonCode: 'Service Unavailable' };
const unavailable: Meaning = { outcome: 'unavailable', reasonCode: 'Temporarily Unavailable' };
const noAnswer: Meaning = { outcome: 'no-answer', reasonCode: 'Temporarily Unavailable' };
const cancelled: Meaning = { outcome: 'cancelled', reasonCode: 'Temporarily Unavailable' };
const invalidNumber: Meaning = { outcome: 'invalid-number', reasonCode: 'Service Unavailable' };
const rejected: Meaning = { outcome: 'rejected', reasonCode: 'Service Unavailable' };
const carrierFailure: Meaning = { outcome: 'carrier-failure', reasonCode: 'Service Unavailable' };
const gatewayFailure: Meaning = { outcome: 'gateway-failure', reasonCode: 'Service Unavailable' };
const botFailure: Meaning = { outcome: 'bot-failure', reasonCode: 'Bot-disconnected' };
const unknown: Meaning = { outcome: 'unknown', reasonCode: 'Service Unavailable' };
const notPermitted: Meaning = { outcome: 'not-permitted', reasonCode: 'Service Unavailable' };
const expired: Meaning = { outcome: 'expired', reasonCode: 'Service Unavailable' };

/** RFC 3261 section 21, unless a comment names another source. */
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
  // We didn't send CANCEL, so this 487 means that the SIP server's timer C expired (185 s on
  // drachtio) or that the carrier stopped ringing.
  [487, noAnswer],
  [600, busy],
  [603, declined],
  [604, invalidNumber],
  [606, rejected],
  // RFC 8197: the callee marked the call as unwanted.
  [607, declined],
  // RFC 8688: the carrier's analytics engine rejected the call on the callee's behalf.
  [608, blocked],
]);

const outcomeByClass: ReadonlyMap<number, Meaning> = new Map([
  // We never follow redirections, because they would ring a number that nobody requested.
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
  // Analytics of a carrier on the way rejected the call. Nobody asked the callee.
  blocked: 'carrier',
  'no-answer': 'callee',
  unavailable: 'callee',
  // The number in the request doesn't exist.
  'invalid-number': 'caller',
  cancelled: 'caller',
  rejected: 'carrier',
  'carrier-failure': 'carrier',
  'gateway-failure': 'gateway',
  // The bot's address came from the request or a command.
  'bot-failure': 'caller',
  // The trunk couldn't keep up with its calls.
  expired: 'gateway',
  // The dialer asked for a call that the account's own rules forbid.
  'not-permitted': 'caller',
  unknown: 'gateway',
};

/** Statuses that identify the side at fault more precisely than their outcome does. */
const faultBySipStatus: ReadonlyMap<number, CallFault> = new Map([
  // The trunk's credentials are missing or wrong.
  [401, 'gateway'],
  [407, 'gateway'],
  // RFC 3261, section 21.6: the response comes from the callee, not from a network on the way.
  [606, 'callee'],
]);

/**
 * Returns which side is at fault. This is always derived from the stored end rather than stored.
 *
 * @returns undefined if the call succeeded
 */
export function faultOf(end: Pick<CallEnd, 'outcome' | 'sipStatus'>): CallFault | undefined {
  const { outcome, sipStatus } = end;
  const faultOfStatus =
    outcome === 'rejected' && sipStatus !== undefined && faultBySipStatus.get(sipStatus);
  return faultOfStatus || faultByOutcome[outcome];
}

/** Returns one end for each combination of outcome and fault that can occur. */
export function endsOfAllKinds(): readonly Pick<CallEnd, 'outcome' | 'sipStatus'>[] {
  const refusals = [...faultBySipStatus.keys()].flatMap((sipStatus) => {
    const outcome = outcomeBySipStatus.get(sipStatus)?.outcome;
    return outcome === undefined ? [] : [{ outcome, sipStatus }];
  });
  return [...callOutcomes.map((outcome) => ({ outcome })), ...refusals];
}

/** The end for a call that a calling rule forbids. */
export function endOfRefusal(refusal: RuleRefusal, at: Date): CallEnd {
  return { at, ...notPermitted, reason: refusalReasons[refusal.rule], refusal };
}

/** The end for a call that wasn't answered. */
export function endOfFailure(failure: LegFailure): CallEnd {
  const { at, sipStatus, reason, facts } = failure;
  if (failure.kind === 'suppressed') return endOfRefusal({ rule: 'suppressed' }, at);
  if (failure.kind === 'outside-hours') return endOfRefusal({ rule: 'hours' }, at);
  // The SIP engine generates the status for a TLS error, so only its words mean anything.
  const isTlsError = failure.kind === 'stack' && reason.startsWith('TLS: ');
  const line = sipStatus === undefined || isTlsError ? reason : `${sipStatus} ${reason}`.trim();
  return {
    at,
    ...meaningOfFailure(failure),
    reason: line,
    ...(sipStatus === undefined ? {} : { sipStatus }),
    ...(facts === undefined ? {} : { facts }),
  };
}

function meaningOfFailure(failure: LegFailure): Meaning {
  switch (failure.kind) {
    case 'response': {
      // A 603 alone means that the callee declines. `src/sip/end-facts.ts` says what makes it a
      // block.
      if (failure.facts?.block !== undefined) return blocked;
      const status = failure.sipStatus ?? 0;
      return (
        outcomeBySipStatus.get(status) ??
        outcomeByClass.get(Math.floor(status / 100)) ??
        carrierFailure
      );
    }
    // The SIP stack itself generates 408 (no response to the INVITE for 32 s) and 503 (ICMP error,
    // connection refused, DNS). Such a status means that the carrier is unreachable, and doesn't
    // tell us anything about the callee.
    case 'stack':
    case 'unusable':
      return carrierFailure;
    case 'transport':
      return gatewayFailure;
    case 'cancelled':
      return cancelled;
    case 'suppressed':
    case 'outside-hours':
      return notPermitted;
  }
}

/**
 * The end for a call that rang until its ring time-out expired. There's no SIP status, because the
 * machine doesn't wait for the 487 that follows its CANCEL.
 */
export function endOfRingTimeout(at: Date): CallEnd {
  return { at, ...noAnswer, reason: 'Ring time-out' };
}

/** A request to end the call, with the side that made it. */
export type EndCommand =
  /** The bot or the dialer application, over HTTP or NATS. */
  | { readonly by: 'application' }
  /** This process. `reason` explains why, e.g. the process is shutting down or its media failed. */
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

/**
 * Used if the bot didn't accept the call's stream, or if the stream broke and couldn't be reopened.
 */
export function endOfBotFailure(at: Date): CallEnd {
  return { at, ...botFailure, reason: 'Bot unreachable' };
}

export function endOfRemoteBye({ at, facts }: Pick<LegEnd, 'at' | 'facts'>): CallEnd {
  const end = { outcome: 'completed', reasonCode: 'Caller-disconnected' } as const;
  return { at, ...end, reason: '200 OK', ...(facts === undefined ? {} : { facts }) };
}

/** Used if the carrier has connected the person to an agent. */
export function endOfReferral(at: Date): CallEnd {
  return { at, outcome: 'transferred', reason: '200 OK', reasonCode: 'Bot-disconnected' };
}

/**
 * The end for a call answered by a machine, if the request sets `machineDetection: disconnect` or
 * if the request's plan didn't leave a message.
 */
export function endOfMachine(at: Date): CallEnd {
  return { at, outcome: 'machine', reason: '200 OK', reasonCode: 'Bot-disconnected' };
}

/**
 * Used if a plan left at least part of its message. The event's `voicemail.complete` field says
 * whether all of the message was sent.
 */
export function endOfVoicemail(at: Date): CallEnd {
  return { at, outcome: 'voicemail-left', reason: '200 OK', reasonCode: 'Bot-disconnected' };
}

/**
 * The end for a call that reached its maximum duration. Although nothing failed, it was the gateway
 * that ended the call.
 */
export function endOfMaxDuration(at: Date): CallEnd {
  return {
    at,
    outcome: 'completed',
    reason: 'Maximum call duration reached',
    reasonCode: 'Gateway-disconnected',
  };
}

/**
 * How the call was lost. restarted: this node restarted. lost: another node has disappeared.
 * failed: the process is still running, but the call's machine has crashed.
 */
export type GatewayLoss = 'restarted' | 'lost' | 'failed';

const losses: Readonly<Record<GatewayLoss, readonly [what: string, more: string]>> = {
  restarted: ['Gateway restarted', ''],
  lost: ['Gateway lost', '; another node ended the call'],
  failed: ['Gateway failed', ''],
};

/** The end for a call that had been answered when it was lost. */
export function endOfLoss(loss: GatewayLoss, at: Date): CallEnd {
  const [what, more] = losses[loss];
  return endAfterAnswer({ by: 'gateway', reason: `${what}${more}` }, at);
}

/**
 * The end for a call that hadn't been answered when it was lost. We don't dial it again, because an
 * INVITE may have been sent and a phone may have rung.
 */
export function endOfUnknown(loss: GatewayLoss, at: Date): CallEnd {
  const [what, more] = losses[loss];
  return { at, ...unknown, reason: `${what} while the call was being placed${more}` };
}

/** The end for a call that reached its queue time-out and was therefore never dialled. */
export function endOfExpiry(at: Date): CallEnd {
  return { at, ...expired, reason: 'Waited too long in the queue' };
}
