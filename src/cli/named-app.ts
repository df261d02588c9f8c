// From what is typed for an app to its id: the whole id, or enough of its beginning.

import type { AdminAccess } from './admin-access.ts';
import { CliError } from './cli-error.ts';
import { idPrefixOf, severalBegin } from './id-prefix.ts';

/**
 * Text that no id begins with is returned unchanged, so that the gateway says that there is no such
 * app.
 *
 * @throws CliError if several ids begin so
 */
export async function appIdNamed(access: AdminAccess, text: string): Promise<string> {
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
  throw new CliError(severalBegin(prefix, lines));
}
