// A node shows a call of another node, over a real nats-server.

import { expect, onTestFinished, test } from 'vitest';
import type { CallId } from '../../src/calls/contract/identity.ts';
import type { EventConnection } from '../../src/events/connection.ts';
import { requestCapture, serveCaptureRequests } from '../../src/events/node-requests.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { eventually } from '../support/eventually.ts';
import { startTestNats } from '../support/nats.ts';
import { forSuite } from '../support/opened.ts';

const callId = 'call-1' as CallId;
const view = { sip: { messages: [], left: 0 } };

const nats = forSuite(startTestNats);

async function serve(
  connection: EventConnection,
  ownerId: string,
  viewOf: (id: CallId) => Promise<unknown>,
) {
  const server = serveCaptureRequests(connection, ownerId, viewOf, silentLogger);
  onTestFinished(() => server.stop());
  await connection.nats.flush();
}

/** The requester waits for two seconds. A busy machine may stand still for that long. */
async function answerOf(connection: EventConnection, ownerId: string, id: CallId) {
  let answer: unknown;
  await eventually(async () => {
    answer = await requestCapture(connection, ownerId, id);
    return answer !== undefined;
  }, `an answer of ${ownerId}`);
  return answer;
}

test('the owner replies with what it has, whatever characters its name contains', async () => {
  const connection = await nats.connect();
  await serve(connection, 'gw-1.example.com/a b', async (id) => (id === callId ? view : undefined));
  await serve(connection, 'gw-2.example.com/a b', async () => ({ other: true }));

  expect(await answerOf(connection, 'gw-1.example.com/a b', callId)).toEqual(view);
  expect(await answerOf(connection, 'gw-1.example.com/a b', 'call-2' as CallId)).toBeNull();
});

test('returns undefined if the owner is gone or fails', async () => {
  const connection = await nats.connect();
  await serve(connection, 'fails', async () => {
    throw new Error('no');
  });

  expect(await requestCapture(connection, 'gone', callId)).toBeUndefined();
  expect(await requestCapture(connection, 'fails', callId)).toBeUndefined();
});
