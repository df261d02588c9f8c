import { afterEach, beforeEach, expect, test } from 'vitest';
import { createAddressGuard } from '../../src/lib/address-guard.ts';
import { createSender, type NotificationSender } from '../../src/notifier/http-sender.ts';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';

let receiver: Receiver;
let sender: NotificationSender;
beforeEach(async () => {
  receiver = await startReceiver();
  sender = createSender({
    guard: createAddressGuard(['127.0.0.0/8']),
    connectionsPerOrigin: 1,
    now: Date.now,
  });
});
afterEach(async () => {
  await sender.close();
  await receiver.close();
});

test('not a byte is written of what may not be sent any more when its connection is free', async () => {
  let answerFirst: () => void = () => undefined;
  const arrived: unknown[] = [];
  receiver.answerWith(({ sequence }) => {
    arrived.push(sequence);
    return sequence === 1 ? new Promise((resolve) => (answerFirst = () => resolve(200))) : 200;
  });
  let mayBeSent = true;
  const send = (sequence: number, allowed: () => boolean) =>
    sender.send({
      ...{ url: receiver.url, headers: {}, body: JSON.stringify({ sequence }) },
      mayBeSent: allowed,
    });
  const first = send(1, () => true);
  await eventually(() => arrived.length === 1, 'the only connection is taken');
  const second = send(2, () => mayBeSent);
  const third = send(3, () => true);

  mayBeSent = false;
  answerFirst();

  expect(await first).toEqual({ kind: 'response', status: 200 });
  expect(await second).toBeUndefined();
  expect(await third).toEqual({ kind: 'response', status: 200 });
  expect(arrived).toEqual([1, 3]);
});
