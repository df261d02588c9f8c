// The app of the first try: every scope, every bot, credentials in a file beside the data, where the CLI finds them.

import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { type AppCredentials, apiKeyPattern, hashApiKey, newApiKey } from './app-credentials.ts';
import { scopes } from './app-directory.ts';
import { type AppStore, newCredentials } from './apps.ts';

export const devAccountId = 'dev';
const devApp = { name: 'dev', accountId: devAccountId, bots: ['*'], scopes } as const;
const devAppId = 'app-dev';
const fileName = 'dev-app.json';

const fileSchema = z.object({
  appId: z.literal(devAppId),
  accountId: z.literal(devApp.accountId),
  bots: z.array(z.string()),
  apiKey: z.string().regex(apiKeyPattern),
  jwtSecret: z.string().min(1),
  webhookSecret: z.string().startsWith('whsec_'),
});

/**
 * Makes file and row agree, whichever of them is missing: a lost database takes the file's credentials, so that whoever
 * holds them can go on; a lost file is written again, with a new API key, of which only a hash is stored.
 */
export async function ensureDevApp(apps: AppStore, dataDir: string): Promise<AppCredentials> {
  const path = join(dataDir, fileName);
  const file = await readCredentials(path);
  const stored = await apps.load(devAppId);
  if (stored === undefined) {
    const credentials = file ?? newCredentials(devAppId, devApp);
    await apps.insert(devApp, credentials);
    if (file === undefined) await writeCredentials(dataDir, path, credentials);
    return credentials;
  }
  const isKeyKnown = file !== undefined && hashApiKey(file.apiKey) === stored.apiKeyHash;
  const apiKey = isKeyKnown ? file.apiKey : newApiKey();
  const { appId, accountId, bots, jwtSecret, webhookSecret } = stored.credentials;
  const credentials = { appId, accountId, bots, apiKey, jwtSecret, webhookSecret };
  if (!isKeyKnown) await apps.setApiKey(devAppId, apiKey);
  if (JSON.stringify(file) !== JSON.stringify(credentials))
    await writeCredentials(dataDir, path, credentials);
  return credentials;
}

/** Undefined: no file, or not one that can be used. */
async function readCredentials(path: string): Promise<AppCredentials | undefined> {
  try {
    const parsed = fileSchema.safeParse(JSON.parse(await readFile(path, 'utf8')));
    return parsed.data;
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT')
      return undefined;
    throw error;
  }
}

/** Whole or not at all, and never readable by others, not even for a moment. */
async function writeCredentials(
  dataDir: string,
  path: string,
  credentials: AppCredentials,
): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    await writeFile(draft, `${JSON.stringify(credentials, null, 2)}\n`, {
      mode: 0o600,
      flag: 'wx',
    });
    await rename(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}
