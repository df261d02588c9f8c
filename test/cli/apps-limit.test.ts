import { expect, test } from 'vitest';
import { createApp, type LimitOptions, limitApp, listApps } from '../../src/cli/apps-commands.ts';
import type { CliContext } from '../../src/cli/cli-context.ts';
import { loadConfig } from '../../src/config.ts';
import type { AppCredentials } from '../../src/store/apps/apps.ts';
import { openTestDatabase } from '../support/databases.ts';

test('offhook apps limit sets limits, shows them, changes one and removes one', async () => {
  await using database = await openTestDatabase('postgres');
  const { databaseUrl, dataDir } = database.location;
  // The command opens the database itself.
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

test('offhook apps create and limit set one way to read numbers without +', async () => {
  await using database = await openTestDatabase('postgres');
  const { databaseUrl, dataDir } = database.location;
  await database.close();
  const run = commandsIn({
    DATA_DIR: dataDir,
    DATABASE_URL: databaseUrl ?? '',
    SECRETS_KEY: 'ab'.repeat(32),
  });
  const wanted = { name: 'crm', account: 'acme', bots: '*', jwtAlgorithm: 'HS256' as const };
  const created = await run((context) => createApp(context, { ...wanted, defaultCountry: 'us' }));
  const { appId } = JSON.parse(created) as AppCredentials;
  const limit = async (options: LimitOptions) =>
    JSON.parse(await run((context) => limitApp(context, appId, options))) as object;
  const listed = (json: boolean) => run((context) => listApps(context, { json }));

  expect(JSON.parse(await listed(true))).toMatchObject({ appId, defaultCountry: 'US' });
  expect(await listed(false)).toContain('numbers without + are national numbers of US');

  const international = { appId, limits: {}, tokenMaxTtlS: 86_400, bareNumbers: 'international' };
  expect(await limit({ bareNumbers: 'international' })).toEqual(international);
  expect(await limit({ defaultCountry: 'none' })).toEqual(international);
  expect(await listed(false)).toContain('numbers without + are international');
  expect(await limit({ defaultCountry: 'DE', callsAtOnce: '2' })).toEqual({
    ...{ appId, limits: { callsAtOnce: 2 }, tokenMaxTtlS: 86_400, defaultCountry: 'DE' },
  });
  expect(await limit({ defaultCountry: 'none', callsAtOnce: 'none' })).toEqual({
    ...{ appId, limits: {}, tokenMaxTtlS: 86_400 },
  });

  await expect(limit({ defaultCountry: 'US', bareNumbers: 'international' })).rejects.toThrow(
    'bareNumbers: cannot be combined with defaultCountry',
  );
  await expect(limit({ defaultCountry: 'Germany' })).rejects.toThrow(
    'defaultCountry: must be an ISO 3166-1 country code',
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
