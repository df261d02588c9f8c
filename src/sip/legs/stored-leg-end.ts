// Ends a leg that this process didn't place, so all we have is the leg's stored state.
// - If the engine still has the leg, we end it using the engine's ids. We also try those ids on an
//   engine at a different address, which may be the same engine under another name. That's safe,
//   because ids are unique to their engine.
// - Otherwise we rebuild a BYE from the dialog state. If the engine that could CANCEL a ringing leg
//   is unreachable, we end that leg the same way, in its early dialog (RFC 3261, 15).

import { setTimeout } from 'node:timers/promises';
import type { LegEndResult, StoredLeg } from '../../calls/contract/stored-leg.ts';
import { DigestClient } from '../digest/digest-client.ts';
import { requestFrameBytes } from '../engine/control-frame.ts';
import type { EngineLink } from '../engine/engine-link.ts';
import { maxFrameBytes, type SipLimits } from '../engine/sip-limits.ts';
import type { RequestOptions } from '../engine/srf-types.ts';
import type { Credentials } from '../trunks/routing.ts';
import { withoutTlsIdentity } from '../trunks/trunk-uris.ts';
import { type TransactionResult, transact } from './transaction.ts';

// The engine sends its own requests in the dialog (session refreshes) and doesn't report their CSeq
// numbers. Gaps are fine, but the number must not be too low, because it has to increase strictly
// (RFC 3261, 12.2.1.1).
const cseqGap = 1_000;

export async function endStoredLegOn(
  link: EngineLink,
  leg: StoredLeg,
  limits: Pick<SipLimits, 'orphanTimeoutMs' | 'crossingMs'>,
  credentials: Credentials | undefined,
): Promise<LegEndResult> {
  const deadline = performance.now() + limits.orphanTimeoutMs;
  const remainingMs = () => Math.max(1, deadline - performance.now());
  const client = credentials && new DigestClient(credentials);
  const sendBye = async (bye: RequestOptions) =>
    resultOfBye(
      await transact(link, bye, {
        until: 'answered',
        timeoutMs: remainingMs(),
        authentication: { client },
      }),
    );
  const result =
    leg.dialogId === undefined
      ? await endUnanswered(link, leg, limits.crossingMs, remainingMs, sendBye)
      : await hangUp(link, leg, leg.dialogId, sendBye);
  if (result !== undefined) return result;
  // If the request failed because the link broke, we can't tell whether the engine still has the
  // leg.
  if (!link.isUp) return 'unreachable';
  const bye = rebuiltBye(leg);
  if (bye === undefined) return 'gone';
  return (await sendBye(bye)) ?? 'gone';
}

/** Sends a BYE. Resolves to undefined if the engine rejects it. */
type SendBye = (bye: RequestOptions) => Promise<LegEndResult | undefined>;

/**
 * Sends a CANCEL for the INVITE transaction. The INVITE may have been answered anyway, either just
 * before the process died or while the CANCEL was on its way. In that case, drachtio has derived
 * the dialog id from the Call-ID and the From tag.
 *
 * @returns undefined if the engine doesn't have the leg
 */
async function endUnanswered(
  link: EngineLink,
  leg: StoredLeg,
  crossingMs: number,
  remainingMs: () => number,
  sendBye: SendBye,
): Promise<LegEndResult | undefined> {
  const hangUpIfAnswered = async () => {
    const dialogId = dialogIdOf(leg);
    return dialogId === undefined ? undefined : hangUp(link, leg, dialogId, sendBye);
  };
  const cancelled = await cancel(link, leg, remainingMs());
  if (cancelled === 'unreachable') return cancelled;
  const answered = await hangUpIfAnswered();
  if (answered !== undefined) return answered;
  if (cancelled === 'unknown') return undefined;
  await setTimeout(Math.min(crossingMs, remainingMs()));
  const crossed = await hangUpIfAnswered();
  if (crossed !== undefined) return crossed;
  // A second CANCEL is never sent on the wire. The engine rejects it once the INVITE has received
  // its final response.
  const isOver = (await cancel(link, leg, remainingMs())) === 'unknown';
  return isOver ? 'ended' : 'cancelled';
}

/**
 * Cancels the INVITE.
 * @returns `unknown` if this engine doesn't have this INVITE pending
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
 * Start of drachtio's error message for an INVITE that is still pending but has already been
 * cancelled.
 */
const alreadyCancelled = 'internal server error canceling transaction id';

/**
 * Sends ACK and BYE.
 * @returns undefined if the engine doesn't have the dialog
 */
async function hangUp(
  link: EngineLink,
  leg: StoredLeg,
  dialogId: string,
  sendBye: SendBye,
): Promise<LegEndResult | undefined> {
  // We store the leg before the ACK, so we can't tell whether the ACK was sent. A second ACK does
  // no harm (RFC 3261, 13.2.2.4). There's no need to wait, because the ACK reaches the engine
  // before the BYE anyway.
  link.request({ method: 'ACK', uri: leg.requestUri, stackDialogId: dialogId }, () => undefined);
  return await sendBye({ method: 'BYE', stackDialogId: dialogId });
}

function dialogIdOf(leg: StoredLeg): string | undefined {
  return leg.localTag === undefined ? undefined : `${leg.sipCallId};from-tag=${leg.localTag}`;
}

/** @returns undefined if the engine rejected the BYE because it doesn't have the dialog */
function resultOfBye(result: TransactionResult): LegEndResult | undefined {
  switch (result.kind) {
    case 'response':
      // 481 means that the far end has forgotten the dialog. The stack generates 408 and 503 if
      // there was no response.
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
 * Builds a BYE outside of any dialog that the engine has. The embedded engine takes its route from
 * the Route header, also if the first proxy is a strict router (RFC 3261, section 12.2.1.1).
 * drachtio drops a Route header of its clients without a word, so all that it uses of the route set
 * is the first hop, as the address to send to. Proxies that record-routed then forward the BYE by
 * its request URI.
 *
 * @returns undefined if part of the dialog's identity wasn't stored
 */
export function rebuiltBye(leg: StoredLeg): RequestOptions | undefined {
  const { localTag, remoteTag, localUri, remoteUri, inviteCseq } = leg;
  if (localTag === undefined || remoteTag === undefined || inviteCseq === undefined)
    return undefined;
  if (localUri === undefined || remoteUri === undefined) return undefined;
  const { routeSet = [] } = leg;
  const recorded = leg.nextHop ?? routeSet[0];
  const firstHop = leg.tlsHop ?? (recorded && withoutTlsIdentity(recorded));
  const bye = {
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
  if (routeSet.length === 0) return bye;
  const Route = routeSet.map((uri) => `<${uri}>`).join(', ');
  const routed = { ...bye, headers: { ...bye.headers, Route } };
  // A BYE that takes a shorter way is better than one that doesn't fit into a control frame.
  return requestFrameBytes(routed) > maxFrameBytes ? bye : routed;
}
