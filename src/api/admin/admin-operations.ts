// The operations on apps, bots, data tables and nodes that the command line offers, each with its
// input schema. On PostgreSQL, the command runs the operation itself. With the embedded database,
// the admin server runs it in the gateway that has the database open.

import { z } from 'zod';
import {
  bareNumbers,
  defaultCountry,
  hasAtMostOneReading,
  numberReadingMembers,
  oneReadingOnly,
} from '../../calls/target/number-reading.ts';
import { issueToken, maxIssuedTokenTtlS, signerOf } from '../../http/issue-token.ts';
import { invalidRequest, ProblemError } from '../../http/problem.ts';
import { identifier, plainId } from '../../lib/ids.ts';
import { describeIssues, detailedIssues } from '../../lib/issues.ts';
import { readPublicKey } from '../../recording/formats/key-wrapping.ts';
import {
  maxGraceS,
  maxTokenMaxTtlS,
  minTokenMaxTtlS,
  rotatable,
} from '../../store/apps/app-credentials.ts';
import { jwtAlgorithms, scopes } from '../../store/apps/app-directory.ts';
import type { AppStore } from '../../store/apps/apps.ts';
import type { BotStore } from '../../store/apps/bot-directory.ts';
import {
  isPublicKeyAlgorithm,
  maxKeyDocumentChars,
  parsePublicKeys,
} from '../../store/apps/jwt-keys.ts';
import type { PublishedCalls } from '../../store/calls/published-calls.ts';
import type { DataTables } from '../../store/data-tables.ts';
import type { NodeDirectory } from '../../store/nodes.ts';
import { keyNamePattern, type RecordingKeys } from '../../store/recordings/recording-keys.ts';
import type { Reencryption } from '../../store/reencryption.ts';
import type { SecretBox } from '../../store/secrets.ts';
import { tableDefinition } from '../../store/table-definition.ts';
import { newBot, registerBot, shownBot } from './bot-registration.ts';

export type AdminStores = {
  readonly apps: AppStore;
  readonly bots: BotStore;
  readonly tables: DataTables;
  readonly nodes: NodeDirectory;
  readonly secrets: SecretBox;
  readonly reencryption: Reencryption;
  readonly publishedCalls: PublishedCalls;
  readonly recordingKeys: RecordingKeys;
};

const publicKeys = z.string().max(maxKeyDocumentChars);

const newApp = z
  .strictObject({
    name: identifier,
    accountId: plainId,
    bots: z.union([z.tuple([z.literal('*')]), z.array(plainId).min(1).max(1_000)], {
      error: 'must be ids of letters, digits, - and _, or * alone',
    }),
    scopes: z.array(z.enum(scopes)),
    jwtAlgorithm: z.enum(jwtAlgorithms).default('HS256'),
    publicKeys: publicKeys.optional(),
    ...numberReadingMembers,
  })
  .refine(hasAtMostOneReading, { path: ['bareNumbers'], message: oneReadingOnly })
  .transform(({ jwtAlgorithm, publicKeys: keys, ...app }, context) => {
    const complain = (message: string) => {
      context.addIssue({ code: 'custom', path: ['publicKeys'], message });
      return z.NEVER;
    };
    if (!isPublicKeyAlgorithm(jwtAlgorithm)) {
      if (keys !== undefined)
        return complain(`${jwtAlgorithm} uses a shared secret, not a public key`);
      return { ...app, jwtAlgorithm };
    }
    if (keys === undefined) return complain(`${jwtAlgorithm} needs a public key`);
    const parsed = parsePublicKeys(keys, jwtAlgorithm);
    if (!parsed.ok) return complain(parsed.message);
    return { ...app, jwtAlgorithm, keys: parsed.jwks };
  });

const newTable = tableDefinition.extend({ accountId: plainId, replace: z.boolean() });

