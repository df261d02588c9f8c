// Offhook with trunks.yaml, and carriers' gateways that fail in every way: which gateway finally
// gets the call, what the timeline says about the others, and what happens if the file changes
// while calls are up.

import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type SipEngine, startSipEngine } from '../../src/embedded/drachtio/engine.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { makeSeededDataDir } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { freeUdpPort } from '../support/free-port.ts';
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts';
import { forSuite } from '../support/opened.ts';
import { one, RawCallee } from '../support/raw-callee.ts';
import { startReceiver } from '../support/receiver.ts';
import { type Sipp, startSipp } from '../support/sipp.ts';

type Place = { readonly port: number; readonly transport?: string; readonly priority?: number };
type TimelineEvent = { readonly type: string; readonly data: Readonly<Record<string, unknown>> };

let engine: SipEngine;
let gateway: GatewayProcess;
/** The carriers' gateways. Each test determines what they do. */
const carriers: RawCallee[] = [];
const callees: Sipp[] = [];
let trunksFile = '';
/** A start that must fail. It runs concurrently with the other start to save time. */
let tlsStart: Promise<string>;

function trunk(name: string, places: readonly Place[], more = ''): string {
  const gateways = places.map(
    ({ port, transport = 'udp', priority = 1 }) =>
      `      - { host: 127.0.0.1, port: ${port}, transport: ${transport}, priority: ${priority} }\n`,
  );
  return `  - name: ${name}\n${more}    gateways:\n${gateways.join('')}`;
}

async function writeTrunks(...trunks: readonly string[]): Promise<void> {
  await writeFile(trunksFile, `trunks:\n${trunks.join('')}`);
}

async function reload(logged: string): Promise<void> {
  const before = gateway.output().length;
  gateway.child.kill('SIGHUP');
  await eventually(() => gateway.output().slice(before).includes(logged), `the log says ${logged}`);
}

/** Loads a file with the default trunk and the given trunks. */
async function withTrunk(...trunks: readonly string[]): Promise<void> {
  await writeTrunks(
    trunk('standard', [{ port: carrier(2).port }], '    default: true\n'),
    ...trunks,
  );
  await reload('trunks reloaded');
}

function carrier(index: number): RawCallee {
  const callee = carriers[index];
  if (callee === undefined) throw new Error(`no carrier ${index}`);
  return callee;
}

function dial(more: Record<string, unknown>) {
  return gateway.dialer.dial({ target: 'tel:+15551230001', notifyurl: receiver.url, ...more });
}

async function timelineOf(callId: string): Promise<readonly TimelineEvent[]> {
  const events = async () =>
    ((await gateway.dialer.call(callId)).body as { timeline: readonly TimelineEvent[] }).timeline;
  await eventually(
    async () => (await events()).some(({ type }) => type === 'completed' || type === 'failed'),
    'the timeline is complete',
  );
  return events();
}

async function endOf(callId: string) {
  return (await receiver.untilEnded(callId)).at(-1);
}

async function startWithTls(): Promise<string> {
  const other = await makeSeededDataDir();
  const file = join(other.path, 'trunks.yaml');
  const place = { port: 5061, transport: 'tls' };
  await writeFile(
    file,
    `trunks:\n${trunk('secret', [place], '    tls: { caFile: nowhere.pem }\n')}`,
  );
  const outcome = await startGateway(other.path, { TRUNKS_FILE: file }).then(
    async (started) => {
      await started.terminate();
      return 'it started';
    },
    (error: unknown) => String(error),
  );
  await other.remove();
  return outcome;
}

const dataDir = forSuite(makeSeededDataDir);
const receiver = forSuite(startReceiver);
beforeAll(async () => {
  // With T1 = 50 ms, the 408 after silence comes after 3.2 s instead of 32 s.
  engine = await startSipEngine({
    ...{ sipHost: '127.0.0.1', sipPort: 0, controlHost: '127.0.0.1', controlPort: 0 },
    ...{ secret: 'cymru', timers: { t1Ms: 50 }, logger: silentLogger },
  });
  for (let count = 0; count < 3; count += 1) {
    carriers.push(await RawCallee.start({ dropsRepetitions: true }));
  }
  tlsStart = startWithTls();
  trunksFile = join(dataDir.path, 'trunks.yaml');
  await writeTrunks(trunk('standard', [{ port: carrier(2).port }], '    default: true\n'));
  gateway = await startGateway(dataDir.path, {
    TRUNKS_FILE: trunksFile,
    DRACHTIO_URL: `tcp://:cymru@127.0.0.1:${engine.controlPort}`,
    NOTIFY_ALLOWED_NETWORKS: '127.0.0.0/8',
    RTP_INACTIVITY_TIMEOUT_MS: '60000',
    LOG_LEVEL: 'info',
  });
});

afterEach(async () => {
  await Promise.all(callees.splice(0).map((sipp) => sipp.stop()));
  for (const callee of carriers) callee.inbox.splice(0);
});

