// Starts an API server with scripted services, and makes tokens for it.

import { SignJWT } from 'jose';
import {
  type ApiServerOptions,
  createApiServer,
  type RegisterRoutes,
} from '../../src/api/server.ts';
import type { ApiServices, Submission, SubmitResult } from '../../src/api/services.ts';
import { noSuchKey } from '../../src/calls/recording/recording-request.ts';
import type { ApiInstance } from '../../src/http/http.ts';
import { createMetrics } from '../../src/http/metrics.ts';
import type {
  AppScope,
  CallDetails,
  CallFilter,
  CallPage,
  CallScope,
  CallsSummary,
  SummaryPeriod,
} from '../../src/interactions/call-queries.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import type { App } from '../../src/store/apps/app-directory.ts';

export const secret = 'a-secret-of-more-than-thirty-two-bytes';

export const apps: Readonly<Record<string, App>> = {
  'app-1': app({ appId: 'app-1' }),
  'app-384': app({ appId: 'app-384', jwtAlgorithm: 'HS384' }),
  'app-without-scope': app({ appId: 'app-without-scope', scopes: ['Chat History'] }),
  'app-capped': app({ appId: 'app-capped', tokenMaxTtlS: 86_400 }),
  'app-of-all-bots': app({ appId: 'app-of-all-bots', bots: ['*'], accountId: 'other' }),
};

/** The app of each API key. */
export const apiKeys: ReadonlyMap<string, App | undefined> = new Map([
  ['ofk_of-app-1', apps['app-1']],
  ['ofk_without-scope', apps['app-without-scope']],
]);

export function app(changes: Partial<App>): App {
  return {
    appId: 'app-1',
    accountId: 'acme',
    name: 'an app',
    bots: ['st-1'],
    scopes: ['Dialout'],
    jwtAlgorithm: 'HS256',
    jwtKeys: [secret],
    apiKeyIds: ['an API key'],
    streamSecrets: ['a stream secret'],
    createdAt: new Date(),
    ...changes,
  };
}

export async function token(
  claims: Readonly<Record<string, unknown>> = { appId: 'app-1' },
  options: { readonly alg?: string; readonly secret?: string; readonly ttl?: string } = {},
): Promise<string> {
  const jwt = new SignJWT(claims).setProtectedHeader({ alg: options.alg ?? 'HS256' }).setIssuedAt();
  if (options.ttl !== '') jwt.setExpirationTime(options.ttl ?? '1h');
  return await jwt.sign(new TextEncoder().encode(options.secret ?? secret));
}

/** The `detail` of every 401 before the signature is verified. */
export const unverifiedDetail =
  "Send a JWT in the `auth` header, with the `appId` of a registered app, signed with that app's key and algorithm.";

export const answer = { sid: 'sid-1', callId: 'call-1', conversationId: 'c-1' };

const unused = () => Promise.reject(new Error('this service is not part of the test'));
const noSuppressions: ApiServices['suppressions'] = {
  ...{ find: unused, list: unused, remove: unused, check: unused },
};
const noRecords: ApiServices['records'] = {
  read: () => {
    throw new Error('this service is not part of the test');
  },
};
const noSounds: ApiServices['sounds'] = {
  ...{ list: unused, find: unused, remove: unused, put: unused },
};

const noRecordings: ApiServices['recordings'] = {
  ...{ find: unused, read: unused, metadata: unused, remove: unused },
};

export function emptySummary({ from, to, timeZone }: SummaryPeriod): CallsSummary {
  const total = { accepted: 0, answered: 0, short: 0, people: 0, machines: 0, minutes: 0 };
  const period = { from: from.toISOString(), to: to.toISOString(), timeZone };
  return { ...period, total: { ...total, outcomes: {} }, bots: [], trunks: [], days: [] };
}

export type Harness = AsyncDisposable & {
  readonly server: ApiInstance;
  readonly submissions: Submission[];
  readonly ended: string[];
  readonly listed: { scope: CallScope | AppScope; filter: CallFilter }[];
  /** The next pages of the list of calls. After them, pages are empty. */
  readonly pages: CallPage[];
  readonly summarized: { scope: CallScope | AppScope; period: SummaryPeriod }[];
  /** The intake's result for the next dial-out request. */
  result: SubmitResult | Error;
  /** The call that `details` finds. */
  call: CallDetails | undefined;
  endResult: 'ending' | 'ended' | 'unknown';
};

