// Which credentials of an app a link or a session rests on, and whether all of them are still live. Links come from tokens, so that the
// key that verified the token counts; and the API key of that time, because an operator who replaces it wants all to go that held it.

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
