import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { covers } from '../specification/covers.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { forEachTest, forSuite } from '../support/opened.ts';
import { glance, signatureIsRight, startReceiver } from '../support/receiver.ts';
import { createNotifierRig, personCall } from './notifier-rig.ts';

describe.each(databaseKinds)('delivery of notifications, on %s', (kind) => {
  const database = forSuite(() => openTestDatabase(kind));
  const receiver = forEachTest(startReceiver);
  const rig = forEachTest(() => createNotifierRig(database));
  afterEach(() => database.clear());

  test('a call’s notifications arrive in order, signed, and nothing is owed afterwards', async () => {
    covers(
      'notifications.post.rule.method',
      'notifications.post.header.notifyHeaders',
      'notifications.post.header.Accept',
      'notifications.post.header.Content-Type',
      'notifications.post.header.Content-Length',
      'notifications.post.header.Host',
      'notifications.post.header.User-Agent',
      'notifications.post.header.Gateway-Signature',
    );
    const notifier = await rig.start();
    const notifyHeaders = { 'X-Tenant': 'acme', 'content-type': 'text/plain' };
    const call = rig.call(receiver.url, { notifyHeaders });

    for (const event of personCall(call)) await notifier.handle([event]);
    const bodies = await receiver.untilEnded(call.identity.callId);

    expect(glance(bodies)).toEqual(['Answered', 'amd_human_detected', 'amd_stopped', 'completed']);
    expect(bodies.map((body) => body.sequence)).toEqual([1, 2, 3, 4]);
    for (const received of receiver.received) {
      expect(signatureIsRight(received, rig.secret)).toBe(true);
      expect(received.headers).toMatchObject({
        'x-tenant': 'acme',
        'content-type': 'application/json',
        'user-agent': 'Offhook/0.0.0-test',
        accept: '*/*',
        host: new URL(receiver.url).host,
        'content-length': String(Buffer.byteLength(received.rawBody)),
        'webhook-id': received.body.eventId,
      });
    }
    await eventually(async () => (await rig.lanesLeft()) === 0, 'nothing is owed');
    expect(new Set(Object.values(await rig.states()))).toEqual(new Set(['delivered']));
  });

  test('selected events arrive among the others, and another node delivers those that a node still owed', async () => {
    const first = await rig.start({ nodeId: 'a' });
    receiver.answerWith(({ sequence }) => (sequence === 2 ? 503 : 200));
    const call = rig.call(receiver.url);
    const selected = [call.selected('ringing'), call.answered(), call.selected('dtmf')] as const;
    await first.handle([selected[0]]);
    await first.handle([selected[1], selected[2]]);
    await eventually(() => receiver.received.some(({ status }) => status === 503), 'it refuses');
    await first.stop();

    const second = await rig.start({ nodeId: 'b' });
    await second.handle([call.selected('transfer-failed'), call.completed()]);
    receiver.answerWith(() => 200);
    const bodies = await receiver.untilEnded(call.identity.callId);

    expect(bodies.map(({ sequence, status }) => `${sequence} ${status}`)).toEqual([
      ...['1 Event', '2 Answered', '3 Event', '4 Event', '5 completed'],
    ]);
    expect(bodies[0]?.['event']).toEqual(selected[0]);
    expect(bodies[2]?.['event']).toEqual(selected[2]);
    for (const received of receiver.received) {
      expect(signatureIsRight(received, rig.secret)).toBe(true);
      expect(received.headers['webhook-id']).toBe(received.body.eventId);
    }
  });

  test('events of one batch are sent in order', async () => {
    const notifier = await rig.start();
    const calls = Array.from({ length: 20 }, () => rig.call(receiver.url));

    await notifier.handle(calls.flatMap((call) => personCall(call)));

    for (const call of calls) {
      const bodies = await receiver.untilEnded(call.identity.callId);
      expect(bodies.map((body) => body.sequence)).toEqual([1, 2, 3, 4]);
    }
  });

  test('a receiver that does not answer in time is recorded as such', async () => {
    const hanging = createServer(() => {
      // Never answers.
    });
    await new Promise<void>((resolve) => hanging.listen(0, '127.0.0.1', resolve));
    const { port } = hanging.address() as AddressInfo;
    const notifier = await rig.start({ timeoutMs: 300 });
    const event = rig.call(`http://127.0.0.1:${port}/`).failed();

    await notifier.handle([event]);
    await eventually(async () => (await rig.attempts(event.id)).length > 0, 'it is recorded');

    expect((await rig.attempts(event.id))[0]).toEqual({
      attempt: 1,
      response_status: null,
      error: 'no response within 300 ms',
      delivered: false,
    });
    hanging.close();
    hanging.closeAllConnections();
  });

  test('a failing receiver does not change the order; each attempt is recorded and newly signed', async () => {
    const notifier = await rig.start();
    const call = rig.call(receiver.url);
    let refusals = 3;
    receiver.answerWith(() => (refusals-- > 0 ? 503 : 200));
    const events = [call.answered(), call.completed()];

    await notifier.handle(events);
    await receiver.untilEnded(call.identity.callId);

    expect(receiver.received.map((entry) => [entry.body.sequence, entry.status])).toEqual([
      [1, 503],
      [1, 503],
      [1, 503],
      [1, 200],
      [2, 200],
    ]);
    expect(new Set(receiver.received.slice(0, 4).map((entry) => entry.rawBody)).size).toBe(1);
    await eventually(async () => (await rig.lanesLeft()) === 0, 'nothing is owed');
    expect(await rig.attempts(events[0]?.id ?? '')).toEqual([
      { attempt: 1, response_status: 503, error: null, delivered: false },
      { attempt: 2, response_status: 503, error: null, delivered: false },
      { attempt: 3, response_status: 503, error: null, delivered: false },
      { attempt: 4, response_status: 200, error: null, delivered: true },
    ]);
  });

  test('a refused event lets its successors pass after a while, and is still retried', async () => {
    const notifier = await rig.start();
    const call = rig.call(receiver.url);
    let isRefusing = true;
    receiver.answerWith((body) => (body.sequence === 1 && isRefusing ? 422 : 200));

    await notifier.handle([call.answered(), call.amd('amd_human_detected')]);
    await eventually(() => receiver.accepted().length === 1, 'the successor passes');
    expect(receiver.accepted()[0]?.body.sequence).toBe(2);
    // A later notification passes without waiting, although the first is still refused.
    await notifier.handle([call.completed()]);
    await receiver.untilEnded(call.identity.callId);
    isRefusing = false;
    await eventually(() => receiver.accepted().length === 3, 'the refused one is delivered');

    expect(receiver.accepted().map((entry) => entry.body.sequence)).toEqual([2, 3, 1]);
    await eventually(async () => (await rig.lanesLeft()) === 0, 'nothing is owed');
  });

  test('redirects are not followed', async () => {
    const notifier = await rig.start();
    const other = await startReceiver();
    let redirects = 1;
    const redirecting = createServer((_request, response) => {
      if (redirects-- > 0) response.writeHead(307, { location: other.url }).end();
      else response.writeHead(204).end();
    });
    await new Promise<void>((resolve) => redirecting.listen(0, '127.0.0.1', resolve));
    const { port } = redirecting.address() as AddressInfo;
    const call = rig.call(`http://127.0.0.1:${port}/`);
    const event = call.failed();

    await notifier.handle([event]);
    await eventually(async () => (await rig.lanesLeft()) === 0, 'nothing is owed');

    expect(other.received).toEqual([]);
    expect((await rig.attempts(event.id)).map((row) => row.response_status)).toEqual([307, 204]);
    redirecting.close();
    redirecting.closeAllConnections();
    await other.close();
  });

  test('a receiver that hangs and one that is unreachable delay no other', async () => {
    const hanging = createServer(() => {
      // Never answers.
    });
    await new Promise<void>((resolve) => hanging.listen(0, '127.0.0.1', resolve));
    const { port } = hanging.address() as AddressInfo;
    const notifier = await rig.start();
    const dead = Array.from({ length: 300 }, () => rig.call(`http://127.0.0.1:${port}/`));
    const gone = Array.from({ length: 300 }, () => rig.call('http://127.0.0.1:1/'));

    await notifier.handle([...dead, ...gone].map((call) => call.failed()));
    const call = rig.call(receiver.url);
    await notifier.handle(personCall(call));
    await receiver.untilEnded(call.identity.callId);

    expect(receiver.accepted()).toHaveLength(4);
    // Its own queue is released when its attempts are stored.
    await eventually(() => notifier.queues() <= 600, 'only those for the two are left');
    hanging.close();
    hanging.closeAllConnections();
  });

  test('a forbidden notification fails at once, with the reason', async () => {
    const notifier = await rig.start({ allowedNetworks: [] });
    const call = rig.call(receiver.url);
    const event = call.failed();

    await notifier.handle([event]);
    await eventually(async () => (await rig.lanesLeft()) === 0, 'nothing is owed');

    expect(receiver.received).toEqual([]);
    expect(await rig.states()).toEqual({ [event.id]: 'failed' });
    expect((await rig.attempts(event.id))[0]?.error).toMatch('not in NOTIFY_ALLOWED_NETWORKS');
  });

  test('notifications that a process still owed at its end are delivered by the next one, in order', async () => {
    const first = await rig.start();
    const calls = Array.from({ length: 50 }, () => rig.call(receiver.url));
    receiver.answerWith(() => 500);
    await first.handle(calls.flatMap((call) => personCall(call)));
    await eventually(() => receiver.received.length > 20, 'attempts are made');
    await rig.stop();

    receiver.answerWith(() => 200);
    await rig.start();
    for (const call of calls) {
      const bodies = await receiver.untilEnded(call.identity.callId);
      expect(bodies.map((body) => body.sequence)).toEqual([1, 2, 3, 4]);
    }
    await eventually(async () => (await rig.lanesLeft()) === 0, 'nothing is owed');
  });

  test('notifications that a lost node was about to send are taken over at the start', async () => {
    const call = rig.call(receiver.url);
    const dying = await rig.start();
    await dying.handle([call.answered()]);
    await eventually(async () => (await rig.lanesLeft()) === 0, 'delivered');
    await rig.stop();
    await database.pool.query(`update notifications set state = 'pending', delivered_at = null`);
    await database.pool.query(
      `insert into notification_lanes (call_id, day, account_id, origin, next_attempt_at, leased_by, leased_until)
       select call_id, day, 'acme', '', now(), 'node-1/killed', now() + interval '30 seconds' from calls where call_id = $1`,
      [call.identity.callId],
    );

    await database.pool.query(
      `insert into nodes (owner_id, node_id, version, started_at, renewed_at, steady_since, lease_until, lost_at, calls, draining, question_key)
       values ('node-1/killed', 'node-1', '1', now(), now(), now(), now(), now(), 0, false, 'k')`,
    );

    await rig.start();
    await eventually(async () => (await rig.lanesLeft()) === 0, 'delivered again');

    expect(receiver.received).toHaveLength(2);
  });

  test('a process without a lease sends nothing that it has in memory; others send it', async () => {
    let isHeld = true;
    const sleeper = await rig.start({
      ...{ nodeId: 'a', pollMs: 1_000_000, gates: { maxActive: 1 } },
      mayDeliver: () => isHeld,
    });
    const arrived: string[] = [];
    const answers: (() => void)[] = [];
    receiver.answerWith(({ callId }) => {
      arrived.push(callId);
      return new Promise((resolve) => answers.push(() => resolve(200)));
    });
    const [first, second] = [rig.call(receiver.url), rig.call(receiver.url)];
    await sleeper.handle([first.answered()]);
    await sleeper.handle([second.answered()]);
    await eventually(() => arrived.length === 1, 'one is under way, the other waits for its place');

    isHeld = false;
    answers[0]?.();
    await eventually(() => sleeper.queues() === 0, 'both are out of its hands');
    expect(arrived).toEqual([first.identity.callId]);

    receiver.answerWith(() => 200);
    await rig.start({ nodeId: 'b' });
    await eventually(() => receiver.of(second.identity.callId).length === 1, 'the other is sent');
    expect(receiver.of(first.identity.callId)).toHaveLength(1);
  });

  test('two nodes share the work and send nothing twice', async () => {
    const nodes = [await rig.start({ nodeId: 'a' }), await rig.start({ nodeId: 'b' })] as const;
    const calls = Array.from({ length: 40 }, () => rig.call(receiver.url));
    const nodeOf = (index: number) => nodes[index % 2 === 0 ? 0 : 1];

    // Each call is taken over by the other node before it ends.
    await Promise.all(calls.map((call, index) => nodeOf(index).handle([call.answered()])));
    await Promise.all(calls.map((call, index) => nodeOf(index + 1).handle([call.completed()])));
    for (const call of calls) await receiver.untilEnded(call.identity.callId);
    await eventually(async () => (await rig.lanesLeft()) === 0, 'nothing is owed');

    expect(receiver.received).toHaveLength(2 * calls.length);
  });
});
