// Creates the dev app, which lets developers try the gateway without any set-up. This app has every
// scope and may use every bot. Its credentials are in a file next to the data, where the command
// line finds them.

import { type AppCredentials, hashApiKey, newApiKey } from './app-credentials.ts';
import { scopes } from './app-directory.ts';
import { type AppStore, newCredentials } from './apps.ts';
import { devAccountId, devAppId, readDevAppFile, writeDevAppFile } from './dev-app-file.ts';

const devApp = { name: 'dev', accountId: devAccountId, bots: ['*'], scopes } as const;

/**
 * Restores the file or the database row if either is missing. In an empty database, we store the
 * credentials from the file, so the developer's credentials keep working. If the file is missing,
 * we write it again with a new API key, because the database only contains a hash of the old one.
 */
export async function ensureDevApp(apps: AppStore, dataDir: string): Promise<AppCredentials> {
  const file = await readDevAppFile(dataDir);
  const stored = await apps.load(devAppId);
  if (stored === undefined) {
    const credentials = file ?? newCredentials(devAppId, devApp);
    await apps.insert(devApp, credentials);
    if (file === undefined) await writeDevAppFile(dataDir, credentials);
    return credentials;
  }
  const isKeyKnown = file !== undefined && hashApiKey(file.apiKey) === stored.apiKeyHash;
  const apiKey = isKeyKnown ? file.apiKey : newApiKey();
  const { appId, accountId, bots, jwtSecret, webhookSecret, streamSecret } = stored.credentials;
  const credentials = { appId, accountId, bots, apiKey, jwtSecret, webhookSecret, streamSecret };
  if (!isKeyKnown) await apps.setApiKey(devAppId, apiKey);
  if (JSON.stringify(file) !== JSON.stringify(credentials))
    await writeDevAppFile(dataDir, credentials);
  return credentials;
}
