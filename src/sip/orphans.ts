// Ends a leg that this process knows only from what was stored: by the engine's own ids where the engine knows them (one at
// another address may be the same engine by another name, and no other engine has ids like them), else by a BYE that is built anew from the dialog's state.

import { setTimeout } from 'node:timers/promises';
import type { OrphanResult, StoredLeg } from '../calls/contract/stored-leg.ts';
import type { EngineLink } from './engine-link.ts';
import type { SipLimits } from './sip-limits.ts';
import type { RequestOptions } from './srf-types.ts';
import { type TransactionResult, transact } from './transaction.ts';

// The engine numbers what it sends by itself in the dialog (session refreshes) without telling us; a gap is allowed
// (RFC 3261, 12.2.1.1: strictly increasing), being behind is not.
const cseqGap = 1_000;

export async function endOrphanOn(
  link: EngineLink,
  orphan: StoredLeg,
  limits: Pick<SipLimits, 'orphanTimeoutMs' | 'crossingMs'>,
): Promise<OrphanResult> {
  const deadline = performance.now() + limits.orphanTimeoutMs;
  const remainingMs = () => Math.max(1, deadline - performance.now());
  const result =
    orphan.dialogId === undefined
      ? await endUnanswered(link, orphan, limits.crossingMs, remainingMs)
      : await hangUp(link, orphan, orphan.dialogId, remainingMs);
  if (result !== undefined) return result;
  const bye = rebuiltBye(orphan);
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
  orphan: StoredLeg,
  crossingMs: number,
  remainingMs: () => number,
): Promise<OrphanResult | undefined> {
  const cancelled = await transact(
    link,
    { method: 'CANCEL', uri: orphan.requestUri, stackTxnId: orphan.transactionId },
    { until: 'sent', timeoutMs: remainingMs() },
  );
  if (cancelled.kind === 'timeout' || cancelled.kind === 'lost') return 'unreachable';
  const isCancelled = cancelled.kind === 'response';
  const dialogId = dialogIdOf(orphan);
  if (dialogId !== undefined) {
    const answered = await hangUp(link, orphan, dialogId, remainingMs);
    if (answered !== undefined) return answered;
    if (!isCancelled) return undefined;
    await setTimeout(Math.min(crossingMs, remainingMs()));
    const crossed = await hangUp(link, orphan, dialogId, remainingMs);
    if (crossed !== undefined) return crossed;
  }
  return isCancelled ? 'ended' : undefined;
}

/** ACK and BYE. Undefined: the engine does not know the dialog. */
async function hangUp(
  link: EngineLink,
  orphan: StoredLeg,
  dialogId: string,
  remainingMs: () => number,
): Promise<OrphanResult | undefined> {
  // The leg is stored before the ACK: whether that left is not known, and a second one does no harm (RFC 3261, 13.2.2.4).
  // Not waited for: it reaches the engine before the BYE in any case.
  link.request({ method: 'ACK', uri: orphan.requestUri, stackDialogId: dialogId }, () => undefined);
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
function ofBye(result: TransactionResult): OrphanResult | undefined {
  switch (result.kind) {
    case 'response':
      // 481: the far end has forgotten it. 408 and 503 are the stack's: nobody answered.
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
