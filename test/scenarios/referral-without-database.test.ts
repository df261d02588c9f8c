// A referral that is not permitted in time, because PostgreSQL does not answer. The transfer fails
// within its time-out, the bot hears the person again, and no REFER is sent when PostgreSQL is
// back.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { openTestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import type { GatewayProcess } from '../support/gateway-process.ts';
import { forSuite } from '../support/opened.ts';
import { ScriptedBot } from '../support/streams/scripted-bot.ts';
import { StreamCallee } from '../support/streams/stream-callee.ts';
import { speech } from '../support/streams/stream-rig.ts';
import { layDatabaseWire, through, type Wire } from '../support/wire.ts';

const timeoutMs = 2_000;

let cluster: Cluster;
let wire: Wire;
let gateway: GatewayProcess;
const database = forSuite(() => openTestDatabase('postgres'));
beforeAll(async () => {
  const databaseUrl = database.location.databaseUrl ?? '';
  cluster = await startCluster({ databaseUrl });
  // With this limit the gateway counts the calls of the day in SQL each time, so the permission is
  // never cached.
  await database.pool.query(`update apps set limits = '{"callsPerDay": 100}'`);
  wire = await layDatabaseWire(databaseUrl);
  gateway = await cluster.startNode('a', {
    DATABASE_URL: through(databaseUrl, wire),
    SIP_ALLOWED_NETWORKS: '127.0.0.0/8',
  });
});
afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
  await wire.close();
});

type Timeline = { readonly timeline: readonly { readonly type: string; readonly data: unknown }[] };

test('fails in time, gives the person back to the bot, and sends no REFER afterwards', async () => {
  await using bot = await ScriptedBot.start();
  const { callee: person, placed } = await StreamCallee.called((target) =>
    gateway.dialer.dial({
      ...{ target, machineDetection: 'disabled', stream: { url: bot.url } },
      bridge: { to: 'sip:agents@pbx.example', mode: 'refer', on: 'answered', timeoutMs },
    }),
  );
  await using _person = person;
  const failure = async () => {
    const { body } = await gateway.dialer.call(placed.callId);
    return (body as Timeline).timeline.find(({ type }) => type === 'transfer-failed');
  };
  wire.muteSenderOf('app_usage');
  await person.answer();
  const connection = await bot.connection();
  await eventually(async () => (await failure()) !== undefined, 'the transfer fails');

  expect(await failure()).toMatchObject({
    data: { mode: 'refer', outcome: 'gateway-failure', reason: 'No permission in time' },
  });
  await eventually(
    () => connection.texts.some((text) => text.includes('"transfer-failed"')),
    'the bot is notified',
  );
  const said = speech(8_000);
  const heardFrom = connection.heard.length;
  await person.speak(said);
  const isHeard = () => connection.heard.subarray(heardFrom).includes(said.subarray(4_000, 4_160));
  await eventually(isHeard, 'the bot hears the person again');

  wire.heal();
  const tries = () => gateway.output().split('a second leg is not admitted yet').length - 1;
  await eventually(() => tries() === 1, 'the only attempt to get permission ends');
  await gateway.dialer.end(placed.callId);
  await person.isHungUp();
  expect(person.isBeingReferred).toBe(false);
  expect(tries()).toBe(1);
});
