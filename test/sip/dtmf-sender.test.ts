// Sends keys in INFOs over a control connection: within the dialog, accepted or refused, and with
// credentials after a challenge.

import { describe, expect, test } from 'vitest';
import { forEachTest } from '../support/opened.ts';
import { headerOf } from '../support/scripted-drachtio.ts';
import { answerInDialog, openScriptedTrunk } from '../support/scripted-trunk.ts';

const trunk = forEachTest(() =>
  openScriptedTrunk({
    dtmf: 'info',
    auth: { username: 'alice', password: 'wonderland' },
  }),
);

const nextInfo = () => trunk.drachtio.take('INFO');

async function answeredLeg() {
  const { leg, invite, answer } = await trunk.placed();
  const early = leg.press('1', 100);
  await answer();
  return { leg, invite, early };
}

describe('a key by SIP INFO', () => {
  test('is sent within the dialog, and accepted with a 200', async () => {
    expect(trunk.sip.keysFor('carrier')).toBe('info');
    expect(trunk.sip.keysFor(undefined)).toBe('rtp');
    const leg = await answeredLeg();
    expect(await leg.early).toBe(false);
    const pressed = leg.leg.press('#', 160);
    const info = await nextInfo();
    answerInDialog(trunk.drachtio, leg.invite, info, '200 OK');

    expect(await pressed).toBe(true);
    expect(info.fields.slice(1)).toEqual(['sip', '', leg.invite.dialogId]);
    expect(headerOf(info.sip, 'Content-Type')).toBe('application/dtmf-relay');
    expect(info.sip).toMatch(/\r\n\r\nSignal=#\r\nDuration=160\r\n$/);
  });

  test.each(['415 Unsupported Media Type', '481 Call/Transaction Does Not Exist'])(
    'is refused with a %s',
    async (status) => {
      const leg = await answeredLeg();
      const pressed = leg.leg.press('5', 100);
      answerInDialog(trunk.drachtio, leg.invite, await nextInfo(), status);

      expect(await pressed).toBe(false);
    },
  );

  test('is sent again with credentials if it is challenged', async () => {
    const leg = await answeredLeg();
    const pressed = leg.leg.press('5', 100);
    answerInDialog(
      trunk.drachtio,
      leg.invite,
      await nextInfo(),
      '407 Proxy Authentication Required',
      ['Proxy-Authenticate: Digest realm="carrier", nonce="n1", qop="auth"'],
    );
    const again = await nextInfo();
    answerInDialog(trunk.drachtio, leg.invite, again, '200 OK');

    expect(await pressed).toBe(true);
    expect(headerOf(again.sip, 'Proxy-Authorization')).toContain('username="alice"');
    expect(again.sip).toMatch(/\r\n\r\nSignal=5\r\nDuration=100\r\n$/);
  });

  test('is not sent again if the challenge comes after we gave up on the key', async () => {
    const leg = await answeredLeg();
    const pressed = leg.leg.press('5', 100);
    const late = await nextInfo();
    expect(await pressed).toBe(false);
    answerInDialog(trunk.drachtio, leg.invite, late, '407 Proxy Authentication Required', [
      'Proxy-Authenticate: Digest realm="carrier", nonce="n1", qop="auth"',
    ]);
    // Its answer comes after the challenge, so the challenge has been handled by then.
    const next = leg.leg.press('6', 100);
    answerInDialog(trunk.drachtio, leg.invite, await nextInfo(), '200 OK');
    expect(await next).toBe(true);
    const last = leg.leg.press('7', 100);
    const info = await nextInfo();
    answerInDialog(trunk.drachtio, leg.invite, info, '200 OK');

    expect(info.sip).toContain('Signal=7');
    expect(await last).toBe(true);
  }, 15_000);

  test('is not sent in a call that has ended', async () => {
    const { leg } = await answeredLeg();
    leg.hangUp('done');

    expect(await leg.press('5', 100)).toBe(false);
    expect(trunk.drachtio.frames.filter(({ method }) => method === 'INFO')).toEqual([]);
  });
});
