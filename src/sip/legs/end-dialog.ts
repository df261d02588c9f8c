// Ends one of this process's dialogs with a BYE. If drachtio can't send the BYE within the dialog,
// we rebuild it and send it outside of the dialog.

import type { StoredLeg } from '../../calls/contract/stored-leg.ts';
import type { DigestClient } from '../digest/digest-client.ts';
import type { EngineLink } from '../engine/engine-link.ts';
import type { RequestOptions } from '../engine/srf-types.ts';
import { rebuiltBye } from './stored-leg-end.ts';
import { type TransactionResult, transact } from './transaction.ts';

export type OwnDialog = {
  readonly dialogId: string;
  readonly stored: StoredLeg | undefined;
  /** Answers challenges. Undefined if the trunk has no credentials. */
  readonly digest: DigestClient | undefined;
};

export async function endDialog(
  link: EngineLink,
  dialog: OwnDialog,
  timeoutMs: number,
): Promise<TransactionResult> {
  const authentication = { client: dialog.digest };
  const wait = { until: 'answered', timeoutMs, authentication } as const;
  const bye = { method: 'BYE', stackDialogId: dialog.dialogId };
  const result = await transact(link, bye, wait);
  const rebuilt = byeOutsideDialog(dialog, result);
  return rebuilt === undefined ? result : await transact(link, rebuilt, wait);
}

function byeOutsideDialog(
  { stored }: OwnDialog,
  result: TransactionResult,
): RequestOptions | undefined {
  if (stored === undefined) return undefined;
  // Without a usable Contact in the 200 OK, the engine can't send requests within the dialog. The
  // stored leg then names the sender of the 200 OK as the next hop.
  const isUnsent =
    result.kind === 'refused' || (result.kind === 'response' && result.byStack === true);
  return isUnsent && stored.remoteTarget === undefined ? rebuiltBye(stored) : undefined;
}
