// A link or a session depends on credentials of its app, and ends when one of them is not live any
// more. The JWT key that verified the token of `/console/link` is one of them. The API key of that
// time is the other: it opens no console, but an operator who replaces it wants everybody out who
// held the credentials of the app.

import { jwtKeyId } from '../store/apps/app-credentials.ts';
import type { App } from '../store/apps/app-directory.ts';
import type { Grant } from './session-store.ts';

/** @param keyId the key that verified the token; left out: the app's newest one. */
export function grantFor(app: App, keyId = newestKeyId(app)): Grant {
  return { appId: app.appId, openedBy: [keyId, ...(app.apiKeyIds ?? []).slice(0, 1)] };
}

/** `app`: as it is now. */
export function isLive({ openedBy }: Grant, app: App): boolean {
  const live = new Set([...app.jwtKeys.map(jwtKeyId), ...(app.apiKeyIds ?? [])]);
  return openedBy.length > 0 && openedBy.every((id) => live.has(id));
}

function newestKeyId({ appId, jwtKeys: [newest] }: App): string {
  if (newest === undefined) throw new Error(`the app ${appId} has no key`);
  return jwtKeyId(newest);
}