export async function startHarness(
  overrides: Partial<ApiServices> = {},
  areas: readonly RegisterRoutes[] = [],
  options: Partial<ApiServerOptions> = {},
): Promise<Harness> {
  const submissions: Submission[] = [];
  const ended: string[] = [];
  const listed: Harness['listed'] = [];
  const pages: CallPage[] = [];
  const summarized: Harness['summarized'] = [];
  const harness = {
    result: { kind: 'accepted', answer } as Harness['result'],
    call: undefined as CallDetails | undefined,
    endResult: 'ending' as Harness['endResult'],
  };
  const services: ApiServices = {
    apps: {
      find: async (appId) => apps[appId],
      findByApiKey: async (apiKey) => apiKeys.get(apiKey),
    },
    bots: { find: async () => undefined, ownerOf: async () => undefined },
    intake: {
      submit: async (submission) => {
        submissions.push(submission);
        if (harness.result instanceof Error) throw harness.result;
        return harness.result;
      },
    },
    routes: {
      plan: (target, trunk) => {
        if (trunk !== undefined && trunk !== 'carrier') {
          return { ok: false, field: 'trunk', message: 'there is no such trunk' };
        }
        if (target.kind === 'tel') return { ok: true, trunk: trunk ?? 'carrier' };
        return trunk === undefined ? { ok: true } : { ok: true, trunk };
      },
      passes: (_trunk, name) => name.toLowerCase() === 'diversion',
    },
    speechToTextProviders: undefined,
    maxCallDurationMs: 7_200_000,
    commands: {
      run: async (callId) => {
        ended.push(callId);
        return harness.endResult === 'unknown' ? undefined : { ok: true, state: harness.endResult };
      },
    },
    calls: {
      list: async (scope, filter) => {
        listed.push({ scope, filter });
        if (filter.cursor === 'bad') return 'bad-cursor';
        return pages.shift() ?? { calls: [], searched: {} };
      },
      summary: async (scope, period) => {
        summarized.push({ scope, period });
        return emptySummary(period);
      },
      callers: async (scope, { from, to, timeZone }) => {
        summarized.push({ scope, period: { from, to, timeZone } });
        return { from: from.toISOString(), to: to.toISOString(), timeZone, callers: [] };
      },
      state: async (scope) => (scope.accountId === 'acme' ? harness.call?.state : undefined),
      details: async (scope) => (scope.accountId === 'acme' ? harness.call : undefined),
      context: async () => undefined,
      notifications: async () => undefined,
    },
    live: { follow: async function* () {} },
    deadLetters: {
      list: async () => ({ deadLetters: [] }),
      replayOne: async () => undefined,
      replay: async () => ({ count: 0, more: false }),
    },
    isNotifiable: ({ hostname }) => hostname !== '10.0.0.1',
    isSoundReachable: (reference) => reference !== 'https://10.0.0.1/a.wav',
    keyProblem: async (_accountId, name) => (name === 'crm-2026' ? undefined : noSuchKey),
    streams: {
      isReachable: ({ hostname }) => hostname !== '10.0.0.1',
      seal: (_botId, url) => ({ url }),
      callOf: async () => undefined,
    },
    recordings: noRecordings,
    sounds: noSounds,
    suppressions: noSuppressions,
    campaigns: { list: unused, find: unused },
    ruleSets: { list: unused, find: unused, put: unused, remove: unused },
    rules: { find: async () => undefined, check: unused },
    records: noRecords,
    persons: { remove: unused },
    suppressing: { suppress: unused, store: unused, cancelSuppressed: unused },
    health: [],
    servers: () => [],
    ...overrides,
  };
  const server = await createApiServer({
    services,
    areas,
    config: {
      http: {
        ...{ host: '127.0.0.1', port: 3000, publicUrl: 'https://calls.example.com' },
        trustedProxies: ['192.0.2.0/28', '2001:db8:ffff::/48'],
      },
    },
    logger: silentLogger,
    metrics: createMetrics({ activeCalls: () => 3 }),
    ...options,
  });
  return Object.assign(harness, {
    server,
    submissions,
    ended,
    listed,
    pages,
    summarized,
    [Symbol.asyncDispose]: async () => {
      await server.close();
    },
  });
}

export const dialoutPath = '/api/1.1/public/bot/st-1/V2/contactcenter/dialout';
export const minimal = { botId: 'st-1', target: 'tel:+15551230001', caller: '+15559876543' };

export async function dial(
  harness: Harness,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
) {
  const isRaw = typeof body === 'string' || Buffer.isBuffer(body);
  const payload = isRaw ? body : JSON.stringify(body);
  return await harness.server.inject({
    method: 'POST',
    url: dialoutPath,
    headers: { auth: await token(), 'content-type': 'application/json', ...headers },
    payload,
  });
}

export type ProblemDocument = {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly errors?: readonly { readonly path: string; readonly message: string }[];
  readonly requestId: string;
};