const namedKey = z.strictObject({
  accountId: plainId,
  name: z.string().regex(keyNamePattern, 'must be up to 64 letters, digits, "_" or "-"'),
});
const newKey = namedKey
  .extend({ publicKey: z.string() })
  .transform(({ publicKey: pem, ...named }, context) => {
    const read = readPublicKey(pem);
    if (!read.ok) {
      context.addIssue({ code: 'custom', path: ['publicKey'], message: read.problem });
      return z.NEVER;
    }
    const { key, algorithm, fingerprint } = read;
    const publicKey = key.export({ type: 'spki', format: 'pem' }).toString();
    return { ...named, publicKey, algorithm, fingerprint };
  });

const rotation = z.strictObject({
  appId: plainId,
  what: z.enum(rotatable),
  graceS: z.number().int().min(0).max(maxGraceS),
  publicKeys: publicKeys.optional(),
  force: z.boolean().default(false),
});

const prefixes = z
  .array(z.string().regex(/^[1-9][0-9]{0,14}$/, 'must be digits, the country code first'))
  .min(1)
  .max(1_000);
const count = z.number().int().min(0).max(1_000_000_000);

/** Omitted fields stay unchanged. Null removes a limit. */
const appLimits = z
  .strictObject({
    appId: plainId,
    allowedPrefixes: prefixes.nullish(),
    deniedPrefixes: prefixes.nullish(),
    callsAtOnce: count.nullish(),
    callsPerDay: count.nullish(),
    tokenMaxTtlS: z.number().int().min(minTokenMaxTtlS).max(maxTokenMaxTtlS).nullish(),
    defaultCountry: defaultCountry.nullish(),
    bareNumbers: bareNumbers.nullish(),
  })
  .refine(hasAtMostOneReading, { path: ['bareNumbers'], message: oneReadingOnly });

function operation<Input extends z.ZodType, Answer>(
  input: Input,
  run: (stores: AdminStores, input: z.output<Input>) => Promise<Answer>,
) {
  return { input, run };
}

const reencryptionStep = z.strictObject({
  cursor: z.strictObject({ column: z.number().int().min(0), after: z.string() }).optional(),
  dryRun: z.boolean(),
});

const nothing = z.strictObject({});

const milliseconds = z.number().int();
const publishedPage = z.strictObject({
  after: z.object({ acceptedAtMs: milliseconds, callId: z.string() }),
  sinceMs: milliseconds,
  limit: z.number().int().min(1).max(1_000),
});
const someCalls = z.strictObject({ callIds: z.array(z.string()).max(1_000) });

