// Opens the captures. A capture contains a call's SIP messages, notes and audio levels, which we
// keep in addition to the call's events.

import type { CallId } from '../calls/contract/identity.ts';
import { matching } from '../calls/contract/schema.ts';
import { captureSchema, readCapture, writeCaptures } from '../capture/capture-store.ts';
import { Captures } from '../capture/captures.ts';
import type { CaptureSources } from '../console/capture-routes.ts';
import { requestCapture, serveCaptureRequests } from '../events/node-requests.ts';
import { sipCallIdOf } from '../sip/engine/sip-tap.ts';
import type { Environment } from './environment.ts';
import type { Events } from './events.ts';
import type { Storage } from './storage.ts';

export function openCaptures(
  { logger, closers }: Environment,
  { database }: Pick<Storage, 'database'>,
  hidesKeys: (callId: CallId) => boolean,
): Captures {
  const captures = new Captures({
    write: (stored) => writeCaptures(database.pool, stored),
    sipCallIdOf,
    logger,
    hidesKeys,
  });
  closers.add('captures', () => captures.flush());
  return captures;
}

/**
 * Returns a function that finds a call's capture. It looks in this process, then in the database,
 * which contains the captures of ended calls, and finally asks the node that owns the call. Also
 * starts serving such requests from other nodes.
 */
export function openCaptureReader(
  { config: { ownerId }, logger, closers }: Environment,
  {
    storage: { database, ledger },
    captures,
    events: { connection },
  }: { readonly storage: Storage; readonly captures: Captures; readonly events: Events },
): CaptureSources['captureOf'] {
  const view = captures.view.bind(captures);
  const serving = serveCaptureRequests(connection, ownerId, view, logger);
  closers.add('captures for other nodes', () => serving.stop());
  return async (callId, accountId) => {
    const known =
      (await captures.view(callId)) ?? (await readCapture(database.reads(accountId), callId));
    if (known !== undefined) return known;
    const found = await ledger.ownership(callId);
    if (found?.phase !== 'claimed' || found.ownerId === ownerId) return undefined;
    const answer = await requestCapture(connection, found.ownerId, callId);
    // The owner hasn't placed the call yet.
    if (answer === null) return undefined;
    const read = matching(captureSchema, answer);
    return read.ok ? read.value : { keptBy: found.ownerId.replace(/\/[^/]*$/, '') };
  };
}
