import { connect } from 'node:net';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import {
  type ImportResult,
  importSuppressions,
} from '../../../src/api/rules/suppression-import.ts';
import { createSuppressions } from '../../../src/store/rules/suppressions.ts';
import { openTestDatabase } from '../../support/databases.ts';
import { eventually } from '../../support/eventually.ts';
import { forEachTest, forSuite } from '../../support/opened.ts';
import { app, startHarness, token } from '../support.ts';

const crm = app({ appId: 'crm', scopes: ['Calling Rules'], defaultCountry: 'US' });
const database = forSuite(() => openTestDatabase('pglite'));
const harness = forEachTest(() =>
  startHarness(
    {
      apps: {
        find: async (appId) => (appId === 'crm' ? crm : undefined),
        findByApiKey: async () => undefined,
      },
      suppressions: createSuppressions(database),
      suppressing: {
        suppress: async () => [],
        store: (by, suppressions) => createSuppressions(database).put(by, suppressions),
        cancelSuppressed: async () => [],
      },
    },
    [],
    { requestTimeoutMs: 500 },
  ),
);
afterEach(() => database.clear());

async function send(contentType: string, payload: string | Buffer) {
  const response = await harness.server.inject({
    method: 'POST',
    url: '/api/public/suppressions',
    headers: { auth: await token({ appId: 'crm' }), 'content-type': contentType },
    payload,
  });
  return { status: response.statusCode, body: response.json<Record<string, unknown>>() };
}

async function stored() {
  const { suppressions } = await createSuppressions(database).list('acme', { limit: 2_000 });
  return suppressions.map(({ address, reason, source, until }) =>
    [address, reason, source, until?.toISOString() ?? ''].join(),
  );
}

const ndjson = (...lines: readonly object[]) =>
  lines.map((line) => `${JSON.stringify(line)}\n`).join('');
const optOut = { reason: 'opt-out', source: 'list' };

