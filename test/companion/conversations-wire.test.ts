// A GET with a body over real sockets. Other routes ignore such a body. The connection can be used
// for the next request, whatever came before.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { request } from 'undici';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  conversationSession,
  publishedConversation,
} from '../../src/companion/conversations/conversation-schema.ts';
import { storeConversations } from '../../src/companion/conversations/published-conversations.ts';
import { token } from '../api/support.ts';
import { eventually } from '../support/eventually.ts';
import { forSuite } from '../support/opened.ts';
import { startRig } from './support.ts';

const { examples } = conversationSession.meta() as { readonly examples: readonly [object] };
const path = '/contactcenter/api/v1/public/st-1/conversations/sessions/ss-1';
const thatDay = JSON.stringify({ startDate: '2026-11-20', endDate: '2026-11-20' });
const otherDay = JSON.stringify({ startDate: '2026-11-21' });

let origin: string;
let auth: string;
const rig = forSuite(() => startRig('postgres'));
beforeAll(async () => {
  const bot = { botId: 'st-1', accountId: 'acme' };
  const body = publishedConversation.parse({
    ...examples[0],
    sessionId: 'ss-1',
    accountId: 'acme',
  });
  await storeConversations(rig.database, [{ bot, body, version: 1 }]);
  origin = await rig.server.listen({ host: '127.0.0.1', port: 0 });
  auth = await token({ appId: rig.acme.appId }, { secret: rig.acme.jwtSecret });
});

type Message = { path?: string; body?: string; headers?: Record<string, string> };

function written({ path: target = path, body, headers }: Message): string {
  const lines = Object.entries({
    host: 'gateway',
    auth,
    accept: 'application/json',
    accountid: 'acme',
    'content-type': 'application/json',
    ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${target} HTTP/1.1\r\n${lines.join('')}\r\n${body ?? ''}`;
}

/**
 * Sends all messages at once on one connection, and returns the status of each response, in order.
 */
async function statusesOf(...texts: readonly string[]): Promise<readonly number[]> {
  const socket = connect(Number(new URL(origin).port), '127.0.0.1');
  let received = '';
  let isClosed = false;
  socket.setEncoding('utf8').on('data', (text: string) => (received += text));
  socket.on('close', () => {
    isClosed = true;
  });
  socket.on('error', () => undefined);
  socket.write(texts.join(''));
  const statuses = () =>
    [...received.matchAll(/HTTP\/1\.1 (\d{3}) (?!Continue)/g)].map((match) => Number(match[1]));
  await eventually(() => isClosed || statuses().length === texts.length, 'every answer');
  socket.destroy();
  return statuses();
}

describe('the body of a GET', () => {
  test('is read from clients that send one', async () => {
    const ask = async (body: string) =>
      (
        await request(origin + path, {
          method: 'GET',
          headers: {
            auth,
            accept: 'application/json',
            accountid: 'acme',
            'content-type': 'application/json',
          },
          body,
        })
      ).statusCode;

    expect(await ask(thatDay)).toBe(200);
    expect(await ask(otherDay)).toBe(404);
  });

  test('leaves the connection usable for the next request', async () => {
    const chunked = `${written({ headers: { 'transfer-encoding': 'chunked' } })}5\r\n{"end\r\n15\r\nDate":"2026-11-19"}\r\n\r\n0\r\n\r\n`;
    const large = JSON.stringify({ startDate: 'x'.repeat(100_000) });

    expect(
      await statusesOf(
        written({ body: thatDay }),
        chunked,
        written({ body: large }),
        written({ body: '{' }),
        written({ body: otherDay, headers: { auth: 'none' } }),
        written({ body: otherDay, headers: { expect: '100-continue' } }),
        written({}),
      ),
    ).toEqual([200, 404, 413, 400, 401, 404, 200]);
  });

  test('that never arrives completely is not logged as a failure', async () => {
    const { server } = rig.server;
    const arrived = once(server, 'request');
    const socket = connect(Number(new URL(origin).port), '127.0.0.1');
    socket.write(written({ body: '{', headers: { 'content-length': '100' } }));
    const [{ socket: ofServer }] = (await arrived) as [{ readonly socket: Socket }];
    const closed = once(ofServer, 'close');

    socket.destroy();
    await closed;

    expect(rig.logged()).not.toContain('request failed');
    expect(await statusesOf(written({ body: thatDay }))).toEqual([200]);
  });

  test.each([
    ['no body, but its type', {}],
    ['an empty body', { body: '' }],
    ['an unexpected body', { body: thatDay }],
    ['a body that is not JSON', { body: '{' }],
    ['a prototype', { body: '{"__proto__":{}}' }],
    ['more than 256 KiB', { body: 'x'.repeat(300_000) }],
    ['an unknown type', { body: 'a=b', headers: { 'content-type': 'text/plain' } }],
    ['an invalid type', { headers: { 'content-type': 'json' } }],
    ['an encoding', { body: '{}', headers: { 'content-encoding': 'gzip' } }],
  ] satisfies readonly [string, Message][])(
    'disturbs no request on other routes: %s',
    async (_name, more) => {
      expect(
        await statusesOf(
          written({ path: '/live', ...more }),
          written({ path: '/openapi.json', ...more }),
          written({ path: '/api/public/bot/st-1/calls?limit=0', ...more }),
          written({ body: thatDay }),
        ),
      ).toEqual([200, 200, 400, 200]);
    },
  );
});
