// The client that commands use for the public API. It authenticates with an app's tokens.

import type { z } from 'zod';
import type { dialoutCheckSchema } from '../api/dialout/dialout-schema.ts';
import type { commandSchema } from '../calls/contract/command.ts';
import type { DialoutAnswer } from '../calls/dialout-ports.ts';
import { issueToken } from '../http/issue-token.ts';
import type {
  CallDetails,
  CallersSummary,
  CallPage,
  CallsSummary,
  NotificationView,
} from '../interactions/call-queries.ts';
import type { DeadLetter, ReplayedNotification } from '../notifier/dead-letters.ts';
import { type JsonRequest, requestJson, requestParts, sendParts } from './http-json.ts';

/** Reads the calls and dead letters of a single bot, or of all bots that the app may use. */
export type OverviewClient = {
  /** Returns one page of calls, newest first. */
  calls(page: Readonly<Record<string, string>>): Promise<CallPage>;
  summary(period: Readonly<Record<string, string>>): Promise<CallsSummary>;
  callers(period: Readonly<Record<string, string>>): Promise<CallersSummary>;
  call(callId: string): Promise<CallDetails>;
  /**
   * Returns one page of dead letters, newest first. `from` is the earliest time at which the
   * gateway gave up.
   */
  deadLetters(page: {
    readonly cursor?: string;
    readonly from?: string;
  }): Promise<{ readonly notifications: readonly DeadLetter[]; readonly nextCursor?: string }>;
};

/** A command's fields. Omitted fields have defaults. */
export type CommandMembers = z.input<typeof commandSchema>;

export type BotClient = OverviewClient & {
  dial(body: Readonly<Record<string, unknown>>): Promise<DialoutAnswer>;
  /** Says what the calling rules would decide about a request now. */
  check(body: Readonly<Record<string, unknown>>): Promise<DialoutCheck>;
  end(callId: string): Promise<{ readonly state: string }>;
  command(callId: string, command: CommandMembers): Promise<{ readonly commandId: string }>;
  context(callId: string): Promise<unknown>;
  notifications(callId: string): Promise<readonly NotificationView[]>;
  replayOne(eventId: string): Promise<ReplayedNotification>;
  replay(selection: {
    readonly callId?: string;
    readonly from?: string;
  }): Promise<{ readonly replayed: number; readonly more: boolean }>;
};

export type SoundView = {
  readonly name: string;
  readonly durationMs: number;
  readonly updatedAt: string;
};

/** Manages the sounds of the app's account. */
export type SoundsClient = {
  put(name: string, file: Buffer<ArrayBuffer>): Promise<SoundView>;
  list(): Promise<{ readonly sounds: readonly SoundView[] }>;
  remove(name: string): Promise<unknown>;
};

export type DialoutCheck = z.output<typeof dialoutCheckSchema>;

export type RuleSetView = {
  readonly name: string;
  readonly version: number;
  readonly changedAt: string;
  readonly changedByApp: string;
  readonly document: object;
};

/** Manages the rule sets of the app's account. */
export type RuleSetsClient = {
  put(name: string, document: object): Promise<RuleSetView>;
  list(): Promise<{ readonly ruleSets: readonly RuleSetView[] }>;
  find(name: string, version: string | undefined): Promise<RuleSetView>;
  remove(name: string): Promise<unknown>;
};

export type SuppressionView = {
  readonly number: string;
  readonly reason: string;
  readonly source: string;
  readonly until?: string;
  readonly createdAt: string;
  readonly appId: string;
};

export type ImportType = 'application/x-ndjson' | 'text/csv';

export type SuppressionImport = {
  readonly accepted: number;
  readonly replaced: number;
  readonly wrongTotal: number;
  readonly wrong: readonly { readonly line: number; readonly message: string }[];
  /** Calls to suppressed numbers that may still ring. */
  readonly left?: readonly string[];
};

