// A trunk with `sessionTimer`: the gateway requests a session timer, and repeats an INVITE whose
// interval the carrier finds too small (RFC 4028, sections 7.1 and 7.4).

import { describe, expect, onTestFinished, test } from 'vitest';
import type { Trunk } from '../../src/sip/trunks/trunks.ts';
import { answer, openTrunkWorld } from '../sip/trunk-world.ts';
import { one, type RawCallee, type RawMessage } from '../support/raw-callee.ts';
import { drachtioBinary } from '../support/sip-engine.ts';
import { onlyDrachtio } from './engines.ts';

const cseqOf = (message: RawMessage): number => Number.parseInt(one(message, 'cseq'), 10);

const sessionTimer = { expiresS: 300, minS: 120 };

async function invited(trunk: Partial<Trunk>, mayInvite?: () => boolean) {
  const world = await openTrunkWorld({ gateways: 1, trunk });
  onTestFinished(() => world[Symbol.asyncDispose]());
  const [callee] = world.gateways;
  if (callee === undefined) throw new Error('no gateway');
  const { leg, observer } = world.place(undefined, mayInvite);
  return { callee, leg, observer, invite: await callee.take('INVITE') };
}

async function refuse(callee: RawCallee, invite: RawMessage, minS: string): Promise<void> {
  callee.reply(invite, 422, 'Session Interval Too Small', { headers: [`Min-SE: ${minS}`] });
  await callee.take('ACK');
}

describe('a trunk without sessionTimer', () => {
  test('supports session timers, but requests none', async () => {
    const { invite } = await invited({});

    expect(one(invite, 'supported')).toContain('timer');
    expect(invite.headers.has('session-expires')).toBe(false);
    expect(invite.headers.has('min-se')).toBe(false);
  });

  test('does not repeat an INVITE after a 422', async () => {
    const { callee, invite, observer } = await invited({});

    await refuse(callee, invite, '600');

    expect((await observer.until('failed')).failure).toMatchObject({ sipStatus: 422 });
    expect(callee.has('INVITE')).toBe(false);
  });
});

