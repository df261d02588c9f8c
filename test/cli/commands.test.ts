// Tests the `offhook` command as people run it, against a gateway with all embedded parts.

import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listCalls, showCall, showContext } from '../../src/cli/calls/calls-command.ts';
import { stopPlaying } from '../../src/cli/calls/live-commands.ts';
import type { CliContext } from '../../src/cli/cli-context.ts';
import { listNotifications, replayNotifications } from '../../src/cli/notifications-command.ts';
import { seedPglite } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { startReceiver } from '../support/receiver.ts';
import { ticksLateOf, undisturbed } from '../support/undisturbed.ts';
import { printedBy, type Running, removeFolder, run, temporaryFolder } from './support.ts';

let folder: string;
beforeAll(async () => {
  folder = await temporaryFolder();
});
afterAll(() => removeFolder(folder));

const offhook = (args: readonly string[], dataDir = folder) =>
  run('cli', args, { DATA_DIR: dataDir, LOG_LEVEL: 'warn' });

type Command = (context: CliContext) => Promise<void>;

/** Runs a command in this process, which saves the half second that a new process takes. */
const within = (command: Command) => printedBy({ DATA_DIR: folder }, command);

describe('without a gateway', () => {
  test.each([
    [['token']],
    [['call', 'person']],
    [['listen']],
    [['calls']],
    [['context', 'call-1']],
  ])('%j explains how to start one', async (args) => {
    const { code, err } = await offhook(args, join(folder, 'nothing')).finished;

    expect(code).toBe(1);
    expect(err).toBe('offhook: Offhook is not running here. Start it with: npm start\n');
  });

  test.each([
    ['apps list'],
    ['apps create --name crm --account acme'],
    ['bots list'],
    ['tables list'],
    ['nodes'],
    ['token --app app-1'],
    ['calls --app app-1'],
  ])('%s reports it, and leaves no files behind', async (command) => {
    const elsewhere = join(folder, 'elsewhere');
    const { code, out, err } = await offhook(command.split(' '), elsewhere).finished;

    expect([code, out]).toEqual([1, '']);
    expect(err).toMatch(/^offhook: Offhook is not running here\. Start it with: npm start\n/);
    expect(err).toContain(`DATA_DIR (here ${elsewhere})`);
    expect(existsSync(elsewhere)).toBe(false);
  });

  test('a gateway reports a media address that its machine does not have', async () => {
    await seedPglite(join(folder, 'media'));
    const { code, err } = await run('main', [], {
      DATA_DIR: join(folder, 'media'),
      HTTP_PORT: '0',
      SIP_PORT: '0',
      MEDIA_HOST: '192.0.2.1',
    }).finished;

    expect(code).toBe(1);
    expect(err).toMatch(
      /^offhook: MEDIA_HOST: 192.0.2.1 cannot be listened on: this machine has no such address/,
    );
  });

  test('a gateway that waits for its database ends soon after a signal', async () => {
    const gateway = run('main', [], {
      DATA_DIR: join(folder, 'waiting'),
      HTTP_PORT: '0',
      SIP_PORT: '0',
      DATABASE_URL: 'postgres://127.0.0.1:1/none',
      SECRETS_KEY: '0'.repeat(64),
    });
    while (!(await gateway.line()).includes('waiting for the database'));

    gateway.process.kill('SIGTERM');
    gateway.process.kill('SIGINT');

    const { code, out } = await gateway.finished;
    expect(code).toBe(1);
    expect(out).toContain('ending at once');
  });

  test('sip-engine prints where it listens, serves, and ends on a signal', async () => {
    const engine = offhook(['sip-engine', '--sip-port', '0', '--control-port', '0']);
    const { drachtioUrl, sipUri, pid } = JSON.parse(await engine.line()) as Record<string, string>;

    expect(drachtioUrl).toMatch(/^tcp:\/\/:[0-9a-f]{48}@127\.0\.0\.1:\d+$/);
    expect(sipUri).toMatch(/^sip:127\.0\.0\.1:\d+$/);
    expect(pid).toBe(engine.process.pid);
    engine.process.kill('SIGTERM');
    expect((await engine.finished).code).toBe(0);
  });

  test('listen with --secret needs no gateway', async () => {
    const listener = offhook(['listen', '--port', '0', '--secret', 'whsec_x', '--json']);
    let err = '';
    listener.process.stderr?.on('data', (chunk: string) => {
      err += chunk;
    });
    await eventually(() => err.includes('listening on'), 'the listener listens');
    const url = /http:\S+(?=;)/.exec(err)?.[0] ?? '';

    const response = await fetch(url, { method: 'POST', body: '{"a":1}' });

    expect(response.status).toBe(401);
    expect(JSON.parse(await listener.line())).toMatchObject({
      type: 'notification',
      rawBody: '{"a":1}',
      verified: false,
      reason: 'missing-header',
    });
    listener.process.kill('SIGINT');
    expect((await listener.finished).code).toBe(0);
  });
});