afterAll(async () => {
  await gateway.terminate();
  await engine.close();
  for (const callee of carriers) await callee[Symbol.asyncDispose]();
});

describe('a call over a trunk with two gateways', () => {
  async function answering(transport: 'udp' | 'tcp' = 'udp'): Promise<Sipp> {
    const sipp = await startSipp({ scenario: 'answer-remote-bye', transport });
    callees.push(sipp);
    return sipp;
  }

  test.each(['udp', 'tcp'] as const)(
    '503 leads to the next one, which answers over %s',
    async (transport) => {
      const far = await answering(transport);
      const backup = { port: far.port, transport, priority: 2 };
      await withTrunk(trunk('two', [{ port: carrier(0).port }, backup]));

      const { callId } = await dial({ trunk: 'two' });
      carrier(0).reply(await carrier(0).take('INVITE'), 503, 'Service Unavailable');

      expect(await endOf(callId)).toMatchObject({ status: 'completed', outcome: 'completed' });
      const timeline = await timelineOf(callId);
      const failed = {
        gateway: `127.0.0.1:${carrier(0).port}`,
        sipStatus: 503,
        reason: 'Service Unavailable',
        durationMs: expect.any(Number) as number,
      };
      expect(timeline.map(({ type }) => type)).toEqual([
        ...['queued', 'dialing', 'dialing', 'answered', 'completed'],
      ]);
      expect(timeline[1]?.data).toEqual({ trunk: 'two', gateway: failed.gateway, attempt: 1 });
      expect(timeline[2]?.data).toEqual({
        trunk: 'two',
        gateway: `127.0.0.1:${far.port}${transport === 'udp' ? '' : ';transport=tcp'}`,
        attempt: 2,
        failedAttempts: [failed],
      });
      expect(timeline[4]?.data['failedAttempts']).toEqual([failed]);
      expect(await far.exited).toEqual({ code: 0, errors: '' });
    },
  );

  test('486 is the answer of the person, and no other gateway is tried', async () => {
    await withTrunk(
      trunk('two', [{ port: carrier(0).port }, { port: carrier(1).port, priority: 2 }]),
    );

    const { callId } = await dial({ trunk: 'two' });
    carrier(0).reply(await carrier(0).take('INVITE'), 486, 'Busy Here');

    expect(await endOf(callId)).toMatchObject({
      status: 'Failed',
      outcome: 'busy',
      sipStatus: 486,
    });
    expect((await timelineOf(callId)).map(({ type }) => type)).toEqual([
      ...['queued', 'dialing', 'failed'],
    ]);
    expect(carrier(1).inbox).toEqual([]);
  });

  test('silence until the SIP stack gives up leads to the next one', async () => {
    await withTrunk(
      trunk('two', [{ port: carrier(0).port }, { port: carrier(1).port, priority: 2 }]),
    );

    const { callId } = await dial({ trunk: 'two' });
    const unheard = await carrier(0).take('INVITE');
    const invite = await carrier(1).take('INVITE');
    carrier(1).reply(invite, 603, 'Decline');

    expect(await endOf(callId)).toMatchObject({ outcome: 'declined', sipStatus: 603 });
    expect((await timelineOf(callId)).at(-1)?.data['failedAttempts']).toMatchObject([
      { gateway: `127.0.0.1:${carrier(0).port}`, sipStatus: 408 },
    ]);
    expect(one(invite, 'call-id')).not.toBe(one(unheard, 'call-id'));
  });

  test('a port where no server listens leads to the next one', async () => {
    const port = await freeUdpPort();
    await withTrunk(trunk('two', [{ port }, { port: carrier(1).port, priority: 2 }]));

    const { callId } = await dial({ trunk: 'two' });
    carrier(1).reply(await carrier(1).take('INVITE'), 404, 'Not Found');

    expect(await endOf(callId)).toMatchObject({ outcome: 'invalid-number', sipStatus: 404 });
    expect((await timelineOf(callId)).at(-1)?.data['failedAttempts']).toMatchObject([
      { gateway: `127.0.0.1:${port}`, sipStatus: 503 },
    ]);
  });

  test('the last one gives the reason if all of them fail', async () => {
    await withTrunk(
      trunk('two', [{ port: carrier(0).port }, { port: carrier(1).port, priority: 2 }]),
    );

    const { callId } = await dial({ trunk: 'two' });
    carrier(0).reply(await carrier(0).take('INVITE'), 503, 'Overloaded');
    carrier(1).reply(await carrier(1).take('INVITE'), 500, 'Server Internal Error');

    expect(await endOf(callId)).toMatchObject({
      status: 'Failed',
      outcome: 'carrier-failure',
      reason: '500 Server Internal Error',
      reasonCode: 'Service Unavailable',
    });
  });

  test('a hang-up by the application stops the attempts', async () => {
    await withTrunk(
      trunk('two', [{ port: carrier(0).port }, { port: carrier(1).port, priority: 2 }]),
    );

    const { callId } = await dial({ trunk: 'two' });
    const invite = await carrier(0).take('INVITE');
    await gateway.dialer.end(callId);
    expect(await endOf(callId)).toMatchObject({ status: 'Failed', outcome: 'cancelled' });
    carrier(0).reply(invite, 503, 'Service Unavailable');
    await carrier(0).take('ACK');

    expect(carrier(1).inbox).toEqual([]);
  });
});

