import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { createAddressGuard } from '../../src/lib/address-guard.ts';
import {
  createSender,
  type NotificationSender,
  type SenderOptions,
} from '../../src/notifier/http-sender.ts';
import { eventually } from '../support/eventually.ts';
import { type Manner, startHostileReceiver } from '../support/hostile-receiver.ts';
import { startReceiver } from '../support/receiver.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

function startSender(options: Partial<SenderOptions> = {}): NotificationSender {
  const guard = createAddressGuard(['127.0.0.0/8']);
  const sender = createSender({ guard, now: Date.now, ...options });
  closers.push(() => sender.close());
  return sender;
}

const notificationFor = (url: string, mayBeSent = () => true, body = '{}') => ({
  ...{ url, headers: {}, body, mayBeSent },
});

test('writes no byte of a notification that may not be sent any more once it is connected', async () => {
  const receiver = await startReceiver();
  closers.push(() => receiver.close());
  let resolveName: () => void = () => undefined;
  const guard = createAddressGuard(
    ['127.0.0.0/8'],
    () =>
      new Promise((resolve) => {
        resolveName = () => resolve([{ address: '127.0.0.1', family: 4 }]);
      }),
  );
  const sender = startSender({ guard });
  const url = `http://hooks.example:${receiver.port}/`;
  let mayBeSent = true;
  const sending = sender.send(notificationFor(url, () => mayBeSent, '{"sequence":1}'));

  mayBeSent = false;
  resolveName();

  expect(await sending).toBeUndefined();
  expect(receiver.received).toEqual([]);
});

test('writes no byte of a notification that timed out while its connection was made', async () => {
  const receiver = await startReceiver();
  closers.push(() => receiver.close());
  const resolveName: (() => void)[] = [];
  const guard = createAddressGuard(
    ['127.0.0.0/8'],
    () =>
      new Promise((resolve) =>
        resolveName.push(() => resolve([{ address: '127.0.0.1', family: 4 }])),
      ),
  );
  const sender = startSender({ guard, timeoutMs: 300 });
  const url = `http://hooks.example:${receiver.port}/`;

  const given = await sender.send(notificationFor(url, () => true, '{"sequence":1}'));
  expect(given).toMatchObject({ kind: 'unreachable' });
  const next = sender.send(notificationFor(url, () => true, '{"sequence":2}'));
  for (const resolve of resolveName) resolve();

  expect(await next).toEqual({ kind: 'response', status: 200 });
  expect(receiver.received.map(({ body }) => body.sequence)).toEqual([2]);
});

test('uses a connection again, until either side closes it', async () => {
  const receiver = await startHostileReceiver('never answers');
  closers.push(receiver.close);
  const sender = startSender();
  for (let number = 0; number < 3; number += 1) {
    expect(await sender.send(notificationFor(receiver.url))).toMatchObject({ status: 200 });
  }
  expect(receiver.connections()).toBe(1);
  await sender.close();
  await eventually(() => receiver.sockets() === 0, 'it is closed');
});

describe('a receiver that', () => {
  const start = async (manner: Manner) => {
    const hostile = await startHostileReceiver(manner);
    closers.push(hostile.close);
    hostile.turn();
    return hostile;
  };
  const quick = { timeoutMs: 400, replyTimeoutMs: 100 } as const;
  const noResponse = { kind: 'unreachable', error: 'no response within 400 ms' };
  const delivered = { kind: 'response', status: 200 };
  const attempts = (sender: NotificationSender, url: string) =>
    Promise.all(Array.from({ length: 4 }, () => sender.send(notificationFor(url))));

  test.each([
    ['never answers', noResponse],
    ['drips a head', noResponse],
    ['drips a body', delivered],
    ['answers at length', delivered],
    ['resets', { kind: 'unreachable' }],
    ['resets within a body', delivered],
  ] as const)('%s holds no connection longer than an attempt', async (manner, expected) => {
    const { url, sockets } = await start(manner);

    const results = await attempts(startSender(quick), url);

    for (const result of results) expect(result).toMatchObject(expected);
    await eventually(() => sockets() === 0, 'no connection is left');
  });

  test('never accepts ends no attempt late', async () => {
    const { url } = await start('never accepts');
    // The receiver stands still after some milliseconds.
    await pause(50);
    expect(await attempts(startSender(quick), url)).toEqual(Array(4).fill(noResponse));
  });

  test('drips a body is read no longer than the attempt may take', async () => {
    const { url, sockets } = await start('drips a body');
    const sender = startSender({ timeoutMs: 400, replyTimeoutMs: 60_000 });
    expect(await attempts(sender, url)).toEqual(Array(4).fill(delivered));
    await eventually(() => sockets() === 0, 'no connection is left');
  });

  test('answers at length is read to 64 KiB at most, even if there is more time', async () => {
    const { url, sockets } = await start('answers at length');
    const sender = startSender({ timeoutMs: 30_000, replyTimeoutMs: 30_000 });
    expect(await sender.send(notificationFor(url))).toEqual(delivered);
    await eventually(() => sockets() === 0, 'no connection is left');
  });
});
