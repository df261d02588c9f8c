// A gateway in a terminal: what the terminal shows of its start, its calls and its end. Without a
// terminal, programs can still read the log.

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { makeSeededDataDir } from '../support/databases.ts';
import { createDialer, readDevApp } from '../support/dialer-client.ts';
import { eventually } from '../support/eventually.ts';
import { freeUdpPort } from '../support/free-port.ts';
import { startGateway } from '../support/gateway-process.ts';
import { startReceiver } from '../support/receiver.ts';
import { startInTerminal } from '../support/terminal.ts';

test('a terminal shows a banner, each step of a call and of its notifications, and the end', async () => {
  const dataDir = await makeSeededDataDir();
  onTestFinished(() => dataDir.remove());
  const terminal = startInTerminal({ DATA_DIR: dataDir.path });
  onTestFinished(async () => {
    terminal.interrupt();
    terminal.interrupt();
    await terminal.ended;
  });
  await terminal.until('End          Ctrl-C');
  const { httpUrl } = JSON.parse(await readFile(join(dataDir.path, 'runtime.json'), 'utf8')) as {
    httpUrl: string;
  };
  expect(terminal.screen()).toContain(`Docs         ${httpUrl}/docs`);
  expect(terminal.screen()).not.toContain('{"level"');
  const link = /Console {6}(\S+)/.exec(terminal.screen())?.[1] ?? '';
  expect(link).toMatch(new RegExp(`^${httpUrl}/console#token=[\\w-]{43}$`));
  const signedIn = await fetch(`${httpUrl}/console/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: httpUrl },
    body: JSON.stringify({ token: link.replace(/.*=/, '') }),
  });
  expect(await signedIn.json()).toMatchObject({ app: { appId: 'app-dev' } });

  const dialer = await createDialer(httpUrl, await readDevApp(dataDir.path));
  const unusedAddress = `127.0.0.1:${await freeUdpPort()}`;
  await dialer.dial({ target: 'tel:+12025550102', notifyurl: `http://${unusedAddress}/` });
  await terminal.until('ringing (180 Ringing)');
  await terminal.until('answered after ringing');
  await terminal.until(`→ ${unusedAddress} #1 Answered: ECONNREFUSED, again in 2 s`);
  expect(terminal.screen()).not.toContain('2025550102');

  terminal.interrupt();
  await terminal.until('Ending: 1 call is up. It has 5 s to finish; press Ctrl-C again');
  terminal.interrupt();
  await terminal.until('Ending at once');
  expect(await terminal.ended).toBe(0);
  expect(terminal.screen()).toContain('completed: Gateway-disconnected');
});

test('a terminal shows no sign-in link if others can reach the gateway', async () => {
  const dataDir = await makeSeededDataDir();
  onTestFinished(() => dataDir.remove());
  const terminal = startInTerminal({ DATA_DIR: dataDir.path, HTTP_HOST: '0.0.0.0' });
  await terminal.until('End          Ctrl-C');
  expect(terminal.screen()).toMatch(/Console {6}http:\/\/127\.0\.0\.1:\d+\/console {3}\(sign in: /);
  expect(terminal.screen()).not.toContain('token=');
  terminal.interrupt();
  expect(await terminal.ended).toBe(0);
});

test('calls that are up at Ctrl-C get time to finish, and are then hung up', async () => {
  const dataDir = await makeSeededDataDir();
  onTestFinished(() => dataDir.remove());
  const terminal = startInTerminal({ DATA_DIR: dataDir.path, SHUTDOWN_TIMEOUT_MS: '1000' });
  await terminal.until('End          Ctrl-C');
  const runtime = JSON.parse(await readFile(join(dataDir.path, 'runtime.json'), 'utf8')) as {
    httpUrl: string;
  };
  const dialer = await createDialer(runtime.httpUrl, await readDevApp(dataDir.path));
  await dialer.dial({ target: 'tel:+12025550102' });
  await terminal.until('answered after ringing');

  terminal.interrupt();

  await terminal.until('It has 1 s to finish');
  expect(await terminal.ended).toBe(0);
});

test('closing the terminal ends the gateway as Ctrl-C does', async () => {
  const dataDir = await makeSeededDataDir();
  onTestFinished(() => dataDir.remove());
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const terminal = startInTerminal({ DATA_DIR: dataDir.path, SHUTDOWN_TIMEOUT_MS: '500' });
  await terminal.until('End          Ctrl-C');
  const runtimeFile = join(dataDir.path, 'runtime.json');
  const { httpUrl, pid } = JSON.parse(await readFile(runtimeFile, 'utf8')) as {
    httpUrl: string;
    pid: number;
  };
  const dialer = await createDialer(httpUrl, await readDevApp(dataDir.path));
  const { callId } = await dialer.dial({
    ...{ target: 'tel:+12025550102', notifyurl: receiver.url },
  });
  await terminal.until('answered after ringing');

  terminal.close();
  await terminal.ended;
  await eventually(() => !isAlive(pid), 'the gateway has ended', 20_000);

  expect(existsSync(runtimeFile)).toBe(false);
  expect(receiver.of(callId).map(({ status, reasonCode }) => [status, reasonCode])).toEqual([
    ['Answered', 'OK'],
    ['completed', 'Gateway-disconnected'],
  ]);
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test.each([
  ['without LOG_CALLS: no line', {}, 0],
  ['with LOG_CALLS: one line of JSON each', { LOG_CALLS: 'true' }, 1],
])('calls in a log that programs read, %s', async (_name, variables, expected) => {
  const dataDir = await makeSeededDataDir();
  onTestFinished(() => dataDir.remove());
  const gateway = await startGateway(dataDir.path, { LOG_LEVEL: 'info', ...variables });
  const { callId } = await gateway.dialer.dial({ target: 'tel:+12025550130' });
  await eventually(
    async () => ((await gateway.dialer.call(callId)).body as { state: string }).state === 'ended',
    'the call has ended',
  );
  await gateway.terminate();

  expect(gateway.output()).not.toContain('token=');
  const lines = gateway
    .output()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const failures = lines.filter(({ msg }) => msg === 'failed: 486 Busy Here (busy)');
  expect(failures.map((line) => line['callId'])).toEqual(Array(expected).fill(callId));
});