export const adminOperations = {
  'apps.create': operation(newApp, ({ apps }, wanted) => {
    if (!('keys' in wanted)) return apps.createApp(wanted);
    const { keys, jwtAlgorithm: algorithm, ...app } = wanted;
    return apps.createAppWithKeys(app, { algorithm, keys });
  }),
  'apps.list': operation(nothing, async ({ apps }) => ({ apps: await apps.list() })),
  'apps.rotate': operation(rotation, async ({ apps }, { appId: app, publicKeys: keys, ...how }) => {
    const result = await apps.rotate(app, {
      ...how,
      ...(keys === undefined ? {} : { publicKeys: keys }),
    });
    if (result.kind === 'unknown') throw noSuchApp();
    if (result.kind === 'refused') throw invalidField('publicKeys', result.message);
    if (result.kind === 'in-grace') {
      throw invalidField(
        'force',
        `the previous one is accepted until ${result.until.toISOString()} and would end now; --force ends it`,
      );
    }
    return result.rotated;
  }),
  'apps.limit': operation(appLimits, async ({ apps }, { appId: app, ...given }) => {
    const change = Object.entries(given).filter(([, value]) => value !== undefined);
    const limited = await apps.limit(
      app,
      Object.fromEntries(change.map(([name, value]) => [name, value ?? undefined])),
    );
    if (limited === undefined) throw noSuchApp();
    return { appId: app, ...limited };
  }),
  'apps.revoke': operation(z.strictObject({ appId: plainId }), async ({ apps }, { appId: app }) => {
    if (!(await apps.revoke(app))) throw noSuchApp();
    return { appId: app };
  }),
  'apps.token': operation(
    z.strictObject({ appId: plainId, ttlS: z.number().int().min(1).max(maxIssuedTokenTtlS) }),
    async ({ apps }, { appId, ttlS }) => {
      const app = await apps.find(appId);
      if (app === undefined) throw noSuchApp();
      const signer = signerOf(app);
      if (signer === undefined)
        throw invalidField('appId', 'signs with a private key that only the app has');
      const { tokenMaxTtlS: maxTtlS = maxIssuedTokenTtlS } = app;
      if (ttlS > maxTtlS) {
        throw invalidField(
          'ttlS',
          `must be at most ${maxTtlS}, the maximum lifetime of this app's tokens; offhook apps limit ${appId} --token-ttl changes it`,
        );
      }
      return { token: await issueToken(signer, ttlS) };
    },
  ),
  'bots.add': operation(newBot, registerBot),
  'bots.list': operation(nothing, async ({ bots }) => ({
    bots: (await bots.list()).map(shownBot),
  })),
  'tables.create': operation(newTable, async ({ tables }, { replace, ...table }) => {
    if (!(await tables.define(table, { replace }))) {
      throw invalidField(
        'name',
        'is already a table; --replace changes its definition, never its rows',
      );
    }
    return table;
  }),
  'tables.list': operation(nothing, async ({ tables }) => ({ tables: await tables.list() })),
  'secrets.rollout': operation(nothing, ({ reencryption }) => reencryption.rollout()),
  'secrets.reencrypt': operation(reencryptionStep, ({ reencryption }, step) =>
    reencryption.page(step),
  ),
  'published.page': operation(publishedPage, async ({ publishedCalls }, query) => ({
    calls: await publishedCalls.page(query),
  })),
  'published.events': operation(someCalls, async ({ publishedCalls }, { callIds }) => ({
    events: await publishedCalls.eventsOf(callIds),
  })),
  'keys.add': operation(newKey, async ({ recordingKeys }, { accountId, name, ...key }) => {
    const added = await recordingKeys.add(accountId, name, key);
    if (added === 'exists') throw invalidField('name', 'the account has a key of this name');
    if (added === 'too-many') throw invalidField('name', 'the account has 100 keys already');
    return { accountId, name, algorithm: key.algorithm, fingerprint: key.fingerprint };
  }),
  'keys.list': operation(nothing, async ({ recordingKeys }) => ({
    keys: await recordingKeys.list(),
  })),
  'keys.remove': operation(namedKey, async ({ recordingKeys }, { accountId, name }) => {
    if (!(await recordingKeys.remove(accountId, name)))
      throw invalidField('name', 'the account has no key of this name');
    return { accountId, name };
  }),
  'nodes.list': operation(nothing, async ({ nodes }) => ({ nodes: await nodes.list() })),
};

type Operations = typeof adminOperations;
export type AdminOperation = keyof Operations;
export type AdminInput<Name extends AdminOperation> = z.input<Operations[Name]['input']>;
export type AdminAnswer<Name extends AdminOperation> = AsJson<
  Awaited<ReturnType<Operations[Name]['run']>>
>;
/** The type of a value after a round trip through JSON. */
type AsJson<Value> = Value extends string
  ? Value
  : Value extends Date
    ? string
    : Value extends object
      ? { [Member in keyof Value]: AsJson<Value[Member]> }
      : Value;

/** @throws ProblemError if the input isn't valid, or the operation isn't possible */
export async function runAdminOperation(
  stores: AdminStores,
  name: string,
  input: unknown,
): Promise<unknown> {
  if (!isOperation(name)) throw new ProblemError('not-found', 'There is no such operation.');
  const { input: schema, run } = adminOperations[name];
  const parsed = schema.safeParse(input, { error: describeIssues });
  if (!parsed.success) {
    throw invalidRequest(
      detailedIssues(parsed.error.issues).map(({ path, message }) => ({
        path: path.join('.'),
        message,
      })),
    );
  }
  return await run(stores, parsed.data as never);
}

function isOperation(name: string): name is AdminOperation {
  return Object.hasOwn(adminOperations, name);
}

function invalidField(path: string, message: string): ProblemError {
  return invalidRequest([{ path, message }]);
}

function noSuchApp(): ProblemError {
  return new ProblemError('not-found', 'There is no such app, or the app is revoked.');
}