/** Manages the suppressions of the app's account. */
export type SuppressionsClient = {
  put(
    number: string,
    body: { readonly reason: string; readonly source: string; readonly until?: string },
  ): Promise<SuppressionView & { readonly left?: readonly string[] }>;
  remove(number: string): Promise<{ readonly number: string }>;
  /** Returns one page, sorted by number. */
  list(cursor: string | undefined): Promise<{
    readonly suppressions: readonly SuppressionView[];
    readonly nextCursor?: string;
  }>;
  check(numbers: readonly string[]): Promise<{
    readonly results: readonly {
      readonly number: string;
      readonly suppressed: boolean;
      readonly reason?: string;
      readonly until?: string;
    }[];
  }>;
  /** Sends a file of any length as it is read. */
  import(
    type: ImportType,
    parts: AsyncIterable<Uint8Array>,
    interrupted: AbortSignal,
  ): Promise<SuppressionImport>;
};

export type CampaignWindowView = {
  readonly from: string;
  readonly until: string;
  readonly answeredByPerson: number;
  readonly abandoned: number;
  readonly connected: number;
  readonly estimate?: number;
  readonly percent: number;
  readonly upper95: number;
};

export type CampaignView = {
  readonly campaign: string;
  readonly ruleSet: string;
  readonly held: { readonly since: string; readonly until: string } | null;
  readonly ftc: { readonly windows: readonly CampaignWindowView[] };
  readonly ofcom: { readonly windows: readonly CampaignWindowView[] };
};

/** Reads the campaigns of the app's account. */
export type CampaignsClient = {
  list(page: { readonly cursor?: string }): Promise<{
    readonly campaigns: readonly CampaignView[];
    readonly nextCursor?: string;
  }>;
  find(campaign: string): Promise<CampaignView>;
};

/** Without a bot, `overview` covers all bots that the app may use. */
export type GatewayClient = {
  readonly overview: (botId?: string) => OverviewClient;
  readonly bot: (botId: string) => BotClient;
  readonly sounds: SoundsClient;
  /** Exports records. The parts arrive as they are read, so the file may have any length. */
  readonly records: (
    query: Readonly<Record<string, string>>,
    interrupted: AbortSignal,
  ) => Promise<AsyncIterable<Uint8Array>>;
  readonly ruleSets: RuleSetsClient;
  readonly suppressions: SuppressionsClient;
  readonly campaigns: CampaignsClient;
};

/** Issues a JWT with this lifetime in seconds. */
export type TokenSource = (ttlS: number) => Promise<string>;

/** Each request gets a new token, which is valid for longer than the request's time-out. */
const tokenTtlS = 60;

export function tokensOf(app: { readonly appId: string; readonly jwtSecret: string }): TokenSource {
  return (ttlS) => issueToken({ ...app, jwtAlgorithm: 'HS256' }, ttlS);
}

type Ask = <Answer>(url: string, request?: Omit<JsonRequest, 'headers'>) => Promise<Answer>;

export function createGatewayClient(httpUrl: string, tokens: TokenSource): GatewayClient {
  const ask: Ask = async (path, request) =>
    await requestJson(`${httpUrl}${path}`, {
      ...request,
      headers: { auth: await tokens(tokenTtlS) },
    });
  const pathOf = (botId: string) => `/api/public/bot/${encodeURIComponent(botId)}`;
  return {
    overview: (botId) => overview(ask, botId === undefined ? '/api/public' : pathOf(botId)),
    bot: (botId) => ({
      ...overview(ask, pathOf(botId)),
      ...botOperations(ask, pathOf(botId), botId),
    }),
    sounds: soundsClient(ask),
    records: async (query, interrupted) =>
      await requestParts(`${httpUrl}/api/public/records?${new URLSearchParams(query).toString()}`, {
        headers: { auth: await tokens(tokenTtlS) },
        signal: interrupted,
      }),
    ruleSets: ruleSetsClient(ask),
    campaigns: {
      list: (page) => ask(`/api/public/campaigns?${new URLSearchParams(page).toString()}`),
      find: (campaign) => ask(`/api/public/campaigns/${encodeURIComponent(campaign)}`),
    },
    suppressions: {
      ...suppressionsClient(ask),
      import: async (type, parts, signal) =>
        await sendParts(`${httpUrl}/api/public/suppressions`, {
          headers: { auth: await tokens(tokenTtlS), 'content-type': type },
          ...{ parts, signal },
        }),
    },
  };
}

