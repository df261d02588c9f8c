// The HTTP server: problem documents, limits, health, metrics.

import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { forEachTest } from '../support/opened.ts';
import {
  dial,
  dialoutPath,
  type Harness,
  minimal,
  type ProblemDocument,
  startHarness,
  token,
} from './support.ts';

const harness = forEachTest(startHarness);

test('a connection without a request does not delay the close', async () => {
  const { port } = new URL(await harness.server.listen({ host: '127.0.0.1', port: 0 }));
  const socket = connect(Number(port), '127.0.0.1');
  await once(socket, 'connect');
  // The server has accepted the connection, because it has answered a later one.
  await fetch(`http://127.0.0.1:${port}/live`, { headers: { connection: 'close' } });

  await Promise.all([harness.server.close(), once(socket, 'close')]);
});

test('a request that is not answered in time gets a 503, with a body and without one', async () => {
  const never = () => new Promise<never>(() => undefined);
  await using slow = await startHarness(
    { intake: { submit: never }, deadLetters: { list: never, replayOne: never, replay: never } },
    [],
    { responseTimeoutMs: 100 },
  );
  const url = await slow.server.listen({ host: '127.0.0.1', port: 0 });
  const headers = { auth: await token(), 'content-type': 'application/json' };
  const body = JSON.stringify(minimal);
  const dialled = await fetch(`${url}${dialoutPath}`, { method: 'POST', headers, body });
  const listed = await fetch(`${url}/api/public/bot/st-1/notifications`, { headers });

  expect(await dialled.json()).toMatchObject({
    status: 503,
    type: 'urn:offhook:problem:acceptance-unknown',
  });
  expect(await listed.json()).toMatchObject({ status: 503 });
});

test('an upload of a sound may take longer, because it waits for the conversion', async () => {
  const never = () => new Promise<never>(() => undefined);
  let convert: (() => void) | undefined;
  const at = new Date('2026-11-20T09:00:00Z');
  const sound = { name: 'a', durationMs: 1, bytes: 8, sha256: '00', createdAt: at, updatedAt: at };
  const put = async () => {
    await new Promise<void>((resolve) => {
      convert = resolve;
    });
    return { kind: 'created', sound } as const;
  };
  const list = async () => [];
  await using slow = await startHarness(
    {
      deadLetters: { list: never, replayOne: never, replay: never },
      sounds: { put, list, find: never, remove: never },
    },
    [],
    { responseTimeoutMs: 100 },
  );
  const url = await slow.server.listen({ host: '127.0.0.1', port: 0 });
  const auth = await token();
  const uploading = fetch(`${url}/api/public/sounds/a`, {
    ...{ method: 'PUT', headers: { auth, 'content-type': 'audio/wav' }, body: 'a WAV file' },
  });
  await eventually(() => convert !== undefined, 'the upload is being converted');
  const listed = await fetch(`${url}/api/public/bot/st-1/notifications`, { headers: { auth } });
  convert?.();

  expect([listed.status, (await uploading).status]).toEqual([503, 200]);
});

