// Commands through a node that does not own the call: the owner runs each command once, whichever
// node gets a repetition.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { openTestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { numberFor } from '../support/far-end.ts';
import type { GatewayProcess } from '../support/gateway-process.ts';
import { isTerminal } from '../support/receiver.ts';
import { ScriptedBot } from '../support/streams/scripted-bot.ts';
import { makeWav } from '../support/wav.ts';

type Details = {
  readonly state: string;
  readonly timeline: readonly { readonly type: string; readonly data: Record<string, unknown> }[];
};

let database: Awaited<ReturnType<typeof openTestDatabase>>;
let cluster: Cluster;
let nodes: readonly GatewayProcess[];
beforeAll(async () => {
  database = await openTestDatabase('postgres');
  cluster = await startCluster({
    databaseUrl: database.location.databaseUrl ?? '',
  });
  nodes = await Promise.all(['a', 'b'].map((name) => cluster.startNode(name)));
}, 120_000);
afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
  await database.remove();
});

async function ownerOf(callId: string): Promise<string> {
  const { rows } = await database.pool.query<{ owner_id: string }>(
    'select owner_id from calls where call_id = $1',
    [callId],
  );
  return rows[0]?.owner_id ?? '';
}

/**
 * Starts a node that has reached its limit of calls, so another node takes each call that it
 * accepts.
 */
