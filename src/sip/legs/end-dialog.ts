// Ends one of this process's dialogs with a BYE. If drachtio can't send the BYE within the dialog,
// we rebuild it and send it outside of the dialog.

import type { StoredLeg } from '../../calls/contract/stored-leg.ts';
import type { EngineLink } from '../engine/engine-link.ts';
import type { RequestOptions } from '../engine/srf-types.ts';
import type { Credentials } from '../trunks/routing.ts';
import { withCredentials } from './invite.ts';
import { rebuiltBye } from './stored-leg-end.ts';
import { type TransactionResult, transact } from './transaction.ts';

export type OwnDialog = {
  readonly dialogId: string;
  readonly stored: StoredLeg | undefined;
  readonly credentials: Credentials | undefined;
};

export async function endDialog(
  link: EngineLink,
  dialog: OwnDialog,
  timeoutMs: number,
): Promise<TransactionResult> {
  const wait = { until: 'answered', timeoutMs } as const;
  const bye = { method: 'BYE', stackDialogId: dialog.dialogId };
  const result = await transact(link, bye, wait);
  const rebuilt = byeOutsideDialog(dialog, result);
  return rebuilt === undefined ? result : await transact(link, rebuilt, wait);
}

function byeOutsideDialog(
  { stored, credentials }: OwnDialog,
  result: TransactionResult,
): RequestOptions | undefined {
  if (stored === undefined) return undefined;
  // Without a usable Contact in the 200 OK, the engine can't send requests within the dialog. The
  // stored leg then names the sender of the 200 OK as the first hop.
  const isUnsent =
    result.kind === 'refused' || (result.kind === 'response' && result.byStack === true);
  if (isUnsent && stored.remoteTarget === undefined) return rebuiltBye(stored);
  const isChallenged =
    result.kind === 'response' && (result.status === 401 || result.status === 407);
  // The challenge was a final response, so drachtio has forgotten the dialog. We have to send the
  // BYE with credentials outside of it.
  const bye = isChallenged ? rebuiltBye(stored) : undefined;
  if (bye === undefined || credentials === undefined) return undefined;
  return withCredentials(bye, credentials, { isWanted: () => true, onTooLarge: () => undefined });
}
