// What commands know of the place they run in: the configuration, the gateway that runs here, and the dev app.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { Config } from '../config.ts';
import { CliError, notRunning } from './cli-error.ts';

export type RunningGateway = {
  readonly httpUrl: string;
  readonly natsUrl?: string | undefined;
  /** `http://:key@127.0.0.1:port`; only with the embedded database. */
  readonly adminUrl?: string | undefined;
};

export type CliContext = {
  readonly config: Config;
  /** Undefined: nothing runs under this DATA_DIR. */
  gateway(): Promise<RunningGateway | undefined>;
  /** One line on stdout. */
  print(line: string): void;
  /** One line on stderr. */
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
      `${notRunning}\nIt runs elsewhere? Name its folder with DATA_DIR (here ${context.config.dataDir}).`,
    );
  }
  return gateway;
}

/** The app of the first embedded start. A gateway on DATABASE_URL has none: its apps are made on purpose. */
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
        : 'With DATABASE_URL there is no dev app. Make one with: offhook apps create --name NAME --account ID\nand name it: --app ID (token, call, notifications list), or --secret WHSEC (listen).',
      { cause: error },
    );
  }
}
