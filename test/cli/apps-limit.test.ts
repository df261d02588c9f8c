import { expect, test } from 'vitest';
import { createApp, limitApp, listApps } from '../../src/cli/apps-commands.ts';
import type { CliContext } from '../../src/cli/cli-context.ts';
import { loadConfig } from '../../src/config.ts';
import type { AppCredentials } from '../../src/store/apps/apps.ts';
import { openTestDatabase } from '../support/databases.ts';

test('offhook apps limit sets limits, shows them, changes one and lifts one', async () => {
  await using database = await openTestDatabase('postgres');
  const { databaseUrl, dataDir } = database.location;
  // The command opens it itself.
  await database.close();
  const run = commandsIn({
    DATA_DIR: dataDir,
    DATABASE_URL: databaseUrl ?? '',
    SECRETS_KEY: 'ab'.repeat(32),
  });
  const created = await run((context) =>
    createApp(context, { name: 'crm', account: 'acme', bots: '*', jwtAlgorithm: 'HS256' }),
  );
  const { appId } = JSON.parse(created) as AppCredentials;

  await run((context) =>
    limitApp(context, appId, { prefixes: '+1, 49', denyPrefixes: '+1900', callsAtOnce: '20' }),
  );
  expect(await run((context) => listApps(context, {}))).toMatch(
    'only +1,+49  not +1900  20 calls at once',
  );

  const changed = await run((context) =>
    limitApp(context, appId, { denyPrefixes: 'none', callsADay: '500' }),
  );
  expect(JSON.parse(changed)).toEqual({
    appId,
    limits: { allowedPrefixes: ['1', '49'], callsAtOnce: 20, callsPerDay: 500 },
    tokenMaxTtlS: 86_400,
  });

  const lifted = await run((context) =>
    limitApp(context, appId, { prefixes: 'none', callsAtOnce: 'none', callsADay: 'none' }),
  );
  expect(JSON.parse(lifted)).toEqual({ appId, limits: {}, tokenMaxTtlS: 86_400 });
  await expect(run((context) => limitApp(context, 'app-none', {}))).rejects.toThrow('no such app');
  await expect(run((context) => limitApp(context, appId, { prefixes: '001' }))).rejects.toThrow(
    '--prefixes must be',
  );
});

function commandsIn(env: Readonly<Record<string, string>>) {
  const config = loadConfig(env);
  return async (command: (context: CliContext) => Promise<void>): Promise<string> => {
    const lines: string[] = [];
    await command({
      config,
      gateway: () => Promise.resolve(undefined),
      print: (line) => void lines.push(line),
      note: () => undefined,
      interrupted: new AbortController().signal,
    });
    return lines.join('\n');
  };
}
