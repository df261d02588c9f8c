// What the call does before, during and after a transfer: when a transfer starts, which events it
// emits, and whether its end also ends the call. The transfer itself is carried out by
// `call-bridge.ts`, which relays a second leg, or by `call-referral.ts`, which sends REFER.

import { assertEvent } from 'xstate';
import { type CallEnd, endAfterAnswer, endOfMachine, endOfReferral } from '../life/call-outcome.ts';
import {
  type CallMachineContext,
  callSetup,
  changing,
  type Ongoing,
  sendToMedia,
} from '../life/call-setup.ts';
import { evidenceAfter } from '../rules/evidence.ts';
import { currentStream, endStream, mayHaveBot } from '../stream/stream-effects.ts';
import { uriOfTarget } from '../target/dial-target.ts';
import type { Transfer, TransferFallback, TransferRequest } from './transfer.ts';
import {
  transferAnsweredEvent,
  transferCompletedEvent,
  transferFailedEvent,
  transferRingingEvent,
} from './transfer-events.ts';
import { instantOf, meaningOf, type TransferEnd, type TransferReport } from './transfer-report.ts';

/** Returns why a transfer can't start now, or undefined if it can. */
export function transferObstacle({
  end,
  announcing,
  ongoing,
  transfers,
  limits: { maxTransfers },
}: CallMachineContext): string | undefined {
  if (end !== undefined || announcing !== undefined) return 'The call is ending.';
  if (ongoing !== undefined) return 'The call is already being transferred.';
  if (transfers < maxTransfers) return undefined;
  return `The call has used up its ${maxTransfers} transfers.`;
}

/** @returns undefined if a transfer can't start now */
function nextTransfer(context: CallMachineContext, request: TransferRequest): Transfer | undefined {
  const { progress, transfers } = context;
  if (transferObstacle(context) !== undefined) return undefined;
  return { ...request, legId: `${progress.call.callId}-leg-${transfers + 2}` };
}

/**
 * Starts the request's planned transfer (`bridge`), at most once: at the answer, or when detection
 * finds a person.
 */
export const startPlannedTransfer = callSetup.enqueueActions(({ context, event, enqueue }) => {
  const { bridge } = context.progress.call.request;
  if (bridge === undefined || context.transfers > 0) return;
  const isPerson = event.type === 'media.amd' && event.amd.event === 'amd_human_detected';
  if (bridge.on === 'person' && !isPerson) return;
  const { on: _on, ...request } = bridge;
  const transfer = nextTransfer(context, request);
  if (transfer === undefined) return;
  enqueue.assign(newTransferState(context, transfer, { dependsOnVerdict: bridge.on === 'person' }));
  enqueue({ type: 'sendToLine', params: { type: 'transfer', transfer } });
});

/**
 * Withdraws the planned transfer if a beep corrected the verdict that a person had answered. This
 * only applies to an unanswered transfer that depends on that verdict. We don't interrupt a
 * conversation between the person and the agent, and a transfer started by a command is up to the
 * application.
 */
export const withdrawPlannedTransfer = callSetup.enqueueActions(({ context, event, enqueue }) => {
  const { ongoing } = context;
  const isTakenBack = event.type === 'media.amd' && event.amd.corrects === 'amd_human_detected';
  if (!isTakenBack || ongoing?.dependsOnVerdict !== true || ongoing.isAnswered) return;
  enqueue({ type: 'sendToLine', params: { type: 'withdrawTransfer' } });
});

export const startCommandedTransfer = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'command.transfer');
  const transfer = nextTransfer(context, event.transfer);
  if (transfer === undefined) return;
  const { commandId } = event;
  enqueue.assign(newTransferState(context, transfer, { commandId, dependsOnVerdict: false }));
  enqueue({ type: 'sendToLine', params: { type: 'transfer', transfer } });
});

