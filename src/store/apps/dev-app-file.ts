// DATA_DIR/dev-app.json holds the dev app's credentials for the command line.

import { randomBytes } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { makeFolder } from '../../lib/make-folder.ts';
import { type AppCredentials, apiKeyPattern } from './app-credentials.ts';

export const devAccountId = 'dev';
export const devAppId = 'app-dev';
const fileName = 'dev-app.json';

const fileSchema = z.object({
  appId: z.literal(devAppId),
  accountId: z.literal(devAccountId),
  bots: z.array(z.string()),
  apiKey: z.string().regex(apiKeyPattern),
  jwtSecret: z.string().min(1),
  webhookSecret: z.string().startsWith('whsec_'),
  streamSecret: z.string().min(1),
});

/**
 * Updates the file after the command line has rotated a credential, so that the next command knows
 * the new credential. Other apps have no file.
 */
export async function updateDevAppFile(
  dataDir: string,
  rotated: { readonly appId: string } & Partial<AppCredentials>,
): Promise<void> {
  if (rotated.appId !== devAppId) return;
  const file = await readDevAppFile(dataDir);
  if (file === undefined) return;
  const { apiKey, jwtSecret, webhookSecret, streamSecret } = { ...file, ...rotated };
  await writeDevAppFile(dataDir, { ...file, apiKey, jwtSecret, webhookSecret, streamSecret });
}

/** @returns undefined if the file is missing or its content isn't valid */
export async function readDevAppFile(dataDir: string): Promise<AppCredentials | undefined> {
  try {
    const parsed = fileSchema.safeParse(
      JSON.parse(await readFile(join(dataDir, fileName), 'utf8')),
    );
    return parsed.data;
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT')
      return undefined;
    throw error;
  }
}

/** Writes the file atomically. Other users can't read it, not even for a moment. */
export async function writeDevAppFile(dataDir: string, credentials: AppCredentials): Promise<void> {
  const path = join(dataDir, fileName);
  await makeFolder(dataDir);
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
