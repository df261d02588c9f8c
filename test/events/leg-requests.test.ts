// A node asks the others to end a leg, over a real nats-server.

import { expect, onTestFinished, test } from 'vitest';
import type { LegEndResult, StoredLeg } from '../../src/calls/contract/stored-leg.ts';
import type { EventConnection } from '../../src/events/connection.ts';
import { requestLegEnd, serveLegRequests } from '../../src/events/node-requests.ts';
import { legSubject } from '../../src/events/subjects.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { startTestNats } from '../support/nats.ts';
import { forSuite } from '../support/opened.ts';
import { storedLeg } from '../support/scripted-call.ts';

const nats = forSuite(startTestNats);

async function serve(connection: EventConnection, result: LegEndResult): Promise<StoredLeg[]> {
  const ended: StoredLeg[] = [];
  const server = serveLegRequests(
    connection,
    async (leg) => {
      ended.push(leg);
      return result;
    },
    silentLogger,
  );
  onTestFinished(() => server.stop());
  await connection.nats.flush();
  return ended;
}

test('one node receives the complete leg, and its result comes back', async () => {
  const connection = await nats.connect();
  const ended = [await serve(connection, 'ended'), await serve(connection, 'ended')];
  const leg = { ...storedLeg, dialogId: 'dialog-1', routeSet: ['sip:proxy;lr'], inviteCseq: 10 };

  expect(await requestLegEnd(connection, leg)).toBe('ended');
  expect(ended.flat()).toEqual([leg]);
});

test('the leg is unreachable if there is no other node', async () => {
  expect(await requestLegEnd(await nats.connect(), storedLeg)).toBe('unreachable');
});

test('a request without a valid leg ends nothing', async () => {
  const connection = await nats.connect();
  const ended = await serve(connection, 'ended');

  connection.nats.publish(legSubject(connection.prefix), '{"engine":1}');
  connection.nats.publish(legSubject(connection.prefix), 'nonsense');
  expect(await requestLegEnd(connection, storedLeg)).toBe('ended');

  expect(ended).toEqual([storedLeg]);
});
