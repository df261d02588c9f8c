// A dialer application that uses the HTTP API like any client, with an app's credentials. In the
// embedded profile that's the `dev` app.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SignJWT } from 'jose';
import { request as undiciRequest } from 'undici';

export type DevApp = {
  readonly appId: string;
  readonly jwtSecret: string;
  readonly webhookSecret: string;
  /** Absent if a test created the app. */
  readonly streamSecret?: string;
};

export type Placed = {
  readonly sid: string;
  readonly callId: string;
  readonly conversationId: string;
};

export type Dialer = Awaited<ReturnType<typeof createDialer>>;

const botId = 'bot-1';

export async function readDevApp(dataDir: string): Promise<DevApp> {
  return JSON.parse(await readFile(join(dataDir, 'dev-app.json'), 'utf8')) as DevApp;
}

export async function createDialer(httpUrl: string, app: DevApp) {
  const token = await new SignJWT({ appId: app.appId })
    .setProtectedHeader({ alg: 'HS256' })
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(new TextEncoder().encode(app.jwtSecret));
  const auth = { auth: token };

  async function request(
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ) {
    // `fetch` needs several times as much CPU, which would distort benches on the same cores.
    const response = await undiciRequest(`${httpUrl}${path}`, {
      method,
      headers: {
        ...auth,
        ...headers,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return {
      status: response.statusCode,
      headers: response.headers,
      body: (await response.body.json()) as never,
    };
  }

  const calls = `/api/public/bot/${botId}/calls`;
  return {
    botId,
    httpUrl,
    token,
    app,
    request,
    /** Sends a dial-out and returns the response, even if it is an error. */
    post: (body: Record<string, unknown>, headers: Record<string, string> = {}) =>
      request(
        'POST',
        `/api/1.1/public/bot/${botId}/V2/contactcenter/dialout`,
        { botId, caller: '15559876543', ...body },
        headers,
      ),
    /**
     * Sends a dial-out.
     * @throws Error unless the gateway accepts it.
     */
    async dial(
      body: Record<string, unknown>,
      headers: Record<string, string> = {},
    ): Promise<Placed> {
      const answer = await this.post(body, headers);
      if (answer.status !== 200)
        throw new Error(`dial-out: ${answer.status} ${JSON.stringify(answer.body)}`);
      return answer.body as Placed;
    },
    command: (callId: string, command: Record<string, unknown>) =>
      request('POST', `${calls}/${callId}/commands`, command),
    /**
     * Uploads a sound.
     * @throws Error unless the gateway accepts it.
     */
    async addSound(name: string, wav: Uint8Array): Promise<void> {
      const response = await undiciRequest(`${httpUrl}/api/public/sounds/${name}`, {
        method: 'PUT',
        headers: { ...auth, 'content-type': 'audio/wav' },
        body: wav,
      });
      const text = await response.body.text();
      if (response.statusCode >= 300) throw new Error(`sound: ${response.statusCode} ${text}`);
    },
    call: (callId: string) => request('GET', `${calls}/${callId}`),
    context: (callId: string) => request('GET', `${calls}/${callId}/context`),
    notifications: (callId: string) => request('GET', `${calls}/${callId}/notifications`),
    list: (query = '') => request('GET', `${calls}${query}`),
    end: (callId: string) => request('DELETE', `${calls}/${callId}`),
  };
}
