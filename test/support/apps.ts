// Creates an app in the database of the gateway under test, just like `offhook apps create`.

import { silentLogger } from '../../src/lib/logger.ts';
import { scopes } from '../../src/store/apps/app-directory.ts';
import { type AppCredentials, createAppStore } from '../../src/store/apps/apps.ts';
import { openDatabase } from '../../src/store/database.ts';
import { openSecretBox } from '../../src/store/secrets.ts';

export async function createAppIn(
  databaseUrl: string,
  secretsKey: string,
): Promise<AppCredentials> {
  const database = await openDatabase({ databaseUrl, dataDir: '', logger: silentLogger });
  try {
    const secrets = await openSecretBox({ secretsKey, dataDir: '' });
    const apps = createAppStore({
      ...{ database, secrets, tokenMaxTtlS: 86_400 },
      clock: { now: () => new Date() },
    });
    return await apps.createApp({ name: 'test', accountId: 'test', bots: ['*'], scopes });
  } finally {
    await database.close();
  }
}