async function oneCallAtOnce() {
  const node = await cluster.startNode('full', { MAX_CONCURRENT_CALLS: '1' });
  const callId = await callOwnedBy(node, /^full\//);
  return {
    node,
    [Symbol.asyncDispose]: async () => {
      await endCall(node, callId);
      await node.terminate();
    },
  };
}

/**
 * Dials through `node` until `node` itself takes the call. Any node may take a queued call. On a
 * loaded machine, the sweep of another node is sometimes faster.
 */
async function callOwnedBy(node: GatewayProcess, owner: RegExp): Promise<string> {
  for (let tries = 0; tries < 10; tries += 1) {
    const { callId } = await node.dialer.dial({
      ...{ target: `tel:+${numberFor('stay', 0, 20 + tries)}`, notifyurl: cluster.receiver.url },
    });
    await eventually(() => cluster.receiver.of(callId).length > 0, 'the call is up');
    if (owner.test(await ownerOf(callId))) return callId;
    await endCall(node, callId);
  }
  throw new Error('another node took each of 10 calls');
}

async function endCall(node: GatewayProcess, callId: string): Promise<void> {
  await node.dialer.end(callId);
  await eventually(() => cluster.receiver.of(callId).some(isTerminal), 'the call has ended');
}

/** Dials a call and waits until it is up. Returns it with its owner and the other node. */
async function answeredCall(index: number) {
  const [first] = nodes;
  if (first === undefined) throw new Error('no node');
  const number = numberFor('stay', 0, index);
  const notifyurl = cluster.receiver.url;
  const { callId } = await first.dialer.dial({ target: `tel:+${number}`, notifyurl });
  const details = async () => {
    const { body } = await other.dialer.call(callId);
    return body as Details;
  };
  await eventually(
    () => cluster.receiver.of(callId).length > 0,
    'the call is up and its answer is notified',
  );
  const isFirst = (await ownerOf(callId)).startsWith('a/');
  const [owner, other] = (isFirst ? nodes : [...nodes].reverse()) as [
    GatewayProcess,
    GatewayProcess,
  ];
  const path = `/api/public/bot/${other.dialer.botId}/calls/${callId}/commands`;
  const send = async (node: GatewayProcess, command: object, key: string) => {
    const answer = await node.dialer.request('POST', path, command, { 'idempotency-key': key });
    return { status: answer.status, body: answer.body as Readonly<Record<string, unknown>> };
  };
  /**
   * Repeats a command under its key if the owner of the call did not answer in time, as the page on
   * commands allows.
   */
  const sendUntilAnswered = async (...sent: Parameters<typeof send>) => {
    let answer = await send(...sent);
    await eventually(async () => {
      if (answer.status === 503) answer = await send(...sent);
      return answer.status !== 503;
    }, 'the command is answered');
    return answer;
  };
  const eventsOfCommand = async (type: string, commandId: string) =>
    (await details()).timeline.filter(
      (event) => event.type === type && event.data['commandId'] === commandId,
    );
  return { callId, owner, other, send, sendUntilAnswered, eventsOfCommand };
}

describe('a command through another node', () => {
  test('runs once, and each node answers a repetition alike', async () => {
    const {
      callId,
      owner,
      other,
      sendUntilAnswered: send,
      eventsOfCommand,
    } = await answeredCall(1);
    await owner.dialer.addSound('offer', makeWav({ samples: [new Int16Array(800).fill(500)] }));
    await using first = await ScriptedBot.start();
    await using second = await ScriptedBot.start();
    const busy = numberFor('busy', 0, 1);
    const cases = [
      [{ command: 'play', sound: 'sound:offer' }, 'playback-finished'],
      [{ command: 'dtmf', digits: '4#' }, 'dtmf-sent'],
      [{ command: 'stream', url: first.url }, 'stream-started'],
      [{ command: 'stream', url: second.url }, 'stream-started'],
      [{ command: 'stream', url: null }, undefined],
      [{ command: 'transfer', to: `tel:+${busy}`, onFailure: 'stay' }, 'transfer-failed'],
      [{ command: 'stop' }, undefined],
    ] as const;

    for (const [index, [command, result]] of cases.entries()) {
      const key = `${command.command}-${index}`;
      const answer = await send(other, command, key);
      expect(answer).toEqual({
        status: 202,
        body: { ok: true, commandId: key, state: 'answered' },
      });
      if (result !== undefined) {
        await eventually(
          async () => (await eventsOfCommand(result, key)).length > 0,
          `${key}: ${result}`,
        );
      }
      expect(await send(owner, command, key)).toEqual(answer);
      expect(await send(other, command, key)).toEqual(answer);
      if (result !== undefined) expect(await eventsOfCommand(result, key)).toHaveLength(1);
    }
    expect([first.connections.length, second.connections.length]).toEqual([1, 1]);
    expect(cluster.farEnd.calls.filter(({ number }) => number === busy)).toHaveLength(1);
    expect(await send(other, { command: 'stop' }, 'play-0')).toMatchObject({ status: 409 });

    expect(await send(other, { command: 'hangup' }, 'bye')).toMatchObject({
      ...{ status: 202, body: { state: 'ending' } },
    });
    await eventually(() => cluster.receiver.of(callId).some(isTerminal), 'the call has ended');
    for (const node of [owner, other]) {
      expect(await send(node, { command: 'hangup' }, 'bye')).toMatchObject({ status: 409 });
    }
  }, 120_000);

  test('a call that another node takes also keeps the maximum duration of its request', async () => {
    await using full = await oneCallAtOnce();
    const maxDurationMs = 1_500;
    const { callId } = await full.node.dialer.dial({
      ...{ target: `tel:+${numberFor('stay', 0, 12)}`, maxDurationMs },
      notifyurl: cluster.receiver.url,
    });
    await eventually(() => cluster.receiver.of(callId).some(isTerminal), 'the call has ended');

    expect(cluster.receiver.of(callId).at(-1)).toMatchObject({
      ...{ outcome: 'completed', reason: 'Maximum call duration reached' },
    });
    expect(await ownerOf(callId)).not.toMatch(/^full\//);
  }, 120_000);

  test('a suppression cancels the ringing calls of all nodes before it is answered', async () => {
    await using full = await oneCallAtOnce();
    const number = numberFor('later-stay', 60, 1);
    const { dialer } = full.node;
    // `full` has no room for them, so they ring on the other nodes.
    const calls = await Promise.all(
      [1, 2, 3].map(async () => {
        const { callId } = await dialer.dial({
          ...{ target: `tel:+${number}`, notifyurl: cluster.receiver.url },
        });
        return callId;
      }),
    );
    const ringing = () => cluster.farEnd.calls.filter((call) => call.number === number);
    await eventually(() => ringing().length === calls.length, 'the phone rings');

    const { status, body } = await dialer.request(
      'PUT',
      `/api/public/suppressions/${encodeURIComponent(`+${number}`)}`,
      { reason: 'opt-out', source: 'test' },
    );

    expect(ringing().filter(({ endedAt }) => endedAt === undefined)).toEqual([]);
    expect(status).toBe(200);
    expect(body).not.toHaveProperty('left');
    for (const callId of calls) {
      await eventually(() => cluster.receiver.of(callId).some(isTerminal), 'the call has ended');
      expect(cluster.receiver.of(callId).at(-1)).toMatchObject({
        ...{ outcome: 'not-permitted', rule: 'suppressed' },
      });
      expect(await ownerOf(callId)).not.toMatch(/^full\//);
    }
  }, 120_000);

  test('is a 503 while the owner of the call is gone, and a 409 after another node has ended the call', async () => {
    const { callId, owner, other, send } = await answeredCall(2);
    await owner.kill();

    expect(await send(other, { command: 'dtmf', digits: '1' }, 'late')).toMatchObject({
      status: 503,
    });
    // End the lease of the killed node.
    await database.pool.query(
      `update nodes set lease_until = now() - interval '1 second' where owner_id in (
         select owner_id from calls where call_id = $1)`,
      [callId],
    );
    await eventually(
      () => cluster.receiver.of(callId).some(isTerminal),
      'the other node has ended the call',
    );
    expect(await send(other, { command: 'dtmf', digits: '1' }, 'late')).toMatchObject({
      ...{ status: 409, body: { detail: 'The call has ended.' } },
    });
  }, 120_000);
});
