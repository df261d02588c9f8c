// The public API as the commands use it, with tokens of an app.

import { issueToken } from '../api/issue-token.ts';
import type { DialoutAnswer } from '../calls/dialout-ports.ts';
import type { CallDetails, NotificationView } from '../interactions/call-queries.ts';
import type { DeadLetter, ReplayedNotification } from '../notifier/dead-letters.ts';
import { requestJson } from './http-json.ts';

export type GatewayClient = {
  dial(body: Readonly<Record<string, unknown>>): Promise<DialoutAnswer>;
  call(callId: string): Promise<CallDetails>;
  end(callId: string): Promise<{ readonly state: string }>;
  notifications(callId: string): Promise<readonly NotificationView[]>;
  /** Newest first; `from`: given up at this instant or later. */
  deadLetters(page: {
    readonly cursor?: string;
    readonly from?: string;
  }): Promise<{ readonly notifications: readonly DeadLetter[]; readonly nextCursor?: string }>;
  replayOne(eventId: string): Promise<ReplayedNotification>;
  replay(selection: {
    readonly callId?: string;
    readonly from?: string;
  }): Promise<{ readonly replayed: number; readonly more: boolean }>;
};

/** A JWT that lives for so many seconds. */
export type TokenSource = (ttlS: number) => Promise<string>;

/** Each request has a token of its own: it lives as long as the longest request could. */
const tokenTtlS = 60;

export function tokensOf(app: { readonly appId: string; readonly jwtSecret: string }): TokenSource {
  return (ttlS) => issueToken({ ...app, jwtAlgorithm: 'HS256' }, ttlS);
}

export function createGatewayClient(
  httpUrl: string,
  tokens: TokenSource,
  botId: string,
): GatewayClient {
  const ofBot = `${httpUrl}/api/public/bot/${encodeURIComponent(botId)}`;
  const calls = `${ofBot}/calls`;
  const letters = `${ofBot}/notifications`;
  const headers = async () => ({ auth: await tokens(tokenTtlS) });
  const pathOf = (callId: string): string => `${calls}/${encodeURIComponent(callId)}`;
  return {
    dial: async (body) =>
      await requestJson<DialoutAnswer>(
        `${httpUrl}/api/1.1/public/bot/${encodeURIComponent(botId)}/V2/contactcenter/dialout`,
        { method: 'POST', headers: await headers(), body: { botId, ...body } },
      ),
    call: async (callId) =>
      await requestJson<CallDetails>(pathOf(callId), { headers: await headers() }),
    end: async (callId) =>
      await requestJson<{ state: string }>(pathOf(callId), {
        method: 'DELETE',
        headers: await headers(),
      }),
    notifications: async (callId) => {
      const answer = await requestJson<{ notifications: readonly NotificationView[] }>(
        `${pathOf(callId)}/notifications`,
        { headers: await headers() },
      );
      return answer.notifications;
    },
    deadLetters: async (page) =>
      await requestJson(
        `${letters}?${new URLSearchParams({ state: 'failed', ...page }).toString()}`,
        {
          headers: await headers(),
        },
      ),
    replayOne: async (eventId) =>
      await requestJson(`${letters}/${encodeURIComponent(eventId)}/replay`, {
        method: 'POST',
        headers: await headers(),
      }),
    replay: async (selection) =>
      await requestJson(`${letters}/replay`, {
        method: 'POST',
        headers: await headers(),
        body: selection,
      }),
  };
}