describe('a trunk with sessionTimer', () => {
  test('requests a session timer and leaves the refresher to the carrier', async () => {
    const { invite } = await invited({ sessionTimer });

    expect(one(invite, 'session-expires')).toBe('300');
    expect(one(invite, 'min-se')).toBe('120');
    expect(one(invite, 'supported')).toContain('timer');
  });

  test('repeats the INVITE once with the Min-SE of a 422, and follows the new transaction', async () => {
    const { callee, invite, leg, observer } = await invited({ sessionTimer });

    await refuse(callee, invite, '1800');
    const repeated = await callee.take('INVITE');

    expect(one(repeated, 'session-expires')).toBe('1800');
    expect(one(repeated, 'min-se')).toBe('1800');
    for (const name of ['call-id', 'from', 'to']) {
      expect(one(repeated, name)).toBe(one(invite, name));
    }
    expect(cseqOf(repeated)).toBe(cseqOf(invite) + 1);
    expect(repeated.body).toBe(invite.body);
    const stored = (await observer.until('resent')).leg;
    expect(stored.inviteCseq).toBe(cseqOf(repeated));
    expect(stored.transactionId).not.toBe((await observer.until('sent')).leg.transactionId);

    callee.reply(repeated, 180, 'Ringing');
    await observer.until('provisional');
    leg.cancel('enough');
    const cancel = await callee.take('CANCEL');
    expect(cseqOf(cancel)).toBe(cseqOf(repeated));
    callee.reply(cancel, 200, 'OK');
    callee.reply(repeated, 487, 'Request Terminated');
    await leg.released;
  });

  test('answers a challenge to the repeated INVITE with the larger interval', async () => {
    const auth = { username: 'alice', password: 'secret' };
    const { callee, invite, observer } = await invited({ sessionTimer, auth });
    await refuse(callee, invite, '1800');

    callee.reply(await callee.take('INVITE'), 407, 'Proxy Authentication Required', {
      headers: ['Proxy-Authenticate: Digest realm="lab", nonce="abc", qop="auth"'],
    });
    const answered = await callee.take('INVITE');
    callee.reply(answered, 200, 'OK', { body: answer, headers: ['Session-Expires: 1800'] });

    expect(one(answered, 'session-expires')).toBe('1800');
    expect(one(answered, 'proxy-authorization')).toContain('username="alice"');
    expect(cseqOf(answered)).toBe(cseqOf(invite) + 2);
    await observer.until('answered');
  });

  test('sends credentials again if the 422 follows a challenge', async () => {
    const auth = { username: 'alice', password: 'secret' };
    const { callee, invite, observer } = await invited({ sessionTimer, auth });
    callee.reply(invite, 407, 'Proxy Authentication Required', {
      headers: ['Proxy-Authenticate: Digest realm="lab", nonce="abc", qop="auth"'],
    });
    await callee.take('ACK');
    await refuse(callee, await callee.take('INVITE'), '1800');

    const repeated = await callee.take('INVITE');
    callee.reply(repeated, 200, 'OK', { body: answer });

    expect(one(repeated, 'session-expires')).toBe('1800');
    expect(one(repeated, 'proxy-authorization')).toContain('nc=00000002');
    await observer.until('answered');
  });

  test('a second 422 ends the call', async () => {
    const { callee, invite, observer } = await invited({ sessionTimer });
    await refuse(callee, invite, '600');

    await refuse(callee, await callee.take('INVITE'), '1200');

    expect((await observer.until('failed')).failure).toMatchObject({ sipStatus: 422 });
    expect(callee.has('INVITE')).toBe(false);
  });

  // Drachtio-server drops a response with a Min-SE that isn't a number.
  const unreadable = drachtioBinary === undefined ? [{ what: 'not a number', minS: 'soon' }] : [];
  test.each([
    { what: 'less than we asked for', minS: '200' },
    { what: 'more than a day', minS: '99999999' },
    ...unreadable,
  ])('a 422 whose Min-SE is $what ends the call', async ({ minS }) => {
    const { callee, invite, observer } = await invited({ sessionTimer });

    await refuse(callee, invite, minS);

    expect((await observer.until('failed')).failure).toMatchObject({ sipStatus: 422 });
    expect(callee.has('INVITE')).toBe(false);
  });

  test('a 422 ends the call if this process may send no more INVITEs', async () => {
    let isAllowed = true;
    const { callee, invite, observer } = await invited({ sessionTimer }, () => isAllowed);
    isAllowed = false;

    await refuse(callee, invite, '1800');

    expect((await observer.until('failed')).failure).toMatchObject({ sipStatus: 422 });
    expect(callee.has('INVITE')).toBe(false);
  });
});

/** On the embedded engine, `session-timers.test.ts` has these cases and many more. */
describe.runIf(drachtioBinary !== undefined)('a session of a drachtio-server', () => {
  const shortest = { expiresS: 90, minS: 90 };

  /** Opens a call whose session lasts 90 s without a refresh. */
  async function agreed(refresher: 'uac' | 'uas') {
    const call = await invited({ sessionTimer: shortest });
    const headers = ['Require: timer', `Session-Expires: 90;refresher=${refresher}`];
    call.callee.reply(call.invite, 200, 'OK', { body: answer, headers });
    await call.observer.until('answered');
    call.leg.acknowledge();
    await call.callee.take('ACK');
    return { ...call, headers };
  }

  onlyDrachtio('is refreshed by it after half the time', async () => {
    const { callee, observer, headers } = await agreed('uac');

    const refresh = await callee.take('INVITE', 70_000);
    callee.reply(refresh, 200, 'OK', { body: answer, headers });
    await callee.take('ACK');

    expect(one(refresh, 'session-expires')).toBe('90;refresher=uac');
    expect(observer.kinds()).not.toContain('ended');
  });

  onlyDrachtio('ends with a BYE if the carrier does not refresh it', async () => {
    const { callee, observer } = await agreed('uas');

    const bye = await callee.take('BYE', 100_000);
    callee.reply(bye, 200, 'OK');

    expect(one(bye, 'reason')).toContain('Session timer expired');
    expect((await observer.until('ended')).end).toMatchObject({ by: 'lost' });
  });
});