describe('problem documents', () => {
  test('have every member of RFC 9457 and the request id', async () => {
    const response = await dial(harness, { ...minimal, target: 'x' });

    expect(response.headers['content-type']).toBe('application/problem+json; charset=utf-8');
    expect(response.json()).toEqual({
      type: 'urn:offhook:problem:invalid-request',
      title: 'The request is not valid',
      status: 400,
      detail: 'One field is not valid; see errors.',
      errors: [{ path: 'target', message: 'must be a tel: or sip: URI, e.g. tel:+12025550110' }],
      requestId: response.headers['x-request-id'],
    });
  });

  test.each<[string, number, string, Readonly<Record<string, string>>]>([
    ['half a document', 400, '{"botId":', {}],
    ['no document', 400, '', {}],
    ['a list', 400, '[]', {}],
    ['null', 400, 'null', {}],
    ['a prototype', 400, '{"__proto__":{"polluted":true}}', {}],
    ['a prototype twice', 400, '{"__proto__":1,"__proto__":{"a":1}}', {}],
    ['a prototype in metadata', 400, '{"metadata":{"__proto__":{"a":1}}}', {}],
    ['a constructor', 400, '{"metadata":{"constructor":{"prototype":{"a":1}}}}', {}],
    ['more than 256 KiB', 413, JSON.stringify({ ...minimal, x: 'y'.repeat(262_144) }), {}],
    ['text', 415, 'hello', { 'content-type': 'text/plain' }],
    ['a form', 415, 'a=b', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['an illegal type', 415, '{}', { 'content-type': 'json' }],
    ['compressed', 415, '{}', { 'content-encoding': 'gzip' }],
    ['an answer in HTML', 406, '{}', { accept: 'text/html' }],
    ['no JSON at all', 406, '{}', { accept: 'application/json;q=0, text/*' }],
  ])('%s is a %i', async (_name, status, body, headers) => {
    const response = await dial(harness, body, headers);

    expect(response.statusCode).toBe(status);
    expect(response.headers['content-type']).toMatch(/^application\/problem\+json/);
    expect(response.json<ProblemDocument>().status).toBe(status);
    expect(harness.submissions).toEqual([]);
    expect(Object.prototype).not.toHaveProperty('polluted');
  });

  test.each(['application/json', 'text/html, */*;q=0.1', 'application/*', ''])(
    'answers JSON to a client that accepts %j',
    async (accept) => {
      expect((await dial(harness, minimal, { accept })).statusCode).toBe(200);
    },
  );

  test.each([
    ['GET', '/nowhere'],
    ['GET', `/api/public/bot/${'b'.repeat(129)}/calls`],
  ] as const)('%s %s is an ordinary 404', async (method, url) => {
    const response = await harness.server.inject({ method, url, headers: { auth: await token() } });

    expect(response.statusCode).toBe(404);
    expect(response.json<ProblemDocument>().title).toBe('Not found');
  });

  test.each([
    ['GET', dialoutPath, 'POST'],
    ['PUT', '/api/public/bot/st-1/calls', 'GET, HEAD'],
    ['PATCH', '/api/public/bot/st-1/calls/call-1?limit=1', 'DELETE, GET, HEAD'],
    ['OPTIONS', '/api/public/bot/st-1/notifications/replay', 'POST'],
    ['DELETE', '/live', 'GET, HEAD'],
    ['POST', '/docs/static/index.html', 'GET, HEAD'],
  ] as const)('%s %s is a 405 that names the allowed methods', async (method, url, allow) => {
    const response = await harness.server.inject({
      ...{ method, url, payload: '{' },
      headers: { 'content-type': 'application/json' },
    });

    expect(response.statusCode).toBe(405);
    expect(response.headers['allow']).toBe(allow);
    expect(response.json<ProblemDocument>().type).toBe('urn:offhook:problem:method-not-allowed');
  });

  test('a path that cannot be decoded is a 400', async () => {
    const response = await harness.server.inject('/api/%zz');

    expect(response.statusCode).toBe(400);
    expect(response.headers['content-type']).toMatch(/^application\/problem\+json/);
  });
});

test.each(['%', '%zz', '%ff', '%ed%a0%80', 'call%'])(
  'a query that is not percent-encoded UTF-8 is a 400: %s',
  async (callId) => {
    const response = await harness.server.inject({
      url: `/api/public/bot/st-1/notifications?callId=${callId}`,
      headers: { auth: await token() },
    });

    expect(response.statusCode).toBe(400);
    expect(response.json<ProblemDocument>().detail).toBe('The query is not percent-encoded UTF-8.');
  },
);

describe('a body', () => {
  test.each([
    ['__proto__', '{"__proto__":{"polluted":true}}'],
    ['metadata.__proto__', '{"metadata":{"__proto__":1}}'],
    ['metadata.a.0.__proto__', '{"metadata":{"a":[{"\\u005f_proto__":{}}]}}'],
    ['metadata.constructor', '{"metadata":{"constructor":{"prototype":{}}}}'],
  ])('that would change a prototype is refused at %s', async (path, body) => {
    const response = await dial(harness, body);

    expect(response.statusCode).toBe(400);
    expect(response.json<ProblemDocument>().errors).toEqual([
      {
        path,
        message: 'is refused: no member may be `__proto__`, or `constructor` with a `prototype`',
      },
    ]);
  });

  test('may contain the forbidden names as values', async () => {
    const metadata = { constructor: 'Ada', note: '__proto__', prototype: { constructor: {} } };

    expect((await dial(harness, { ...minimal, metadata })).statusCode).toBe(200);
    expect(harness.submissions[0]?.request.metadata).toEqual(metadata);
  });

  test.each([
    ['half a character', [0xc3]],
    ['Latin-1', [0xfc]],
    ['an overlong form', [0xc0, 0xaf]],
    ['half a surrogate pair', [0xed, 0xa0, 0x80]],
  ])('that is not UTF-8 is refused and not repaired: %s', async (_name, bytes) => {
    const [before = '', after = ''] = JSON.stringify({ ...minimal, metadata: { a: '|' } }).split(
      '|',
    );
    const response = await dial(
      harness,
      Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(after)]),
    );

    expect(response.statusCode).toBe(400);
    expect(response.json<ProblemDocument>().detail).toBe(
      `The body is not UTF-8: its first invalid byte is at line 1, column ${before.length + 1}.`,
    );
    expect(harness.submissions).toEqual([]);
  });

  test('with a member given twice uses the last one', async () => {
    const twice = JSON.stringify(minimal).replace('{', '{"caller":"first",');

    expect((await dial(harness, twice)).statusCode).toBe(200);
    expect(harness.submissions[0]?.request.caller).toBe(minimal.caller);
  });
});