function newTransferState(
  { transfers, progress }: CallMachineContext,
  transfer: Transfer,
  origin: Pick<Ongoing, 'commandId' | 'dependsOnVerdict'>,
) {
  const ongoing: Ongoing = { ...origin, transfer, isAnswered: false, hasRung: false };
  return {
    progress: { ...progress, transfer: undefined },
    ...{ transfers: transfers + 1, ongoing, fallback: undefined },
  };
}

/**
 * Whether a failed transfer ends the call, because there's no bot or plan left to talk to the
 * person.
 */
export function leavesPersonAlone(context: CallMachineContext, failure: TransferEnd): boolean {
  const { ongoing } = context;
  if (ongoing === undefined) return false;
  const fallback = fallbackAfter(context, ongoing, failure);
  return isPersonAlone({ ...context, ongoing: undefined, fallback });
}

function fallbackAfter(
  { progress }: CallMachineContext,
  { transfer }: Ongoing,
  failure: TransferEnd,
): TransferFallback {
  // The call stays up to leave its message on the machine. The plan will then end the call.
  const hasMessage = failure.kind === 'machine' && progress.call.request.voicemail !== undefined;
  return hasMessage ? 'stay' : transfer.onFailure;
}

/**
 * Whether the call must end after a failed transfer because nobody is left to talk to the person,
 * i.e. no bot or plan has the call or may still get it.
 */
export function isPersonAlone(context: CallMachineContext): boolean {
  const { ongoing, fallback, detection, announcing } = context;
  const { heldBy, hasPlans } = context.plans;
  // The call ends with its announcement.
  if (announcing !== undefined) return false;
  if (ongoing !== undefined || fallback !== 'hangup' || heldBy !== undefined) return false;
  // The plans haven't handled the last detection event yet, and one of them may take over the call.
  if (hasPlans && detection === 'stopped') return false;
  return !mayHaveBot(context);
}

export const emitTransferRinging = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'transfer.ringing');
  const { ongoing } = context;
  if (ongoing === undefined || ongoing.hasRung) return;
  const { event: emitted, ...sequences } = transferRingingEvent(
    context.progress,
    event.at,
    ongoing,
    event,
  );
  enqueue.assign(changing('progress', sequences));
  enqueue.assign({ ongoing: { ...ongoing, hasRung: true } });
  enqueue({ type: 'append', params: { events: [emitted] } });
});

export const emitTransferAnswered = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, 'transfer.answered');
  const { ongoing } = context;
  if (ongoing === undefined) return;
  enqueue(answer(event.at));
  // Otherwise queued sounds would interrupt the conversation.
  enqueue(sendToMedia({ kind: 'stopPlayback' }));
  if (!ongoing.transfer.keepStream) enqueue(endStream('transferred'));
});

function answer(at: Date) {
  return callSetup.enqueueActions(({ context, enqueue }) => {
    const { ongoing } = context;
    if (ongoing === undefined) return;
    const { event: emitted, ...changes } = transferAnsweredEvent(context.progress, at, ongoing);
    const evidence = evidenceAfter(context.progress.evidence, emitted);
    enqueue.assign(changing('progress', { ...changes, evidence }));
    enqueue.assign({ ongoing: { ...ongoing, isAnswered: true } });
    enqueue({ type: 'append', params: { events: [emitted] } });
  });
}

export const noteTransferConnected = callSetup.assign(({ context, event }) => {
  assertEvent(event, 'transfer.connected');
  const { ongoing, progress } = context;
  if (ongoing === undefined || progress.transfer === undefined) return {};
  const transfer = { ...progress.transfer, msToTwoWayAudio: event.msToTwoWayAudio };
  return { progress: { ...progress, transfer } };
});

export const emitTransferFailed = callSetup.enqueueActions(({ event, enqueue }) => {
  assertEvent(event, 'transfer.failed');
  enqueue(fail(event.failure));
});