describe('an import', () => {
  test('lets other work have its turn after every few lines', async () => {
    const result: ImportResult = { accepted: 0, replaced: 0, wrongTotal: 0, wrong: [] };
    async function* body() {
      // One chunk, and no line that is stored: nothing else ends the turn.
      yield Buffer.from('no JSON\n'.repeat(5_000));
    }
    let turns = 0;
    let isDone = false;
    const count = (): void => {
      turns += 1;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);

    await importSuppressions(body(), {
      ...{ app: crm, format: 'ndjson', result },
      store: async () => 0,
    });
    isDone = true;

    expect(result.wrongTotal).toBe(5_000);
    expect(turns).toBeGreaterThanOrEqual(20);
  });

  test('stores NDJSON, of which the last line for a number counts', async () => {
    const until = '2999-01-01T01:00:00+01:00';
    const first = { number: '+12025550110', ...optOut };
    const { status, body } = await send(
      'application/x-ndjson',
      ndjson(first, { number: '2025550111', ...optOut, until }, { ...first, reason: 'complaint' }),
    );
    const again = await send('application/x-ndjson', ndjson(first));

    expect(status).toBe(200);
    expect(body).toEqual({ accepted: 3, replaced: 1, wrongTotal: 0, wrong: [] });
    expect(again.body).toMatchObject({ accepted: 1, replaced: 1 });
    expect(await stored()).toEqual([
      '+12025550110,opt-out,list,',
      '+12025550111,opt-out,list,2999-01-01T00:00:00.000Z',
    ]);
  });

  test('stores CSV with its header, whatever the order, quotes and line ends', async () => {
    const lines = [
      '\uFEFFreason,number,source,until',
      'opt-out,+1-202-555-0110,"list, ""old""",',
      'other,sip:bob@pbx.example:5070,list,2999-01-01T00:00:00Z',
      '',
    ];
    const { body } = await send('text/csv; charset=utf-8', lines.join('\r\n'));

    expect(body).toEqual({ accepted: 2, replaced: 0, wrongTotal: 0, wrong: [] });
    expect(await stored()).toEqual([
      '+12025550110,opt-out,list, "old",',
      'sip:bob@pbx.example,other,list,2999-01-01T00:00:00.000Z',
    ]);
  });

  test('names each wrong line, and accepts the others', async () => {
    const body = [
      'number,reason,source,until',
      '+12025550110,opt-out,list,',
      '+123,opt-out,list,',
      '+12025550111,spite,,',
      '+12025550112,opt-out',
      '+12025550113,"opt-out,list,',
      '',
      `+12025550114,opt-out,${'x'.repeat(100_000)},`,
      Buffer.from([0xff]),
      '+12025550115,opt-out,list,tomorrow',
      '+12025550115,opt-out,list,2020-01-01T00:00:00Z',
      '+12025550116,opt-out,list,',
    ];
    const bytes = body.map((line) => Buffer.concat([Buffer.from(line), Buffer.from('\n')]));
    const result = await send('text/csv', Buffer.concat(bytes));

    const { wrong, ...counts } = result.body as { wrong: readonly { readonly line: number }[] };
    expect(counts).toEqual({ accepted: 2, replaced: 0, wrongTotal: 8 });
    expect(wrong.map(({ line }) => line)).toEqual([3, 4, 5, 6, 8, 9, 10, 11]);
    expect(wrong.map((each) => JSON.stringify(each)).join('\n')).not.toMatch(/2025550/);
    expect(await stored()).toHaveLength(2);
  });

  test.each([
    ['{"number":"+12025550110"', 'is not JSON'],
    ['"+12025550110"', 'is not a JSON object'],
    ['[]', 'must be an object'],
    [JSON.stringify({ number: '+12025550110', ...optOut, note: 1 }), 'note: is not known'],
  ])('calls %s wrong: %s', async (line, message) => {
    const { body } = await send('application/x-ndjson', `\n${line}`);

    expect(body).toEqual({
      ...{ accepted: 0, replaced: 0, wrongTotal: 1 },
      wrong: [{ line: 2, message: expect.stringContaining(message) }],
    });
  });

  test('lists only the first 1,000 wrong lines', async () => {
    const { body } = await send('application/x-ndjson', 'x\n'.repeat(1_234));

    expect(body['wrongTotal']).toBe(1_234);
    expect(body['wrong']).toHaveLength(1_000);
  });

  test.each(['number,reason', 'number,reason,source,source', 'phone,reason,source', '+1202,a,b'])(
    'is refused if its CSV header is %s',
    async (header) => {
      const { status, body } = await send('text/csv', `${header}\n+12025550110,opt-out,list\n`);

      expect(status).toBe(400);
      expect(body['errors']).toEqual([
        { path: 'body', message: 'must begin with the header number,reason,source,until' },
      ]);
      expect(await stored()).toEqual([]);
    },
  );

  test('is refused in any other format', async () => {
    expect((await send('application/json', '{}')).status).toBe(415);
  });
});

describe('the body of an import', () => {
  async function open() {
    const { port } = new URL(await harness.server.listen({ host: '127.0.0.1', port: 0 }));
    const socket = connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true });
    onTestFinished(() => void socket.destroy());
    let received = '';
    socket.setEncoding('utf8').on('data', (text: string) => (received += text));
    socket.on('error', () => undefined);
    const head = [
      'POST /api/public/suppressions HTTP/1.1',
      'host: offhook',
      `auth: ${await token({ appId: 'crm' })}`,
      'content-type: application/x-ndjson',
      'transfer-encoding: chunked',
      '\r\n',
    ];
    socket.write(head.join('\r\n'));
    return {
      socket,
      received: () => received,
      sendChunk: (text: string) =>
        socket.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`),
    };
  }

  test('may arrive for longer than other bodies may', async () => {
    const { sendChunk, received } = await open();
    for (let index = 10; index < 20; index += 1) {
      sendChunk(ndjson({ number: `+120255501${index}`, ...optOut }));
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    sendChunk('');

    await eventually(() => received().includes('"accepted":10'), 'the import is answered');
    expect(received()).toContain('HTTP/1.1 200 OK');
  });

  test('that breaks off leaves its whole batches stored', async () => {
    const { socket, sendChunk } = await open();
    const lines = Array.from({ length: 1_400 }, (_, index) => ({
      ...{ number: `+1202555${String(1_000 + index)}`, ...optOut },
    }));
    sendChunk(ndjson(...lines));
    await eventually(async () => (await stored()).length === 1_000, 'a batch is stored');
    socket.destroy();

    await eventually(
      async () => (await harness.server.inject('/metrics')).body.includes('status="400"'),
      'the response is counted as a 400',
    );
    expect(await stored()).toHaveLength(1_000);
  });
});
