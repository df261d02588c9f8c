// Ends a leg that this process knows only from what was stored: by the engine's own ids where the engine knows them (one at
// another address may be the same engine by another name, and no other engine has ids like them), else by a BYE that is built anew from the dialog's state; what rings is ended so too, in its
// early dialog (RFC 3261, 15), where the engine that could CANCEL it is unreachable.

import { setTimeout } from 'node:timers/promises';
import type { LegEndResult, StoredLeg } from '../../calls/contract/stored-leg.ts';
import type { EngineLink } from '../engine/engine-link.ts';
import type { SipLimits } from '../engine/sip-limits.ts';
import type { RequestOptions } from '../engine/srf-types.ts';
import { type TransactionResult, transact } from './transaction.ts';

// The engine numbers what it sends by itself in the dialog (session refreshes) without telling us; a gap is allowed
// (RFC 3261, 12.2.1.1: strictly increasing), being behind is not.
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
  // What is refused because the connection went is no word of the engine.
  if (!link.isUp) return 'unreachable';
  const bye = rebuiltBye(leg);
  if (bye === undefined) return 'gone';
  return (
    ofBye(await transact(link, bye, { until: 'answered', timeoutMs: remainingMs() })) ?? 'gone'
  );
}

/**
 * CANCEL by the transaction. It may have been answered all the same: just before the process died, or while the CANCEL
 * was on its way; then the dialog goes by the name that drachtio gives it. Undefined: the engine does not know the leg.
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
  // A second CANCEL puts nothing on the wire; the engine refuses it once the INVITE has its final response.
  const isOver = (await cancel(link, leg, remainingMs())) === 'unknown';
  return isOver ? 'ended' : 'cancelled';
}

/** `unknown`: no such INVITE is under way on this engine. */
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
  const isCancelled = result.kind === 'response' || result.reason.startsWith(cancelledBefore);
  return isCancelled ? 'cancelled' : 'unknown';
}

/** drachtio's words where it knows the INVITE, and has cancelled it already. */
const cancelledBefore = 'internal server error canceling transaction id';

/** ACK and BYE. Undefined: the engine does not know the dialog. */
async function hangUp(
  link: EngineLink,
  leg: StoredLeg,
  dialogId: string,
  remainingMs: () => number,
): Promise<LegEndResult | undefined> {
  // The leg is stored before the ACK: whether that left is not known, and a second one does no harm (RFC 3261, 13.2.2.4).
  // Not waited for: it reaches the engine before the BYE in any case.
  link.request({ method: 'ACK', uri: leg.requestUri, stackDialogId: dialogId }, () => undefined);
  return ofBye(
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

/** Undefined: the engine refused to send it, for it does not know the dialog. */
function ofBye(result: TransactionResult): LegEndResult | undefined {
  switch (result.kind) {
    case 'response':
      // 481: the far end has forgotten it. 408 and 503 are the stack's: no answer came.
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
 * A BYE outside of any dialog that the engine knows. Engines take no Route header from us, so only the first hop of a
 * route set can be given, as the address to send to; a proxy that record-routed passes it on by the request URI.
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
