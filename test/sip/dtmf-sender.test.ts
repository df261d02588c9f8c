// Keys in INFOs over a control connection: into the dialog, taken or not, and with credentials where they are asked for.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { CallId } from '../../src/calls/contract/identity.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createDrachtioSip, type DrachtioSip } from '../../src/sip/drachtio-sip.ts';
import { builtInTrunk, loadTrunks } from '../../src/sip/trunks/trunks.ts';
import { eventually } from '../support/eventually.ts';
import { RecordingLeg } from '../support/recording-leg.ts';
import { type ControlFrame, headerOf, ScriptedDrachtio } from '../support/scripted-drachtio.ts';

const sdp = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\n';

let drachtio: ScriptedDrachtio;
let sip: DrachtioSip;

beforeEach(async () => {
  drachtio = await ScriptedDrachtio.start();
  const gateway = { host: '127.0.0.1', port: 5070, transport: 'udp' } as const;
  const auth = { username: 'alice', password: 'wonderland' };
  const trunk = { ...builtInTrunk('carrier', gateway), dtmf: 'info' as const, auth };
  sip = createDrachtioSip({
    servers: [drachtio.address],
    trunks: loadTrunks({ secrets: () => ({}), builtIn: [trunk] }),
    allowedNetworks: ['127.0.0.0/8'],
    logger: silentLogger,
    clock: { now: () => new Date() },
    limits: { disposeTimeoutMs: 50, byeTimeoutMs: 200 },
  });
  await eventually(() => sip.ready(), 'the engine is connected');
});

afterEach(async () => {
  await sip[Symbol.asyncDispose]();
  await drachtio[Symbol.asyncDispose]();
});

async function answeredLeg() {
  const observer = new RecordingLeg();
  const target = { kind: 'tel', number: '15551230001' } as const;
  const place = { callId: 'call-1' as CallId, target, caller: '15550001111', offerSdp: sdp };
  const leg = sip.place(place, observer);
  const invite = await drachtio.takeInvite();
  invite.confirm();
  const early = leg.press('1', 100);
  invite.respond(200, 'OK', { body: sdp });
  await observer.until('answered');
  leg.acknowledge();
  await drachtio.take('ACK');
  return { leg, invite, early };
}

type Leg = Awaited<ReturnType<typeof answeredLeg>>;

/** The engine's word that it was sent, and the far end's answer. */
function answerInfo({ invite }: Leg, info: ControlFrame, status: string, more: string[] = []) {
  const transactionId = `txn-${drachtio.nextId()}`;
  const lines = [
    'Via: SIP/2.0/UDP 127.0.0.1;rport=5060;branch=z9hG4bKinfo',
    `From: <sip:100@127.0.0.1:5060>;tag=${invite.localTag}`,
    'To: <sip:callee@127.0.0.1:5070>;tag=remote',
    `Call-ID: ${invite.callId}`,
    'CSeq: 101 INFO',
    'Content-Length: 0',
  ];
  const sent = ['INFO sip:callee@127.0.0.1:5070 SIP/2.0', ...lines, '', ''].join('\r\n');
  drachtio.confirm(info, transactionId, sent);
  const answer = [`SIP/2.0 ${status}`, ...lines, ...more, '', ''].join('\r\n');
  drachtio.deliver(info.from, answer, { transactionId, dialogId: invite.dialogId });
}

describe('a key by SIP INFO', () => {
  test('goes into the dialog as the trunk wants it, and is taken by a 200', async () => {
    expect(sip.keysFor('carrier')).toBe('info');
    expect(sip.keysFor(undefined)).toBe('rtp');
    const leg = await answeredLeg();
    expect(await leg.early).toBe(false);
    const pressed = leg.leg.press('#', 160);
    const info = await drachtio.take('INFO');
    answerInfo(leg, info, '200 OK');

    expect(await pressed).toBe(true);
    expect(info.fields.slice(1)).toEqual(['sip', '', leg.invite.dialogId]);
    expect(headerOf(info.sip, 'Content-Type')).toBe('application/dtmf-relay');
    expect(info.sip).toMatch(/\r\n\r\nSignal=#\r\nDuration=160\r\n$/);
  });

  test.each(['415 Unsupported Media Type', '481 Call/Transaction Does Not Exist'])(
    'is not taken by a %s',
    async (status) => {
      const leg = await answeredLeg();
      const pressed = leg.leg.press('5', 100);
      answerInfo(leg, await drachtio.take('INFO'), status);

      expect(await pressed).toBe(false);
    },
  );

  test('that is challenged is sent again with credentials', async () => {
    const leg = await answeredLeg();
    const pressed = leg.leg.press('5', 100);
    answerInfo(leg, await drachtio.take('INFO'), '407 Proxy Authentication Required', [
      'Proxy-Authenticate: Digest realm="carrier", nonce="n1", qop="auth"',
    ]);
    const again = await drachtio.take('INFO');
    answerInfo(leg, again, '200 OK');

    expect(await pressed).toBe(true);
    expect(headerOf(again.sip, 'Proxy-Authorization')).toContain('username="alice"');
    expect(again.sip).toMatch(/\r\n\r\nSignal=5\r\nDuration=100\r\n$/);
  });

  test('in a call that is over is not sent', async () => {
    const { leg } = await answeredLeg();
    leg.hangUp('done');

    expect(await leg.press('5', 100)).toBe(false);
    expect(drachtio.frames.filter(({ method }) => method === 'INFO')).toEqual([]);
  });
});