describe('with a gateway', () => {
  let gateway: Running;
  beforeAll(async () => {
    await seedPglite(folder);
    gateway = run('main', [], {
      DATA_DIR: folder,
      HTTP_PORT: '0',
      SIP_PORT: '0',
      LOG_LEVEL: 'warn',
    });
    await eventually(
      () =>
        readFile(join(folder, 'runtime.json')).then(
          () => true,
          () => false,
        ),
      'the gateway is up',
      50_000,
    );
  });
  afterAll(async () => {
    gateway.process.kill('SIGTERM');
    await gateway.finished;
  });

  test('token prints a JWT of the dev app', async () => {
    const { out } = await offhook(['token', '--ttl', '5m']).finished;

    const claims = decodeJwt(out.trim());
    expect(claims['appId']).toBe('app-dev');
    expect((claims.exp ?? 0) - (claims.iat ?? 0)).toBe(300);
  });

  test('apps are created and listed through the gateway, and get tokens', async () => {
    const wanted = ['--name', 'crm', '--account', 'acme', '--jwt-algorithm', 'HS384'];
    const created = await offhook(['apps', 'create', ...wanted]).finished;
    const { appId } = JSON.parse(created.out) as { appId: string };
    const rotated = await offhook(['apps', 'rotate', appId, 'api-key', '--grace', '7d']).finished;
    const listed = await offhook(['apps', 'list', '--json']).finished;
    const token = await offhook(['token', '--app', appId]).finished;

    const ids = listed.out
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { appId: string }).appId);
    expect(ids).toEqual(['app-dev', appId]);
    expect(decodeJwt(token.out.trim())['appId']).toBe(appId);
    expect(decodeProtectedHeader(token.out.trim()).alg).toBe('HS384');
    expect(JSON.parse(rotated.out)).toMatchObject({
      appId,
      apiKey: expect.stringMatching(/^ofk_/) as string,
    });
  });

  test('call and notifications act for the named app', async () => {
    const created = await offhook(['apps', 'create', '--name', 'n', '--account', 'other']).finished;
    const { appId } = JSON.parse(created.out) as { appId: string };

    const call = await offhook(['call', 'busy', '--follow', '--app', appId]).finished;

    expect(call.out).toMatch(/ended: busy \(486 Busy Here, Busy here\)\n$/);
    const { callId } = JSON.parse(call.out.split('\n')[0] ?? '') as { callId: string };
    const own = await offhook(['notifications', 'list', callId, '--app', appId]).finished;
    expect(own.err).toBe('No notification yet, or no notify URL.\n');
    const foreign = await offhook(['notifications', 'list', callId]).finished;
    expect(foreign.err).toBe('offhook: 404: There is no such call.\n');
  });

  test('call --follow prints the events and notifications of the call until it ends', async () => {
    const { code, out, err } = await offhook(['call', 'busy', '--follow']).finished;

    expect(err).toBe('');
    expect(code).toBe(0);
    expect(out).toMatch(/dialing +by sandbox/);
    expect(out).toMatch(/notified +#1 Failed +486 Busy Here, Busy here, busy +✓ signed/);
    expect(out).toMatch(/ended: busy \(486 Busy Here, Busy here\)\n$/);
    const { callId } = JSON.parse(out.split('\n')[0] ?? '') as { callId: string };
    // The gateway stores the receiver's answer a little later.
    const listed = async () =>
      (await within((context) => listNotifications(context, callId, {}))).out;
    await eventually(async () => /^#1 Failed {2}delivered/.test(await listed()), 'it is delivered');
    const notifications = await offhook(['notifications', 'list', callId]).finished;
    expect(notifications.out).toMatch(/^#1 Failed {2}delivered/);
  });

  test('a call is found by its id, whatever its bot', async () => {
    const placed = await offhook(['call', 'busy', '--bot', 'sales-bot', '--follow']).finished;
    const { callId } = JSON.parse(placed.out.split('\n')[0] ?? '') as { callId: string };

    const calls = await within((context) => listCalls(context, { limit: '50' }));
    const shown = await offhook(['calls', 'show', callId]).finished;
    const json = await within((context) => showCall(context, callId, { json: true }));
    const stored = await within((context) => showContext(context, callId, {}));
    const sent = async () =>
      (await within((context) => listNotifications(context, callId, {}))).out;

    const line = new RegExp(
      String.raw`^\S+Z  ${callId}  sales-bot  tel:\+12025550130  failed  busy \(486 Busy Here\)$`,
      'm',
    );
    expect(calls.out).toMatch(line);
    expect(shown.out).toMatch(line);
    expect(shown.out).toMatch(/failed {5}486 Busy Here, Busy here\n$/);
    expect(JSON.parse(json.out)).toMatchObject({ callId, botId: 'sales-bot', outcome: 'busy' });
    expect(JSON.parse(stored.out)).toMatchObject({ session: {}, metadata: {} });
    await eventually(async () => /^#1 Failed {2}delivered/.test(await sent()), 'it is delivered');
    const ofBot = await offhook(['calls', '--bot', 'other-bot']).finished;
    expect([ofBot.code, ofBot.out, ofBot.err]).toEqual([0, '', 'No calls.\n']);
  });

  test('calls are filtered, printed as CSV, and summed up', async () => {
    const dial = ['call', 'busy', '--bot', 'csv-bot', '--campaign', 'spring', '--follow'];
    const placed = await offhook([...dial, '--metadata', '{"order":17}']).finished;
    const { callId } = JSON.parse(placed.out.split('\n')[0] ?? '') as { callId: string };
    const list = async (...options: string[]) =>
      (await offhook(['calls', '--bot', 'csv-bot', '--csv', ...options]).finished).out.trim();

    const [header, line, ...others] = (
      await list('--number', '+12025550130', '--metadata', 'order=17', '--outcome', 'busy')
    ).split('\n');
    const another = await list('--campaign', 'autumn');
    const summary = await offhook(['calls', 'summary', '--bot', 'csv-bot']).finished;
    const callers = await offhook(['calls', 'callers', '--bot', 'csv-bot']).finished;

    expect(header).toMatch(/^acceptedAt,callId,/);
    expect(line).toContain(`,${callId},csv-bot,tel:+12025550130,`);
    expect(others).toEqual([]);
    expect(another).toBe(header);
    expect(summary.out).toMatch(/^total +1 +0 +0 +0 +0\.00$/m);
    expect(summary.out).toMatch(/^outcomes: busy 1$/m);
    expect(callers.out).toMatch(/^\d+ +1 +0 +0 +0\.0%$/m);
  });

  test('every command accepts the beginning of an id', async () => {
    const placed = await offhook(['call', 'person-stays', '--amd', 'detect']).finished;
    const { callId } = JSON.parse(placed.out) as { callId: string };
    const start = callId.slice(0, 13);
    const show = async (text: string) =>
      JSON.parse((await within((context) => showCall(context, text, { json: true }))).out) as {
        callId: string;
        state: string;
        verdict?: string;
      };
    await eventually(async () => (await show(start)).verdict !== undefined, 'a verdict');

    expect((await show(start.slice('call-'.length))).callId).toBe(callId);
    const stored = await within((context) => showContext(context, start, {}));
    expect(JSON.parse(stored.out)).toMatchObject({ session: {} });
    const notified = await within((context) => listNotifications(context, start, {}));
    expect(notified.notes).toBe('No notification yet, or no notify URL.');
    const up = await within((context) => listCalls(context, { limit: '1' }));
    expect(up.out).toMatch(/ {2}answered {2}person, \d+\.\d s so far$/);
    const ended = await offhook(['calls', 'hangup', start]).finished;
    expect(ended.out).toMatch(/^hanging up \(cmd-/);
    await eventually(async () => (await show(start)).state === 'ended', 'it ends');
    const over = await within((context) => listCalls(context, { limit: '1' }));
    expect(over.out).toMatch(/ {2}completed {2}person, \d+\.\d s {2}\(200 OK\)$/);
  });

  test('an unknown or too short beginning of an id is an error', async () => {
    const none = (context: CliContext) => showCall(context, 'call-ffffffff-ffff', {});

    await expect(within(none)).rejects.toThrow(
      'There is no call whose id begins with call-ffffffff-ffff.',
    );
    await expect(within((context) => showCall(context, '0d9', {}))).rejects.toThrow(
      '"0d9" is too short. Give at least the first 4 characters of the id.',
    );
  });

  test('dead letters are replayed by the beginning of their id', async () => {
    const gone = await startReceiver();
    gone.answerWith(() => 410);
    const placed = await offhook(['call', 'busy', '--notify', gone.url]).finished;
    const { callId } = JSON.parse(placed.out) as { callId: string };
    const listed = async () =>
      (await within((context) => listNotifications(context, callId, {}))).out;
    await eventually(async () => (await listed()).includes('failed (gone)'), 'it is given up');

    // Without a call, the command lists dead letters, as README.md says.
    const letters = await offhook(['notifications']).finished;
    expect(letters.out).toContain(`${callId}  dev-bot  #1 Failed  gone`);

    const event = `evt-${callId.slice(5, 17)}`;
    const replayed = await within((context) => replayNotifications(context, event, {}));

    expect(JSON.parse(replayed.out)).toMatchObject({ eventId: `evt-${callId.slice(5)}-end` });
    await gone.close();
  });

  test('an app is named by the beginning of its id', async () => {
    const created = await offhook(['apps', 'create', '--name', 'p', '--account', 'acme']).finished;
    const { appId } = JSON.parse(created.out) as { appId: string };

    const token = await offhook(['token', '--app', appId.slice(0, 12)]).finished;
    const revoked = await offhook(['apps', 'revoke', appId.slice(4, 12)]).finished;

    expect(decodeJwt(token.out.trim())['appId']).toBe(appId);
    expect(revoked.err).toBe(`Every gateway refuses ${appId} within 5 seconds.\n`);
  });

  const unknown = 'call-00000000-0000-4000-8000-000000000000';
  const unknownEvent = 'evt-00000000-0000-4000-8000-000000000000-end';
  test.each<[string, Command]>([
    ['calls show', (context) => showCall(context, unknown, {})],
    ['context', (context) => showContext(context, unknown, {})],
    ['notifications list', (context) => listNotifications(context, unknown, {})],
    ['notifications list nonsense', (context) => listNotifications(context, 'nonsense', {})],
    [
      'notifications replay --call',
      (context) => replayNotifications(context, undefined, { call: unknown }),
    ],
    ['notifications replay', (context) => replayNotifications(context, unknownEvent, {})],
    ['notifications replay nonsense', (context) => replayNotifications(context, 'nonsense', {})],
  ])('an unknown id is an error: %s', async (_what, command) => {
    await expect(within(command)).rejects.toThrow('404: There is no such call.');
  });

  const ticksLate = async (): Promise<number> => {
    const runtime = await readFile(join(folder, 'runtime.json'), 'utf8');
    return await ticksLateOf(JSON.parse(runtime) as { httpUrl: string });
  };

  test('call sends metadata, headers, timers and the threshold', async () => {
    await undisturbed(ticksLate, async () => {
      const receiver = await startReceiver();
      const options = ['--metadata', '{"customer":"4711"}', '--header', 'X-Campaign: spring:1'];
      const detection = ['--amd', 'detect', '--threshold-word-count', '1'];
      const timers = ['--timer', 'toneTimeoutMs=500', '--timer', 'noSpeechTimeoutMs=4000'];
      const args = [
        'call',
        'person',
        '--notify',
        receiver.url,
        ...options,
        ...detection,
        ...timers,
      ];
      try {
        const placed = await offhook(args).finished;
        const { callId } = JSON.parse(placed.out) as { callId: string };
        const told = await receiver.untilEnded(callId, 30_000);
        const context = await offhook(['context', callId]).finished;

        expect(JSON.parse(context.out)).toMatchObject({ metadata: { customer: '4711' } });
        expect(receiver.received.map(({ headers }) => headers['x-campaign'])).toEqual(
          told.map(() => 'spring:1'),
        );
        // This rule takes one word for a machine, so "Hello?" is a machine.
        expect(told.at(-1)).toMatchObject({ machineDetection: 'amd_machine_detected' });
      } finally {
        await receiver.close();
      }
    });
  }, 180_000);

  test('Ctrl-C hangs up, and the end is still printed', async () => {
    const call = offhook(['call', 'person-stays', '--follow']);
    let line = '';
    while (!/^\S+ +answered/.test(line)) line = await call.line();

    call.process.kill('SIGINT');

    const { code, out, err } = await call.finished;
    expect(code).toBe(0);
    expect(err).toContain('hanging up');
    expect(out).toMatch(/ended: completed \(200 OK, Bot-disconnected\)\n$/);
  });

  test('commands play to a call, press keys, transfer it and hang it up', async () => {
    const placed = await offhook(['call', 'person-stays']).finished;
    const { callId } = JSON.parse(placed.out) as { callId: string };
    const timeline = async () => (await within((context) => showCall(context, callId, {}))).out;
    await eventually(async () => (await timeline()).includes('answered'), 'it is answered');

    const pressed = await offhook(['calls', 'dtmf', callId, '4711#', '--id', 'pin']).finished;
    const again = await offhook(['calls', 'dtmf', callId, '4711#', '--id', 'pin']).finished;
    await eventually(async () => (await timeline()).includes('dtmf-sent'), 'the keys are pressed');
    expect([pressed.err, pressed.out]).toEqual(['', 'pressing keys (pin)\n']);
    expect(again.out).toBe(pressed.out);
    const stopped = await within((context) => stopPlaying(context, callId, {}));
    expect(stopped.out).toMatch(/^stopped \(cmd-/);
    // This person stays on the line, however long the next command takes to start.
    const wanted = ['person-stays', '--timeout', '60000', '--caller', '49301234'];
    const transferred = await offhook(['calls', 'transfer', callId, ...wanted]).finished;
    expect(transferred.out).toMatch(/^transferring to tel:\+12025550102 \(cmd-/);
    await eventually(async () => (await timeline()).includes('transfer-answered'), 'both talk');
    const ended = await offhook(['calls', 'hangup', callId]).finished;
    expect(ended.out).toMatch(/^hanging up \(cmd-/);
    await eventually(async () => (await timeline()).includes('completed'), 'it ends');

    expect((await timeline()).split('dtmf-sent')).toHaveLength(2);
    const late = await offhook(['calls', 'stop', callId]).finished;
    expect(late.err).toBe('offhook: 409: The call has ended.\n');
  });

  test('a table is created through the gateway, and accepts a row of the dev app at once', async () => {
    const file = join(folder, 'visits.json');
    const columns = [{ name: 'name', type: 'string', required: true }];
    await writeFile(file, JSON.stringify({ name: 'visits', columns, writers: ['*'] }));
    const created = await offhook(['tables', 'create', file]).finished;
    const listed = await offhook(['tables', 'list']).finished;
    const again = await offhook(['tables', 'create', file]).finished;

    const token = await offhook(['token']).finished;
    const runtime = await readFile(join(folder, 'runtime.json'), 'utf8');
    const { httpUrl } = JSON.parse(runtime) as { httpUrl: string };
    const row = await fetch(`${httpUrl}/api/public/tables/visits`, {
      method: 'POST',
      headers: { auth: token.out.trim(), 'content-type': 'application/json' },
      body: JSON.stringify({ data: { name: 'Jane' } }),
    });

    expect(created.err).toBe('Add rows with: POST /api/public/tables/visits\n');
    expect(JSON.parse(listed.out)).toEqual(JSON.parse(created.out));
    expect(again.err).toMatch(/^offhook: 400: .*name: is already a table; --replace/s);
    expect(row.status).toBe(200);
    expect(await row.json()).toMatchObject({ name: 'Jane', Created_By: 'app-dev' });
  });

  test('the errors of a refused request are printed by field', async () => {
    const { code, err } = await offhook(['call', 'tel:12', '--caller', 'a b']).finished;

    expect(code).toBe(1);
    expect(err).toMatch(/^offhook: 400: 2 fields are not valid/);
    expect(err).toContain('\n  target: must be a global number');
    expect(err).toContain('\n  caller: must be');
  });
});
