// Tests `offhook webhooks test`. It finds and names each fault of a receiver and subtracts points
// for it. It finds no fault in a correct receiver.

import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { callEvents, callEventTypes } from '../../src/calls/contract/call-event.ts';
import { exampleEvent } from '../../src/calls/contract/event-examples.ts';
import { statusRows } from '../../src/calls/contract/event-table.ts';
import { ReceiverConnection } from '../../src/cli/webhooks/receiver-connection.ts';
import { runReceiverChecks, scoreReceiver } from '../../src/cli/webhooks/webhooks-command.ts';
import { type VerifyOptions, verify } from '../../src/notifier/webhooks.ts';
import { removeFolder, run, temporaryFolder } from './support.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

type Received = { readonly body: string; readonly headers: IncomingHttpHeaders };
type Reply = { readonly status: number; readonly text?: string };
type Receive = (received: Received) => Reply | Promise<Reply>;

async function listen(receive: Receive): Promise<string> {
  const server = createServer((request, response) => {
    void (async () => {
      const body = (await buffer(request)).toString();
      const { status, text } = await receive({ body, headers: request.headers });
      response.writeHead(status).end(text);
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

type Body = { readonly callId: string; readonly eventId: string; readonly sequence: number };

/** Creates a correct receiver, except for `faults`. */
type Faults = {
  readonly verifyBody?: (body: string) => string;
  readonly tolerance?: VerifyOptions;
  readonly header?: (header: string) => string;
  readonly refusal?: Reply;
  readonly take?: (word: string) => Reply;
  readonly remembers?: boolean;
  readonly orders?: boolean;
  readonly storesLate?: boolean;
  readonly before?: (body: Record<string, unknown>) => Reply | undefined;
};

function receiver(faults: Faults = {}): Receive {
  const seen = new Set<string>();
  const sequences = new Map<string, number>();
  const take = async ({ callId, eventId, sequence }: Body): Promise<string> => {
    if (faults.remembers !== false && seen.has(eventId)) return 'duplicate';
    // Looks up and stores the id in two steps, like a database without a unique key.
    if (faults.storesLate === true) await someTurns();
    seen.add(eventId);
    const known = sequences.get(callId) ?? 0;
    sequences.set(callId, Math.max(known, sequence));
    return faults.orders !== false && known > sequence ? 'late' : 'applied';
  };
  return async ({ body, headers }) => {
    const header = String(headers['gateway-signature'] ?? '');
    const { ok } = verify(
      faults.verifyBody?.(body) ?? body,
      faults.header?.(header) ?? header,
      secret,
      faults.tolerance,
    );
    if (!ok) return faults.refusal ?? { status: 401 };
    const parsed = JSON.parse(body) as Body & Record<string, unknown>;
    const early = faults.before?.(parsed);
    if (early !== undefined) return early;
    const word = await take(parsed);
    return faults.take?.(word) ?? { status: 200, text: word };
  };
}

/**
 * Waits for 20 timer turns. Requests sent at the same time are read by then, even on a slow
 * machine.
 */
async function someTurns(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((done) => setTimeout(done, 1));
}

async function examine(receive: Receive, timeoutMs?: number) {
  const connection = new ReceiverConnection(await listen(receive), secret, timeoutMs);
  onTestFinished(() => connection.close());
  const results = await runReceiverChecks(connection, () => undefined);
  const named = (state: string) =>
    results.filter((result) => result.state === state).map(({ name }) => name);
  return {
    results,
    failed: named('failed'),
    unseen: named('unseen'),
    score: scoreReceiver(results, false),
    strictScore: scoreReceiver(results, true),
  };
}

const ok = (text: string): Reply => ({ status: 204, text });
const acceptAll: Receive = () => ({ status: 200 });

describe('a receiver', () => {
  test('scores 100 if it is correct', async () => {
    const { failed, unseen, score, strictScore } = await examine(receiver());

    expect({ failed, unseen, score, strictScore }).toEqual({
      failed: [],
      unseen: [],
      score: 100,
      strictScore: 100,
    });
  });

  test('may answer with JSON', async () => {
    const take = (result: string): Reply => ({ status: 200, text: JSON.stringify({ result }) });

    expect(await examine(receiver({ take }))).toMatchObject({ strictScore: 100 });
  });

  test('gets every status', async () => {
    const statuses = new Set<unknown>();
    const before = ({ status }: Record<string, unknown>): undefined => void statuses.add(status);
    await examine(receiver({ before }));

    const wanted = Object.values(statusRows).map(({ status }) => status);
    expect(statuses).toEqual(new Set(['Event', ...wanted]));
  });

  test('that does not report what it did loses points only with --strict', async () => {
    const result = await examine(receiver({ take: () => ok('') }));

    expect(result.failed).toEqual([]);
    expect(result.unseen).toEqual(['retry', 'repeat', 'repeat at once', 'order swapped']);
    expect(result.score).toBe(100);
    expect(result.strictScore).toBeLessThan(100);
  });
});

const parsedAndWritten = (body: string): string => JSON.stringify(JSON.parse(body));
/** The checks that fail if a receiver verifies nothing. */
const signatures = ['wrong signature', 'changed body', 'no signature', 'old timestamp'];

describe('finds a receiver that', () => {
  test.each<[string, Receive, readonly string[]]>([
    ['accepts everything', acceptAll, signatures],
    ['parses before it verifies', receiver({ verifyBody: parsedAndWritten }), ['raw body']],
    [
      'ignores the timestamp',
      receiver({ tolerance: { toleranceS: Number.POSITIVE_INFINITY } }),
      ['old timestamp'],
    ],
    [
      'reads only the first signature',
      receiver({ header: (header) => header.split(',').slice(0, 2).join(',') }),
      ['rotated secret'],
    ],
    ['remembers nothing', receiver({ remembers: false }), ['retry', 'repeat', 'repeat at once']],
    ['remembers too late', receiver({ storesLate: true }), ['repeat at once']],
    ['lets older notifications win', receiver({ orders: false }), ['order swapped']],
    [
      'refuses duplicates',
      receiver({ take: (word) => ({ status: word === 'duplicate' ? 409 : 200, text: word }) }),
      ['retry', 'repeat', 'repeat at once'],
    ],
    [
      'waits for missing notifications',
      receiver({ take: (word) => ({ status: word === 'late' ? 500 : 200, text: word }) }),
      ['order swapped'],
    ],
    ['answers 500 where it should refuse', receiver({ refusal: { status: 500 } }), signatures],
    ['answers 410 where it should refuse', receiver({ refusal: { status: 410 } }), signatures],
    [
      'rejects unknown members',
      receiver({
        before: (body) => (body['laterMember'] === undefined ? undefined : { status: 422 }),
      }),
      ['later version'],
    ],
    [
      'knows no AMD events',
      receiver({
        before: (body) => (body['status'] === 'Call-In-Progress' ? { status: 404 } : undefined),
      }),
      ['status Call-In-Progress'],
    ],
  ])('%s', async (_fault, receive, found) => {
    const { failed, results, score } = await examine(receive);

    expect(failed).toEqual(found);
    expect(score).toBeLessThan(100);
    for (const { state, mend } of results) {
      if (state === 'failed') expect(mend).toMatch(/\w/);
    }
  });

  test('redirects or has another secret: it accepts nothing and scores 0', async () => {
    const moved = await examine(() => ({ status: 308 }));
    const other = await examine(() => ({ status: 401 }));

    expect([moved.score, other.score]).toEqual([0, 0]);
    expect(moved.results[0]?.mend).toContain('does not follow redirects');
    expect(other.results[0]?.mend).toContain('whsec_');
  });

  test('never answers, after the first check', async () => {
    let asked = 0;
    const { results, score } = await examine(() => {
      asked += 1;
      return new Promise<Reply>(() => undefined);
    }, 50);

    expect(asked).toBe(1);
    expect(results).toMatchObject([{ state: 'failed', detail: 'no answer within 50 ms' }]);
    expect(score).toBe(0);
  });
});

describe('the example of an event', () => {
  test.each(callEventTypes)('%s conforms to its schema', (type) => {
    expect(callEvents[type].data.strict().parse(exampleEvent(type).data)).toEqual(
      exampleEvent(type).data,
    );
  });
});

describe('offhook webhooks test', () => {
  const runTest = async (args: readonly string[]) => {
    const dataDir = await temporaryFolder();
    onTestFinished(() => removeFolder(dataDir));
    return await run('cli', ['webhooks', 'test', ...args], { DATA_DIR: dataDir }).finished;
  };

  test('prints the checks, the score and what to fix, and exits according to the score', async () => {
    const url = await listen(acceptAll);
    const strict = await runTest([url, '--secret', secret]);
    const lenient = await runTest([url, '--secret', secret, '--min-score', '40']);

    expect(strict.code).toBe(1);
    expect(strict.out).toMatch(
      /^FAILED {2}wrong signature .*the receiver accepted it\n +→ compare `v1`/m,
    );
    expect(strict.err).toMatch(/scores \d+, less than 100/);
    expect(lenient.code).toBe(0);
  });

  test('prints one JSON object per line', async () => {
    const url = await listen(receiver());
    const { code, out } = await runTest([url, '--secret', secret, '--json', '--strict']);
    const lines = out.trim().split('\n');
    const objects = lines.map((line) => JSON.parse(line) as Record<string, unknown>);

    expect(code).toBe(0);
    expect(objects[0]).toMatchObject({ check: 'status Answered', state: 'passed' });
    expect(objects.at(-1)).toMatchObject({ url, score: 100 });
  });

  test('reports that no server listens', async () => {
    const { code, err } = await runTest(['http://127.0.0.1:9/', '--secret', secret]);

    expect(code).toBe(1);
    expect(err).toContain('127.0.0.1:9');
  });
});
