// A 200 OK without a Contact to which we can send requests (RFC 3261, section 8.1.1.8). Nobody can
// talk in such a call, so it must end immediately, and the callee must not stay connected.

import { describe, expect, test } from 'vitest';
import { answer, openTrunkWorld, type TrunkWorld } from '../sip/trunk-world.ts';
import { one, type RawCallee, type RawMessage } from '../support/raw-callee.ts';
import { startEngine } from '../support/sip-engine.ts';
import { onlyDrachtio, onlyEmbedded } from './engines.ts';

describe('a 200 with an unusable Contact fails the call and hangs up the callee', () => {
  test.each([
    ['a space', '<sip:+1 555 1234@127.0.0.1>'],
    ['an impossible port', '<sip:callee@127.0.0.1:99999>'],
  ])('%s', async (_, contact) => {
    await using world = await openTrunkWorld({ gateways: 1 });

    await expectHungUp(world, [`Contact: ${contact}`], 'OK with an unusable Contact');
  });

  onlyEmbedded.for([
    ['no host, a 200 that drachtio-server ignores', '<sip:callee@>'],
    ['an open quotation mark, a 200 that drachtio-server ignores', '"Bob <sip:c@127.0.0.1>'],
    ['a star, which kills drachtio-server', '*'],
    ['a tel: URI, which kills drachtio-server', '<tel:+15551230001>'],
  ] as const)('%s', async ([_, contact]) => {
    await using world = await openTrunkWorld({ gateways: 1 });

    await expectHungUp(world, [`Contact: ${contact}`], 'OK with an unusable Contact');
  });

  test('no Contact', async () => {
    await using world = await openTrunkWorld({ gateways: 1 });

    await expectHungUp(world, [], 'OK without Contact');
  });

  for (const contact of ['<tel:+15551230001>', '*']) {
    onlyDrachtio(
      `${contact} kills drachtio-server, and the next one hangs up the callee`,
      async () => {
        await using world = await openTrunkWorld({ gateways: 1 });
        const [callee] = world.gateways;
        const [engine] = world.engines;
        if (callee === undefined || engine === undefined) throw new Error('no gateway or engine');
        const { leg, observer } = world.place();
        const invite = await callee.take('INVITE');
        callee.reply(invite, 180, 'Ringing');
        await observer.until('provisional');

        const headers = [`Contact: ${contact}`];
        callee.reply(invite, 200, 'OK', { body: answer, contact: false, headers });

        expect((await observer.until('failed')).failure.kind).toBe('transport');
        await engine.close();
        const { sipPort, controlPort } = engine;
        const next = await startEngine({ sipPort, controlPort });
        try {
          const bye = await callee.take('BYE');
          expect(one(bye, 'to')).toMatch(/;tag=callee$/);
          callee.reply(bye, 200, 'OK', { contact: false });
          await leg.released;
          expect(observer.kinds()).toEqual(['sent', '180', 'failed']);
        } finally {
          await next.close();
        }
      },
    );
  }
});

async function expectHungUp(
  world: TrunkWorld,
  headers: readonly string[],
  reason: string,
): Promise<void> {
  const [callee] = world.gateways;
  if (callee === undefined) throw new Error('no gateway');
  const { leg, observer } = world.place();
  const invite = await callee.take('INVITE');

  callee.reply(invite, 200, 'OK', { body: answer, contact: false, headers });

  expect((await observer.until('failed')).failure).toMatchObject({
    kind: 'unusable',
    sipStatus: 200,
    reason,
  });
  const bye = await takeByes(callee, leg.released);
  expect(one(bye, 'to')).toMatch(/;tag=callee$/);
  expect(one(bye, 'call-id')).toBe(one(invite, 'call-id'));
  expect(observer.kinds()).toEqual(['sent', 'failed']);
}

/**
 * Accepts the first BYE. An engine that hangs up by itself refuses our BYE within the dialog, so a
 * second BYE follows from outside of it.
 */
async function takeByes(callee: RawCallee, released: Promise<void>): Promise<RawMessage> {
  const first = await callee.take('BYE');
  callee.reply(first, 200, 'OK', { contact: false });
  let isReleased = false;
  const over = released.then(() => {
    isReleased = true;
  });
  while (!isReleased) {
    if (callee.has('BYE')) {
      const bye = await callee.take('BYE');
      callee.reply(bye, 481, 'Call/Transaction Does Not Exist', { contact: false });
    }
    await Promise.race([over, new Promise((resolve) => setTimeout(resolve, 10))]);
  }
  return first;
}