function soundsClient(ask: Ask): SoundsClient {
  const sound = (name: string) => `/api/public/sounds/${encodeURIComponent(name)}`;
  return {
    put: (name, file) => ask(sound(name), { method: 'PUT', file }),
    list: () => ask('/api/public/sounds'),
    remove: (name) => ask(sound(name), { method: 'DELETE' }),
  };
}

function ruleSetsClient(ask: Ask): RuleSetsClient {
  const ruleSet = (name: string) => `/api/public/rules/${encodeURIComponent(name)}`;
  return {
    put: (name, document) => ask(ruleSet(name), { method: 'PUT', body: document }),
    list: () => ask('/api/public/rules'),
    find: (name, version) =>
      ask(
        version === undefined
          ? ruleSet(name)
          : `${ruleSet(name)}?version=${encodeURIComponent(version)}`,
      ),
    remove: (name) => ask(ruleSet(name), { method: 'DELETE' }),
  };
}

function suppressionsClient(ask: Ask): Omit<SuppressionsClient, 'import'> {
  const path = '/api/public/suppressions';
  const suppression = (number: string) => `${path}/${encodeURIComponent(number)}`;
  const page = { limit: '200' };
  return {
    put: (number, body) => ask(suppression(number), { method: 'PUT', body }),
    remove: (number) => ask(suppression(number), { method: 'DELETE' }),
    list: (cursor) => {
      const query = new URLSearchParams(cursor === undefined ? page : { ...page, cursor });
      return ask(`${path}?${query.toString()}`);
    },
    check: (numbers) => ask(`${path}/check`, { method: 'POST', body: { numbers } }),
  };
}

function overview(ask: Ask, base: string): OverviewClient {
  return {
    calls: (page) => ask(`${base}/calls?${new URLSearchParams(page).toString()}`),
    summary: (period) => ask(`${base}/calls/summary?${new URLSearchParams(period).toString()}`),
    callers: (period) => ask(`${base}/calls/callers?${new URLSearchParams(period).toString()}`),
    call: (callId) => ask(`${base}/calls/${encodeURIComponent(callId)}`),
    deadLetters: (page) =>
      ask(`${base}/notifications?${new URLSearchParams({ state: 'failed', ...page }).toString()}`),
  };
}

function botOperations(
  ask: Ask,
  base: string,
  botId: string,
): Omit<BotClient, keyof OverviewClient> {
  const call = (callId: string): string => `${base}/calls/${encodeURIComponent(callId)}`;
  const dialout = `/api/1.1/public/bot/${encodeURIComponent(botId)}/V2/contactcenter/dialout`;
  return {
    dial: (body) => ask(dialout, { method: 'POST', body: { botId, ...body } }),
    check: (body) => ask(`${dialout}?check=true`, { method: 'POST', body: { botId, ...body } }),
    end: (callId) => ask(call(callId), { method: 'DELETE' }),
    command: (callId, command) =>
      ask(`${call(callId)}/commands`, { method: 'POST', body: command }),
    context: (callId) => ask(`${call(callId)}/context`),
    notifications: async (callId) => {
      const answer = await ask<{ notifications: readonly NotificationView[] }>(
        `${call(callId)}/notifications`,
      );
      return answer.notifications;
    },
    replayOne: (eventId) =>
      ask(`${base}/notifications/${encodeURIComponent(eventId)}/replay`, { method: 'POST' }),
    replay: (selection) => ask(`${base}/notifications/replay`, { method: 'POST', body: selection }),
  };
}
