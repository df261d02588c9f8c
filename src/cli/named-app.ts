// Finds an app's id from the text that the user typed, which is the whole id or its beginning.

import type { AdminAccess } from './admin-access.ts';
import { CliError } from './cli-error.ts';
import { ambiguousIdMessage, idPrefixOf } from './id-prefix.ts';

/**
 * Returns the id that starts with the text. If no id does, returns the text unchanged, and the
 * gateway then reports that there is no such app.
 *
 * @throws CliError if several ids start with the text
 */
export async function findAppId(access: AdminAccess, text: string): Promise<string> {
  const prefix = idPrefixOf('app', text);
  if (prefix === undefined || prefix === 'too-short') return text;
  const { apps } = await access.run('apps.list', {});
  const found = apps.filter(({ appId }) => appId.startsWith(prefix));
  const [app, ...others] = found;
  if (app === undefined) return text;
  if (others.length === 0) return app.appId;
  const lines = found.map(
    ({ appId, name, accountId }) => `${appId}  ${name}  account ${accountId}`,
  );
  throw new CliError(ambiguousIdMessage(prefix, lines));
}