function fail(failure: TransferEnd) {
  return callSetup.enqueueActions(({ context, enqueue }) => {
    const { ongoing } = context;
    if (ongoing === undefined) return;
    const why = meaningOf(failure);
    const { event: emitted, ...changes } = transferFailedEvent(
      context.progress,
      instantOf(failure),
      ongoing,
      why,
    );
    // If a command gave the call its bot, the application decides what happens next, even if that
    // bot is lost later.
    const isCommanded = (currentStream(context)?.ordinal ?? 0) > 0;
    const fallback = isCommanded ? undefined : fallbackAfter(context, ongoing, failure);
    enqueue.assign(changing('progress', changes));
    enqueue.assign({ ongoing: undefined, fallback });
    enqueue({ type: 'append', params: { events: [emitted] } });
    const { mode, to } = ongoing.transfer;
    // The bot's message has no cause (`streams/README.md`).
    const { cause: _cause, ...meaning } = why;
    const summary = { to: uriOfTarget(to), mode, ...meaning };
    enqueue(sendToMedia({ kind: 'reportTransferFailure', failure: summary }));
  });
}

export const emitTransferEnded = callSetup.enqueueActions(({ event, enqueue }) => {
  assertEvent(event, 'transfer.ended');
  enqueue(complete('completed', event.end.at));
});

/**
 * Emits a referral's answer and completion together, because the person is now in the carrier's
 * hands.
 */
export const emitReferred = callSetup.enqueueActions(({ event, enqueue }) => {
  assertEvent(event, 'transfer.referred');
  enqueue(answer(event.at));
  enqueue(complete('transferred', event.at));
});

function complete(outcome: 'completed' | 'transferred', at: Date) {
  return callSetup.enqueueActions(({ context, enqueue }) => {
    const { ongoing } = context;
    if (ongoing === undefined) return;
    const { progress } = context;
    const { event: emitted, ...changes } = transferCompletedEvent(progress, at, ongoing, outcome);
    enqueue.assign(changing('progress', changes));
    enqueue.assign({ ongoing: undefined });
    enqueue({ type: 'append', params: { events: [emitted] } });
  });
}

export const hangUpOnTransfer = callSetup.enqueueActions(({ context, event, enqueue }) => {
  assertEvent(event, ['transfer.failed', 'transfer.ended', 'transfer.referred']);
  enqueue.assign({ end: endOf(event, context.clock.now()) });
  if (event.kind === 'referred' && event.hasHungUp) {
    enqueue.assign(changing('ending', { legIsOver: true }));
  }
  enqueue({ type: 'sendToLine', params: { type: 'hangUp', reason: 'transfer has ended' } });
});

/**
 * Hangs up because nobody is left to talk to the person. If a bot was still expected or a plan had
 * the call, this happens some time after the transfer failed.
 */
export const hangUpOnPersonAlone = callSetup.enqueueActions(({ context, enqueue }) => {
  enqueue.assign({ end: endAfterAnswer({ by: 'application' }, context.clock.now()) });
  enqueue({ type: 'sendToLine', params: { type: 'hangUp', reason: 'no bot is left to talk to' } });
});

function endOf(report: TransferReport, now: Date): CallEnd {
  if (report.kind === 'referred') return endOfReferral(report.at);
  if (report.kind === 'failed' && report.failure.kind === 'machine') return endOfMachine(now);
  if (report.kind === 'ended' && report.end.by !== 'remote') {
    return endAfterAnswer({ by: 'gateway', reason: report.end.reason }, report.end.at);
  }
  // Either the agent hung up, or no agent was reached and there's no bot. Both count as a hang-up
  // by the application.
  return endAfterAnswer({ by: 'application' }, report.kind === 'ended' ? report.end.at : now);
}

/** Ends the transfer because the call has ended. */
export const closeTransfer = callSetup.enqueueActions(({ context, enqueue }) => {
  const { ongoing } = context;
  if (ongoing === undefined) return;
  const at = context.end?.at ?? context.clock.now();
  if (ongoing.isAnswered) enqueue(complete('completed', at));
  else {
    enqueue(
      fail({
        kind: 'leg',
        failure: { at, kind: 'cancelled', sipStatus: 487, reason: 'the call ended' },
      }),
    );
  }
});
