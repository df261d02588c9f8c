// drachtio-srf hangs up, and the far end challenges its BYE. The engine keeps the dialog, as
// drachtio-server does, so that srf can repeat the BYE with credentials.

import { expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { forEachTest } from '../../support/opened.ts';
import { one, RawCallee } from '../../support/raw-callee.ts';
import { startEmbeddedEngine } from '../../support/sip-engine.ts';
import { connectSrf } from './srf-support.ts';

const sdp =
  'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 20000 RTP/AVP 0\r\n';
const challenge = { headers: ['Proxy-Authenticate: Digest realm="lab", nonce="abc"'] };

const far = forEachTest(async () => {
  // Shortens 64 * T1 to 320 ms. The callee answers each request at once.
  const engine = await startEmbeddedEngine({ timers: { t1Ms: 5 } });
  const callee = await RawCallee.start({ dropsRepetitions: true });
  const srf = await connectSrf(engine);
  return {
    ...{ engine, callee, srf },
    async [Symbol.asyncDispose]() {
      srf.disconnect();
      await engine.close();
      await callee[Symbol.asyncDispose]();
    },
  };
});

/** Answers a call, and challenges the BYE with which srf ends it. */
async function challengedBye(auth?: { readonly username: string; readonly password: string }) {
  const { srf, callee } = far;
  const calling = srf.createUAC(`sip:bob@127.0.0.1:${callee.port}`, {
    localSdp: sdp,
    ...(auth !== undefined && { auth }),
  });
  callee.reply(await callee.take('INVITE'), 200, 'OK', { body: sdp });
  const dialog = await calling;
  await callee.take('ACK');
  dialog.destroy();
  const bye = await callee.take('BYE');
  callee.reply(bye, 407, 'Proxy Authentication Required', challenge);
  return bye;
}

const dialogs = () => far.engine.statistics().dialogs;

test("srf's BYE with credentials leaves within the dialog, and ends it", async () => {
  const bye = await challengedBye({ username: 'alice', password: 'secret' });

  const repeated = await far.callee.take('BYE');
  expect(one(repeated, 'proxy-authorization')).toContain('username="alice"');
  expect(one(repeated, 'call-id')).toBe(one(bye, 'call-id'));
  expect(one(repeated, 'to')).toBe(one(bye, 'to'));
  expect(Number.parseInt(one(repeated, 'cseq'), 10)).toBe(
    Number.parseInt(one(bye, 'cseq'), 10) + 1,
  );
  expect(dialogs()).toBe(1);
  far.callee.reply(repeated, 200, 'OK');
  await eventually(() => dialogs() === 0, 'the dialog is gone');
});

test('the dialog ends by itself if the BYE is not repeated', async () => {
  await challengedBye();

  await eventually(() => dialogs() === 0, 'the dialog is gone');
});