describe('trunks.yaml while the gateway runs', () => {
  test('the default trunk of the account is used, with the identity that the carrier wants', async () => {
    const own = '    defaultFor: [dev]\n    assertedIdentity: caller\n    fromDomain: a.example\n';
    await withTrunk(trunk('own', [{ port: carrier(0).port }], own));

    const { callId } = await dial({ caller: '15550001' });
    const invite = await carrier(0).take('INVITE');
    carrier(0).reply(invite, 486, 'Busy Here');

    expect(one(invite, 'p-asserted-identity')).toBe('<sip:15550001@a.example>');
    await endOf(callId);
    expect((await timelineOf(callId))[0]?.data).toEqual({ trunk: 'own' });
  });

  test('a trunk of another account is a 400, as if it did not exist', async () => {
    await withTrunk(trunk('closed', [{ port: carrier(0).port }], '    accounts: [somebody]\n'));

    const answer = await gateway.dialer.post({ target: 'tel:+15551230001', trunk: 'closed' });

    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({
      errors: [{ path: 'trunk', message: 'there is no trunk named closed' }],
    });
  });

  test('a new file applies to later calls, and not to calls that are up', async () => {
    await withTrunk(trunk('moving', [{ port: carrier(0).port }]));
    const ringing = await dial({ trunk: 'moving' });
    const invite = await carrier(0).take('INVITE');
    carrier(0).reply(invite, 180, 'Ringing');

    await withTrunk(trunk('moving', [{ port: carrier(1).port }]));
    const later = await dial({ trunk: 'moving' });
    carrier(1).reply(await carrier(1).take('INVITE'), 486, 'Busy Here');
    expect(await endOf(later.callId)).toMatchObject({ outcome: 'busy' });
    carrier(0).reply(invite, 603, 'Decline');

    expect(await endOf(ringing.callId)).toMatchObject({ outcome: 'declined' });
  });

  test('a file with a mistake is refused with the line and the field, and the old file stays in force', async () => {
    await withTrunk(trunk('kept', [{ port: carrier(0).port }]));

    await writeTrunks(trunk('kept', [{ port: carrier(1).port }], '    colour: red\n'));
    await reload('trunks were not reloaded');
    const { callId } = await dial({ trunk: 'kept' });
    carrier(0).reply(await carrier(0).take('INVITE'), 486, 'Busy Here');

    expect(await endOf(callId)).toMatchObject({ outcome: 'busy' });
    expect(gateway.output()).toMatch(/trunks\.yaml:2: trunks\[0\]: [^\n]*colour/);
  });

  test('a file that cannot be read is refused with the system error', async () => {
    await withTrunk(trunk('kept', [{ port: carrier(0).port }]));
    await rm(trunksFile);
    // Root may read any file, but not a folder.
    await mkdir(trunksFile);
    onTestFinished(() => rm(trunksFile, { recursive: true, force: true }));

    await reload('trunks were not reloaded');

    expect(gateway.output()).toMatch(/TRUNKS_FILE cannot be read: [^\n]*EISDIR/);
  });

  test('a gateway that answers OPTIONS with 503 is down in the metrics', async () => {
    const health = '    health: { intervalS: 1, failThreshold: 1, recoverThreshold: 1 }\n';
    await withTrunk(trunk('asked', [{ port: carrier(0).port }], health));
    const labels = `trunk="asked",gateway="127.0.0.1:${carrier(0).port}"`;
    const metrics = async () => (await fetch(`${gateway.runtime.httpUrl}/metrics`)).text();
    // The gateway does not send OPTIONS to the other trunk.
    const unasked = `trunk="standard",gateway="127.0.0.1:${carrier(2).port}"`;

    carrier(0).reply(await carrier(0).take('OPTIONS'), 503, 'Service Unavailable');

    await eventually(
      async () => (await metrics()).includes(`offhook_gateway_up{${labels}} 0`),
      'the gateway is down',
    );
    expect(await metrics()).toContain(`offhook_gateway_up{${unasked}} 1`);
    await eventually(
      () => gateway.output().includes('gateway is down'),
      'the log says that the gateway is down',
    );
  });
});

describe('a start with a trunk that cannot be used', () => {
  test('because its CA file is missing fails with the name of the field', async () => {
    expect(await tlsStart).toMatch(
      /trunks\.yaml:\d: trunks\[0\]\.tls\.caFile: cannot be read: ENOENT/,
    );
  });
});