describe('raw bytes', () => {
  test('that are not HTTP are answered with a problem, and the connection ends', async () => {
    const port = await listen(harness);

    const text = await rawExchange(port, 'rubbish\r\n\r\n');

    expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(text).toContain('urn:offhook:problem:invalid-request');
  });

  test('with endless headers are a 431', async () => {
    const port = await listen(harness);

    const text = await rawExchange(
      port,
      `GET /live HTTP/1.1\r\nHost: x\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`,
    );

    expect(text).toMatch(/^HTTP\/1\.1 431 Request Header Fields Too Large\r\n/);
    expect(text).toContain('\r\ncache-control: no-store\r\n');
  });

  test('of a body over the limit are refused before all have arrived', async () => {
    const port = await listen(harness);

    const auth = await token();
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const request = httpRequest(
        {
          port,
          method: 'POST',
          path: dialoutPath,
          headers: { auth, 'content-type': 'application/json', 'content-length': 1_000_000 },
        },
        (response) => {
          response.resume();
          resolve(response.statusCode);
          request.destroy();
        },
      );
      request.on('error', reject);
      request.write('{');
    });

    expect(status).toBe(413);
  });
});

describe('the health and metrics routes', () => {
  test('/live answers while the process runs', async () => {
    const response = await harness.server.inject('/live');

    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual({ status: 'live' });
  });

  test('/ready names the failed checks, including one that hangs', async () => {
    let asked = 0;
    await using broken = await startHarness({
      health: [
        { name: 'database', failure: 'no database', check: async () => ({ ok: true }) },
        {
          name: 'nats',
          failure: 'no NATS',
          check: async () => ({ ok: false, detail: 'nats://10.0.0.5' }),
        },
        { name: 'sip', failure: 'no SIP', check: () => Promise.reject(new Error('no engine')) },
        {
          name: 'stuck',
          failure: 'no answer',
          check: () => {
            asked += 1;
            return new Promise(() => undefined);
          },
        },
      ],
    });

    const responses = await Promise.all([
      broken.server.inject('/ready'),
      broken.server.inject('/ready'),
    ]);

    for (const response of responses) {
      expect(response.statusCode).toBe(503);
      expect(response.headers['retry-after']).toBe('5');
      expect(response.json()).toEqual({
        status: 'unready',
        reasons: ['no NATS', 'no SIP', 'no answer'],
        checks: { database: 'ok', nats: 'failed', sip: 'failed', stuck: 'failed' },
        servers: [],
      });
    }
    expect(asked).toBe(1);
  });

  test('/ready answers 200 when every check passes, with the state of each server', async () => {
    const servers = [
      { name: 'PostgreSQL', state: 'up', since: '2026-01-01T12:00:00.000Z' },
    ] as const;
    await using ready = await startHarness({
      health: [{ name: 'database', failure: 'no database', check: async () => ({ ok: true }) }],
      servers: () => servers,
    });

    const response = await ready.server.inject('/ready');

    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual({ status: 'ready', checks: { database: 'ok' }, servers });
  });

  test('/metrics counts requests by route, and calls', async () => {
    await dial(harness, minimal);
    await dial(harness, {});

    const { body, headers } = await harness.server.inject('/metrics');

    expect(headers['content-type']).toMatch(/^text\/plain/);
    expect(body).toContain('offhook_calls_accepted_total 1');
    expect(body).toContain('offhook_calls_active 3');
    expect(body).toMatch(
      /offhook_http_request_duration_seconds_count\{method="POST",route="\/api\/1.1\/public\/bot\/:botId\/V2\/contactcenter\/dialout",status="400"\} 1/,
    );
    // The process's own metrics start with this first reading. An answer without a number would
    // spoil a rate or a mean.
    expect(body).toMatch(/^process_cpu_seconds_total [0-9.]+$/m);
    expect(body).toMatch(/^nodejs_eventloop_lag_mean_seconds [0-9.]+$/m);
  });
});

async function listen({ server }: Harness): Promise<number> {
  const address = await server.listen({ host: '127.0.0.1', port: 0 });
  return Number(new URL(address).port);
}

function rawExchange(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text));
    let received = '';
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => {
      received += chunk;
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(received));
  });
}
