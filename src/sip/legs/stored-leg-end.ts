// Ends a leg that this process knows only from its stored state.
// - If the engine knows the leg, the leg is ended by the engine's ids. They are tried on an engine
//   at another address too: it may be the same engine under another name, and no other engine has
//   these ids.
// - Otherwise a BYE is rebuilt from the state of the dialog. A ringing leg is ended this way too,
//   in its early dialog (RFC 3261, 15), if the engine that could CANCEL it is unreachable.

import { setTimeout } from 'node:timers/promises';
import type { LegEndResult, StoredLeg } from '../../calls/contract/stored-leg.ts';
import type { EngineLink } from '../engine/engine-link.ts';
import type { SipLimits } from '../engine/sip-limits.ts';
import type { RequestOptions } from '../engine/srf-types.ts';
import { type TransactionResult, transact } from './transaction.ts';

// The engine sends its own requests in the dialog (session refreshes) without reporting their CSeq
// numbers. A gap is allowed (RFC 3261, 12.2.1.1: strictly increasing), but a number that is too low
// is not.
const cseqGap = 1_000;

export async function endStoredLegOn(
  link: EngineLink,
  leg: StoredLeg,
  limits: Pick<SipLimits, 'orphanTimeoutMs' | 'crossingMs'>,
): Promise<LegEndResult> {
  const deadline = performance.now() + limits.orphanTimeoutMs;
  const remainingMs = () => Math.max(1, deadline - performance.now());
  const result =
    leg.dialogId === undefined
      ? await endUnanswered(link, leg, limits.crossingMs, remainingMs)
      : await hangUp(link, leg, leg.dialogId, remainingMs);
  if (result !== undefined) return result;
  // A request that was refused because the link broke says nothing about what the engine knows.
  if (!link.isUp) return 'unreachable';
  const bye = rebuiltBye(leg);
  if (bye === undefined) return 'gone';
  return (
    resultOfBye(await transact(link, bye, { until: 'answered', timeoutMs: remainingMs() })) ??
    'gone'
  );
}

/**
 * Sends CANCEL for the INVITE's transaction. The INVITE may have been answered anyway: just before
 * the process died, or while the CANCEL was on its way. The dialog then has the id that drachtio
 * derives from Call-ID and From tag.
 *
 * @returns undefined if the engine does not know the leg
 */
async function endUnanswered(
  link: EngineLink,
  leg: StoredLeg,
  crossingMs: number,
  remainingMs: () => number,
): Promise<LegEndResult | undefined> {
  const hangUpIfAnswered = async () => {
    const dialogId = dialogIdOf(leg);
    return dialogId === undefined ? undefined : hangUp(link, leg, dialogId, remainingMs);
  };
  const cancelled = await cancel(link, leg, remainingMs());
  if (cancelled === 'unreachable') return cancelled;
  const answered = await hangUpIfAnswered();
  if (answered !== undefined) return answered;
  if (cancelled === 'unknown') return undefined;
  await setTimeout(Math.min(crossingMs, remainingMs()));
  const crossed = await hangUpIfAnswered();
  if (crossed !== undefined) return crossed;
  // A second CANCEL puts nothing on the wire. The engine refuses it once the INVITE has its final
  // response.
  const isOver = (await cancel(link, leg, remainingMs())) === 'unknown';
  return isOver ? 'ended' : 'cancelled';
}

/**
 * Cancels the INVITE.
 * @returns `unknown` if this engine has no such INVITE under way
 */
async function cancel(
  link: EngineLink,
  leg: StoredLeg,
  timeoutMs: number,
): Promise<'cancelled' | 'unknown' | 'unreachable'> {
  const result = await transact(
    link,
    { method: 'CANCEL', uri: leg.requestUri, stackTxnId: leg.transactionId },
    { until: 'sent', timeoutMs },
  );
  if (result.kind === 'timeout' || result.kind === 'lost' || !link.isUp) return 'unreachable';
  const isCancelled = result.kind === 'response' || result.reason.startsWith(alreadyCancelled);
  return isCancelled ? 'cancelled' : 'unknown';
}

/**
 * Start of the error with which drachtio reports that it knows the INVITE but has already cancelled
 * it.
 */
const alreadyCancelled = 'internal server error canceling transaction id';

/**
 * Sends ACK and BYE.
 * @returns undefined if the engine does not know the dialog
 */
async function hangUp(
  link: EngineLink,
  leg: StoredLeg,
  dialogId: string,
  remainingMs: () => number,
): Promise<LegEndResult | undefined> {
  // The leg is stored before the ACK, so we don't know whether the ACK left. A second ACK does no
  // harm (RFC 3261, 13.2.2.4). The ACK is not awaited: it reaches the engine before the BYE in any
  // case.
  link.request({ method: 'ACK', uri: leg.requestUri, stackDialogId: dialogId }, () => undefined);
  return resultOfBye(
    await transact(
      link,
      { method: 'BYE', stackDialogId: dialogId },
      { until: 'answered', timeoutMs: remainingMs() },
    ),
  );
}

function dialogIdOf(leg: StoredLeg): string | undefined {
  return leg.localTag === undefined ? undefined : `${leg.sipCallId};from-tag=${leg.localTag}`;
}

/** @returns undefined if the engine refused to send the BYE because it does not know the dialog */
function resultOfBye(result: TransactionResult): LegEndResult | undefined {
  switch (result.kind) {
    case 'response':
      // 481: the far end has forgotten the dialog. 408 and 503 come from the stack: no answer came.
      if (result.status === 481) return 'gone';
      return result.status === 408 || result.status === 503 ? 'unreachable' : 'ended';
    case 'refused':
      return undefined;
    case 'timeout':
    case 'lost':
      return 'unreachable';
  }
}

/**
 * Builds a BYE outside of any dialog that the engine knows. Engines accept no Route header from
 * their clients. Only the first hop of the route set can be used: as the address to send to. A
 * proxy that record-routed forwards the BYE by its request URI.
 *
 * @returns undefined if a part of the dialog's identity was not stored
 */
export function rebuiltBye(leg: StoredLeg): RequestOptions | undefined {
  const { localTag, remoteTag, localUri, remoteUri, inviteCseq } = leg;
  if (localTag === undefined || remoteTag === undefined || inviteCseq === undefined)
    return undefined;
  if (localUri === undefined || remoteUri === undefined) return undefined;
  const firstHop = leg.routeSet?.[0];
  return {
    method: 'BYE',
    uri: leg.remoteTarget ?? leg.requestUri,
    headers: {
      From: `<${localUri}>;tag=${localTag}`,
      To: `<${remoteUri}>;tag=${remoteTag}`,
      'Call-ID': leg.sipCallId,
      CSeq: `${inviteCseq + cseqGap} BYE`,
    },
    ...(firstHop !== undefined && { proxy: firstHop }),
  };
}
