// A command's environment, i.e. the configuration, the local gateway, and the dev app.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { Config } from '../config.ts';
import { CliError, notRunning } from './cli-error.ts';

export type RunningGateway = {
  readonly httpUrl: string;
  readonly natsUrl?: string | undefined;
  /** `http://:key@127.0.0.1:port`. Undefined unless the gateway has the embedded database open. */
  readonly adminUrl?: string | undefined;
};

export type CliContext = {
  readonly config: Config;
  /** Resolves to undefined if no gateway is running in this DATA_DIR. */
  gateway(): Promise<RunningGateway | undefined>;
  /** Prints one line to stdout. */
  print(line: string): void;
  /** Prints one line to stderr. */
  note(line: string): void;
  /** Aborted by the first Ctrl-C. */
  readonly interrupted: AbortSignal;
};

const devAppSchema = z.object({
  appId: z.string(),
  jwtSecret: z.string(),
  webhookSecret: z.string(),
  streamSecret: z.string(),
});
export type DevApp = z.infer<typeof devAppSchema>;

export async function requireGateway(context: CliContext): Promise<RunningGateway> {
  const gateway = await context.gateway();
  if (gateway === undefined) {
    throw new CliError(
      `${notRunning}\nIf it runs elsewhere, name its folder with DATA_DIR (here ${context.config.dataDir}).`,
    );
  }
  return gateway;
}

/**
 * Reads the dev app. With the embedded database, the gateway creates the dev app when it first
 * starts.
 *
 * @throws CliError if there is no dev app, e.g. with DATABASE_URL, where an operator creates the
 * apps
 */
export async function readDevApp({ config }: Pick<CliContext, 'config'>): Promise<DevApp> {
  const path = join(config.dataDir, 'dev-app.json');
  try {
    return devAppSchema.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
      throw new CliError(`${path} cannot be read; remove it and start Offhook again`, {
        cause: error,
      });
    }
    throw new CliError(
      config.databaseUrl === undefined
        ? notRunning
        : 'With DATABASE_URL there is no dev app. Create an app with: offhook apps create --name NAME --account ID\nThen pass --app ID (token, call, notifications list), or --secret WHSEC (listen).',
      { cause: error },
    );
  }
}
