import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { CallId } from '../../src/calls/contract/identity.ts';
import type { StoredLeg } from '../../src/calls/contract/stored-leg.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createDrachtioSip, type DrachtioSip } from '../../src/sip/drachtio-sip.ts';
import { maxFrameBytes, type SipLimits } from '../../src/sip/engine/sip-limits.ts';
import { builtInTrunk, loadTrunks, type Trunk } from '../../src/sip/trunks/trunks.ts';
import { eventually } from '../support/eventually.ts';
import { RecordingLeg } from '../support/recording-leg.ts';
import {
  type ControlFrame,
  headerOf,
  ScriptedDrachtio,
  type ScriptedInvite,
} from '../support/scripted-drachtio.ts';

const offer = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\n';
const answer = 'v=0\r\no=- 2 2 IN IP4 127.0.0.1\r\ns=-\r\n';

/**
 * Time-outs for which a test waits are short. The others are so long that they never expire, even
 * if this process stands still.
 */
const testLimits: Partial<SipLimits> = {
  reconnectMinMs: 20,
  reconnectMaxMs: 50,
  disposeTimeoutMs: 50,
  crossingMs: 20,
  connectTimeoutMs: 60_000,
  confirmTimeoutMs: 60_000,
  acknowledgeTimeoutMs: 60_000,
  orphanTimeoutMs: 60_000,
};

function sipOver(
  servers: readonly ScriptedDrachtio[],
  limits: Partial<SipLimits> = {},
  trunk: Partial<Trunk> = {},
): DrachtioSip {
  const carrier = builtInTrunk('carrier', { host: '127.0.0.1', port: 5070, transport: 'udp' });
  return createDrachtioSip({
    servers: servers.map((server) => server.address),
    trunks: loadTrunks({ secrets: () => ({}), builtIn: [{ ...carrier, ...trunk }] }),
    allowedNetworks: ['127.0.0.0/8'],
    logger: silentLogger,
    clock: { now: () => new Date() },
    limits: { ...testLimits, ...limits },
  });
}

function place(sip: DrachtioSip, overrides: { offerSdp?: string } = {}) {
  const observer = new RecordingLeg();
  const leg = sip.place(
    {
      callId: 'call-1' as CallId,
      target: { kind: 'tel', number: '15551230001' },
      caller: '15550001111',
      offerSdp: offer,
      ...overrides,
    },
    observer,
  );
  return { leg, observer };
}

async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol('pending');
  const winner = await Promise.race([
    promise,
    new Promise((resolve) => setImmediate(() => resolve(pending))),
  ]);
  return winner !== pending;
}

describe('sip port over a control connection', () => {
  let drachtio: ScriptedDrachtio;
  let sip: DrachtioSip;

  beforeEach(async () => {
    drachtio = await ScriptedDrachtio.start();
    sip = sipOver([drachtio]);
    await eventually(() => sip.ready(), 'the engine is connected');
  });

  afterEach(async () => {
    await sip[Symbol.asyncDispose]();
    await drachtio[Symbol.asyncDispose]();
  });

  /** Connects again with other limits, or another trunk. */
  async function reconnect(limits: Partial<SipLimits>, trunk: Partial<Trunk> = {}) {
    await sip[Symbol.asyncDispose]();
    sip = sipOver([drachtio], limits, trunk);
    await eventually(() => sip.ready(), 'the engine is connected');
  }

  async function ring() {
    const { leg, observer } = place(sip);
    const invite = await drachtio.takeInvite();
    invite.confirm();
    invite.respond(180, 'Ringing');
    await observer.until('provisional');
    return { leg, observer, invite };
  }

  async function answered() {
    const { leg, observer, invite } = await ring();
    invite.respond(200, 'OK', { body: answer });
    await observer.until('answered');
    return { leg, observer, invite };
  }

  async function talking() {
    const call = await answered();
    call.leg.acknowledge();
    await drachtio.take('ACK');
    return call;
  }

  async function settleBye(invite: ScriptedInvite): Promise<void> {
    invite.answerBye(await drachtio.take('BYE'));
  }

  test('sends the INVITE through the default trunk and reports its transaction', async () => {
    const { observer, invite } = await ring();

    expect(invite.frame.sip).toMatch(/^INVITE sip:15551230001@127\.0\.0\.1:5070 SIP\/2\.0\r\n/);
    expect(headerOf(invite.frame.sip, 'From')).toBe('<sip:15550001111@localhost>');
    expect(invite.body).toBe(offer);
    expect(observer.kinds()).toEqual(['sent', '180']);
    expect((await observer.until('sent')).leg).toEqual({
      engine: `127.0.0.1:${drachtio.port}`,
      trunk: 'carrier',
      sipCallId: invite.callId,
      transactionId: invite.transactionId,
      requestUri: 'sip:15551230001@127.0.0.1:5070',
      localTag: invite.localTag,
      localUri: 'sip:100@127.0.0.1:5060',
      remoteUri: 'sip:15551230001@127.0.0.1:5070',
      inviteCseq: 100,
    });
  });

  test('acknowledges a 200 only on request', async () => {
    const { leg, observer, invite } = await answered();
    expect(drachtio.frames).toEqual([]);

    leg.acknowledge();

    const ack = await drachtio.take('ACK');
    expect(ack.fields[3]).toBe(invite.dialogId);
    expect((await observer.until('answered')).leg).toMatchObject({
      dialogId: invite.dialogId,
      remoteTag: 'remote',
      remoteTarget: 'sip:callee@127.0.0.1:5070',
    });
  });

  test('acknowledges and hangs up a 200 that the call does not acknowledge in time', async () => {
    await reconnect({ acknowledgeTimeoutMs: 50 });
    const { observer, invite } = await answered();

    await drachtio.take('ACK');
    await settleBye(invite);

    expect((await observer.until('ended')).end).toMatchObject({ by: 'local' });
  });

  test('hanging up before the ACK sends ACK and BYE, in this order', async () => {
    const { leg, observer, invite } = await answered();

    leg.hangUp('given up');

    expect(observer.kinds()).toEqual(['sent', '180', 'answered', 'ended']);
    await eventually(() => drachtio.frames.length === 2, 'two requests arrive');
    expect(drachtio.frames.map((frame) => frame.method)).toEqual(['ACK', 'BYE']);
    expect(await isSettled(leg.released)).toBe(false);
    await settleBye(invite);
    await leg.released;
  });

  test('releases the leg after the time-out if a BYE is never answered', async () => {
    await reconnect({ byeTimeoutMs: 50 });
    const { leg } = await talking();

    leg.hangUp('done');

    await leg.released;
  });

  test.each([
    ['404 Not Found', 404, 'Not Found', false, 'response'],
    ['486 Busy Here', 486, 'Busy Here', false, 'response'],
    ['a real 408 Request Timeout', 408, 'Request Timeout', false, 'response'],
    ['a 408 made up by the stack', 408, 'Request Timeout', true, 'stack'],
    ['a 503 made up by the stack', 503, 'Service Unavailable', true, 'stack'],
  ])(
    'fails the call with status and kind after %s',
    async (_name, status, reason, madeUp, kind) => {
      const { leg, observer, invite } = await ring();

      invite.respond(status, reason, { madeUp });

      expect((await observer.until('failed')).failure).toMatchObject({
        sipStatus: status,
        reason,
        kind,
      });
      await leg.released;
      expect(drachtio.frames).toEqual([]);
    },
  );

  test('fails the call with the words of an engine that refuses the INVITE', async () => {
    const { leg, observer } = place(sip);

    (await drachtio.takeInvite()).refuse('requested protocol/transport not available');

    expect((await observer.until('failed')).failure).toMatchObject({
      reason: 'requested protocol/transport not available',
      kind: 'transport',
    });
    await leg.released;
  });

  test('fails after the time-out if the INVITE is never confirmed, and cancels it if it is confirmed later', async () => {
    await reconnect({ confirmTimeoutMs: 50 });
    const { leg, observer } = place(sip);
    const invite = await drachtio.takeInvite();

    expect((await observer.until('failed')).failure.kind).toBe('transport');
    invite.confirm();

    const cancel = await drachtio.take('CANCEL');
    expect(cancel.fields[2]).toBe(invite.transactionId);
    invite.respond(487, 'Request Terminated');
    await leg.released;
    expect(observer.kinds()).toEqual(['failed']);
  });

  test('cancelling reports the end immediately and keeps the leg until the final response', async () => {
    const { leg, observer, invite } = await ring();

    leg.cancel('ring time-out');

    expect(observer.kinds()).toEqual(['sent', '180', 'failed']);
    expect((await observer.until('failed')).failure).toMatchObject({
      sipStatus: 487,
      reason: 'ring time-out',
      kind: 'cancelled',
    });
    const cancel = await drachtio.take('CANCEL');
    expect(cancel.fields[2]).toBe(invite.transactionId);
    expect(await isSettled(leg.released)).toBe(false);
    invite.respond(487, 'Request Terminated');
    await leg.released;
    expect(sip.liveLegs()).toBe(0);
  });

  test('sends a CANCEL as soon as the engine confirms the INVITE', async () => {
    const { leg, observer } = place(sip);
    const invite = await drachtio.takeInvite();

    leg.cancel('changed my mind');
    expect(observer.kinds()).toEqual(['failed']);
    invite.confirm();

    expect((await drachtio.take('CANCEL')).fields[2]).toBe(invite.transactionId);
    invite.respond(487, 'Request Terminated');
    await leg.released;
  });

  test('sends nothing if the call is cancelled right after it was placed', async () => {
    const { leg, observer } = place(sip);

    leg.cancel('changed my mind');

    await leg.released;
    const second = place(sip);
    await drachtio.takeInvite();
    expect(observer.kinds()).toEqual(['failed']);
    expect(drachtio.frames).toEqual([]);
    second.leg.cancel('done');
  });

  test('acknowledges and hangs up a 200 that crossed the CANCEL, and does not report an answer', async () => {
    const { leg, observer, invite } = await ring();

    leg.cancel('ring time-out');
    await drachtio.take('CANCEL');
    invite.respond(200, 'OK', { body: answer });

    await drachtio.take('ACK');
    await settleBye(invite);
    await leg.released;
    expect(observer.kinds()).toEqual(['sent', '180', 'failed']);
  });

  test('releases the leg after the time-out if no final response follows a CANCEL', async () => {
    await reconnect({ followTimeoutMs: 50 });
    const { leg } = await ring();

    leg.cancel('ring time-out');

    await leg.released;
  });

  test('ends the call even if the final response is lost', async () => {
    await reconnect({ followTimeoutMs: 100 });
    const { leg, observer } = await ring();

    expect((await observer.until('failed')).failure.kind).toBe('transport');
    await drachtio.take('CANCEL');
    await leg.released;
  });

  test.each([
    ['Contact', { body: answer, contact: false }, 'OK without Contact'],
    ['SDP', {}, 'OK without SDP'],
  ])('hangs up a 200 without %s, and reports it as unusable', async (_what, options, reason) => {
    const { leg, observer, invite } = await ring();

    invite.respond(200, 'OK', options);

    expect((await observer.until('failed')).failure).toMatchObject({
      sipStatus: 200,
      reason,
      kind: 'unusable',
    });
    await drachtio.take('ACK');
    await settleBye(invite);
    await leg.released;
  });

  test('sends a BYE to the sender of the 200 if the engine cannot send within a dialog without Contact', async () => {
    const { leg, invite } = await ring();

    invite.respond(200, 'OK', { body: answer, contact: false });
    drachtio.refuse(await drachtio.take('BYE'), 'Server error: unable to find route');

    const bye = await drachtio.take('BYE');
    expect(bye.fields.slice(2)).toEqual(['', '', 'sip:127.0.0.1:5070']);
    expect(bye.sip).toMatch(/^BYE sip:15551230001@127\.0\.0\.1:5070 /);
    expect(headerOf(bye.sip, 'To')).toBe('<sip:15551230001@127.0.0.1:5070>;tag=remote');
    invite.answerBye(bye);
    await leg.released;
  });

  test('acknowledges a reliable provisional response with PRACK', async () => {
    const { observer, invite } = await ring();

    invite.respond(183, 'Session Progress', {
      headers: ['Require: 100rel', 'RSeq: 5'],
      body: answer,
    });

    const prack = await drachtio.take('PRACK');
    expect(headerOf(prack.sip, 'RAck')).toBe('5 100 INVITE');
    expect(observer.events.at(-1)).toMatchObject({ kind: 'provisional', status: 183, sdp: answer });
  });

  test('answers a BYE of the far end and ends the leg', async () => {
    const { leg, observer, invite } = await talking();

    invite.request('BYE', { headers: ['Reason: Q.850;cause=16;text="Normal call clearing"'] });

    expect((await observer.until('ended')).end).toMatchObject({
      by: 'remote',
      reason: 'Normal call clearing',
    });
    expect((await drachtio.take('SIP/2.0')).sip).toMatch(/^SIP\/2\.0 200/);
    await leg.released;
  });

  test('reports a BYE that the engine sent on its own initiative as a lost call', async () => {
    const { observer, invite } = await talking();

    invite.request('BYE', {
      source: 'application',
      headers: ['Reason: SIP;cause=200;text="Session timer expired"'],
    });

    expect((await observer.until('ended')).end).toMatchObject({
      by: 'lost',
      reason: 'Session timer expired',
    });
  });

  test('answers a re-INVITE with the SDP of the observer', async () => {
    const { observer, invite } = await talking();
    observer.reofferAnswer = 'v=0\r\ns=new\r\n';

    invite.request('INVITE', { headers: ['Content-Type: application/sdp'], body: answer });

    const response = await drachtio.take('SIP/2.0');
    expect(response.sip).toMatch(/^SIP\/2\.0 200/);
    expect(response.sip.endsWith('v=0\r\ns=new\r\n')).toBe(true);
    expect(headerOf(response.sip, 'Contact')).toBe('<sip:127.0.0.1:5060>');
    expect(observer.events.at(-1)).toMatchObject({ kind: 'reoffer', sdp: answer });
  });

  test('answers 488 to a re-INVITE that the observer refuses', async () => {
    const { observer, invite } = await talking();
    observer.reofferAnswer = undefined;

    invite.request('INVITE', { headers: ['Content-Type: application/sdp'], body: answer });

    expect((await drachtio.take('SIP/2.0')).sip).toMatch(/^SIP\/2\.0 488/);
  });

  test('answers a re-INVITE without an offer with ours, and reports the answer in its ACK', async () => {
    const { observer, invite } = await talking();

    invite.request('INVITE');
    const response = await drachtio.take('SIP/2.0');
    invite.request('ACK', { headers: ['Content-Type: application/sdp'], body: answer });

    expect(response.sip.endsWith(`${observer.furtherOffer}`)).toBe(true);
    expect((await observer.until('lateAnswer')).sdp).toBe(answer);
  });

  test.each([
    ['application/dtmf-relay', 'Signal=5\r\nDuration=160\r\n', '5', 160],
    ['application/dtmf', '#', '#', undefined],
  ])('reads a digit from INFO with %s', async (type, body, digit, durationMs) => {
    const { observer, invite } = await talking();

    invite.request('INFO', { headers: [`Content-Type: ${type}`], body });

    expect(await observer.until('dtmf')).toEqual({ kind: 'dtmf', digit, durationMs });
    expect((await drachtio.take('SIP/2.0')).sip).toMatch(/^SIP\/2\.0 200/);
  });

  test.each([
    ['OPTIONS', 200],
    ['UPDATE', 200],
    ['NOTIFY', 481],
    ['REFER', 603],
    ['MESSAGE', 501],
  ])('answers %s inside the dialog with %i', async (method, status) => {
    const { invite } = await talking();

    invite.request(method);

    expect((await drachtio.take('SIP/2.0')).sip.startsWith(`SIP/2.0 ${status} `)).toBe(true);
  });

  test('an observer that throws affects neither the connection nor other calls', async () => {
    const { observer, invite } = await talking();
    const other = await talking();
    const broken = () => {
      throw new Error('broken observer');
    };
    Object.assign(observer, { observe: broken });

    invite.request('INVITE', { headers: ['Content-Type: application/sdp'], body: answer });
    invite.request('OPTIONS');

    expect((await drachtio.take('SIP/2.0')).sip).toMatch(/^SIP\/2\.0 488/);
    expect((await drachtio.take('SIP/2.0')).sip).toMatch(/^SIP\/2\.0 200/);
    expect(sip.ready()).toBe(true);
    drachtio.dropConnections();
    await other.observer.until('ended');
  });

  test('does not send an INVITE over the frame limit, and names the limit as the reason', async () => {
    const { leg, observer } = place(sip, { offerSdp: `${offer}a=x:${'y'.repeat(maxFrameBytes)}` });

    const { failure } = await observer.until('failed');
    expect(failure.kind).toBe('transport');
    expect(failure.reason).toMatch(/exceeds the \d+ bytes/);
    await leg.released;
    const { observer: next } = place(sip);
    (await drachtio.takeInvite()).confirm();
    await next.until('sent');
  });

  test('headers of the far end never cause a frame over the limit', async () => {
    const { observer, invite } = await talking();

    invite.request('OPTIONS', { headers: [`X-Filler: ${'x'.repeat(20_000)}`] });
    await drachtio.take('SIP/2.0');
    // Responses repeat the From of the request.
    drachtio.deliver(
      invite.frame.from,
      `OPTIONS sip:a@b SIP/2.0\r\nFrom: "${'x'.repeat(20_000)}" <sip:a@b>;tag=1\r\nTo: <sip:c@d>;tag=2\r\nCall-ID: ${invite.callId}\r\nCSeq: 8 OPTIONS\r\nContent-Length: 0\r\n\r\n`,
      { transactionId: 'txn-big', dialogId: invite.dialogId },
    );
    invite.request('INFO', { headers: ['Content-Type: application/dtmf'], body: '7' });

    await observer.until('dtmf');
    const response = await drachtio.take('SIP/2.0');
    expect(headerOf(response.sip, 'CSeq')).toBe('7 INFO');
  });

  test('a frame that srf cannot read closes the connection, not the process', async () => {
    const { observer, invite } = await ring();

    drachtio.send(invite.frame.from, 'id|nonsense|x');

    const { failure } = await observer.until('failed');
    expect(failure.kind).toBe('transport');
    await eventually(() => sip.ready(), 'the engine is connected again');
  });

  describe('when the engine goes away', () => {
    test('ends calls in every state, and releases their legs', async () => {
      // Requests that end these legs on the next connection get no answer.
      await reconnect({ orphanTimeoutMs: 100 });
      const waiting = place(sip);
      await drachtio.takeInvite();
      const ringing = await ring();
      const unacknowledged = await answered();
      const talkingCall = await talking();

      drachtio.dropConnections();

      expect((await waiting.observer.until('failed')).failure.kind).toBe('transport');
      expect((await ringing.observer.until('failed')).failure).toMatchObject({ kind: 'transport' });
      expect((await unacknowledged.observer.until('ended')).end.by).toBe('lost');
      expect((await talkingCall.observer.until('ended')).end.by).toBe('lost');
      const legs = [waiting, ringing, unacknowledged, talkingCall].map(({ leg }) => leg.released);
      await Promise.all(legs);
      expect(sip.liveLegs()).toBe(0);
    });

    test('uses the next connection to end the remaining legs by id', async () => {
      const ringing = await ring();
      const talkingCall = await talking();

      drachtio.dropConnections();

      const cancel = await drachtio.take('CANCEL');
      expect(cancel.fields[2]).toBe(ringing.invite.transactionId);
      const bye = await drachtio.take('BYE');
      expect(bye.fields[3]).toBe(talkingCall.invite.dialogId);
    });

    test('uses the next connection to hang up both legs of a call, including the leg that is hung up because the other was lost', async () => {
      const person = await talking();
      const agent = await talking();
      const tell = person.observer.observe.bind(person.observer);
      // Acts like a bridge, which hangs up the other leg while it handles the event.
      person.observer.observe = (event) => {
        tell(event);
        if (event.kind === 'ended') agent.leg.hangUp('transfer is over');
      };
      drachtio.dropConnections();
      await person.observer.until('ended');
      const byes = [await drachtio.take('BYE'), await drachtio.take('BYE')];

      expect(new Set(byes.map(({ fields }) => fields[3]))).toEqual(
        new Set([person.invite.dialogId, agent.invite.dialogId]),
      );
      for (const bye of byes) {
        const { invite } = bye.fields[3] === person.invite.dialogId ? person : agent;
        invite.answerBye(bye);
      }
      await Promise.all([person.leg.released, agent.leg.released]);
    });

    test('keeps a leg whose BYE was lost until another BYE has ended it', async () => {
      const { leg, invite } = await talking();
      leg.hangUp('over');
      await drachtio.take('BYE');

      drachtio.dropConnections();

      const bye = await drachtio.take('BYE');
      expect(await isSettled(leg.released)).toBe(false);
      invite.answerBye(bye);
      await leg.released;
    });

    test('hangs up through another engine if the first one stays unreachable', async () => {
      const other = await ScriptedDrachtio.start();
      await sip[Symbol.asyncDispose]();
      sip = sipOver([drachtio, other], { takeOverAfterMs: 50, abandonedSweepMs: 20 });
      await eventually(() => sip.connected().length === 2, 'both engines are connected');
      const { invite } = await talking();

      await drachtio[Symbol.asyncDispose]();

      other.refuse(await other.take('ACK'), 'Server error: unable to find dialog');
      other.refuse(await other.take('BYE'), 'Server error: unable to find dialog');
      const bye = await other.take('BYE');
      expect(headerOf(bye.sip, 'Call-ID')).toBe(invite.callId);
      expect(headerOf(bye.sip, 'To')).toMatch(/;tag=remote$/);
      await other[Symbol.asyncDispose]();
    });

    test('treats a server that does not answer pings as lost', async () => {
      await reconnect({ pingIntervalMs: 20, pongTimeoutMs: 600 });
      const { observer } = await talking();

      drachtio.answersPing = false;

      const { end } = await observer.until('ended');
      expect(end).toMatchObject({
        by: 'lost',
        reason: 'drachtio connection lost: no answer to ping',
      });
    });

    test('fails a call immediately while no engine is connected', async () => {
      await drachtio[Symbol.asyncDispose]();
      await eventually(() => !sip.ready(), 'the loss is noticed');

      const { leg, observer } = place(sip);

      expect((await observer.until('failed')).failure).toMatchObject({
        reason: 'no SIP engine is connected',
        kind: 'transport',
      });
      await leg.released;
    });

    test('places calls on the remaining engines', async () => {
      const other = await ScriptedDrachtio.start();
      await sip[Symbol.asyncDispose]();
      sip = sipOver([drachtio, other]);
      await eventually(() => sip.connected().length === 2, 'both engines are connected');
      place(sip);
      place(sip);
      await Promise.all([drachtio.takeInvite(), other.takeInvite()]);

      await drachtio[Symbol.asyncDispose]();
      await eventually(() => sip.connected().length === 1, 'one engine is left');
      place(sip);
      place(sip);

      await other.takeInvite();
      await other.takeInvite();
      await other[Symbol.asyncDispose]();
    });
  });

  describe('digest', () => {
    const challenge =
      'WWW-Authenticate: Digest realm="lab", nonce="abc", qop="auth", algorithm=MD5';

    beforeEach(async () => {
      await reconnect({}, { auth: { username: 'alice', password: 'secret' } });
    });

    async function challenged() {
      const { leg, observer } = place(sip);
      const first = await drachtio.takeInvite();
      first.confirm();
      first.respond(401, 'Unauthorized', { headers: [challenge], contact: false });
      return { leg, observer, first, second: await drachtio.takeInvite() };
    }

    test('answers a challenge and reports the new transaction', async () => {
      const { observer, first, second } = await challenged();
      second.confirm();
      second.respond(200, 'OK', { body: answer });

      await observer.until('answered');
      expect(headerOf(second.frame.sip, 'Authorization')).toMatch(/^Digest username="alice"/);
      expect(second.callId).toBe(first.callId);
      expect(observer.kinds()).toEqual(['sent', 'resent', 'answered']);
      expect((await observer.until('resent')).leg.transactionId).toBe(second.transactionId);
      expect((await observer.until('answered')).leg).toMatchObject({
        transactionId: second.transactionId,
        inviteCseq: 101,
      });
    });

    test('cancelling after the challenge cancels the new transaction', async () => {
      const { leg, observer, second } = await challenged();
      second.confirm();
      await observer.until('resent');

      leg.cancel('changed my mind');

      expect((await drachtio.take('CANCEL')).fields[2]).toBe(second.transactionId);
    });

    test('cancelling while the challenge is being answered cancels the new transaction', async () => {
      const { leg, second } = await challenged();

      leg.cancel('changed my mind');
      second.confirm();

      expect((await drachtio.take('CANCEL')).fields[2]).toBe(second.transactionId);
    });

    test('does not answer a challenge to a call that was given up', async () => {
      const { leg } = place(sip);
      const invite = await drachtio.takeInvite();
      invite.confirm();
      leg.cancel('changed my mind');
      await drachtio.take('CANCEL');

      invite.respond(401, 'Unauthorized', { headers: [challenge], contact: false });

      await leg.released;
      expect(drachtio.frames).toEqual([]);
    });

    test('treats a second challenge as the final response', async () => {
      const { observer, second } = await challenged();
      second.confirm();
      second.respond(401, 'Unauthorized', { headers: [challenge], contact: false });

      expect((await observer.until('failed')).failure).toMatchObject({
        sipStatus: 401,
        kind: 'response',
      });
    });

    test('stops answering a gateway whose nonce is stale again and again', async () => {
      const { observer, second } = await challenged();
      const stale = (nonce: number) => challenge.replace('abc"', `n${nonce}", stale=true`);
      let invite = second;
      for (let round = 1; round <= 4; round += 1) {
        invite.confirm();
        invite.respond(183, 'Session Progress');
        invite.respond(401, 'Unauthorized', { headers: [stale(round)], contact: false });
        if (round < 4) invite = await drachtio.takeInvite();
      }

      expect((await observer.until('failed')).failure.sipStatus).toBe(401);
    });

    test('fails the call with a reason if a challenge would exceed the control frame', async () => {
      const { leg, observer } = place(sip);
      const invite = await drachtio.takeInvite();
      invite.confirm();
      invite.respond(401, 'Unauthorized', {
        headers: [`WWW-Authenticate: Digest realm="lab", nonce="${'n'.repeat(maxFrameBytes)}"`],
        contact: false,
      });

      expect((await observer.until('failed')).failure).toMatchObject({
        reason: 'digest challenge too large for a control frame',
        kind: 'transport',
      });
      await leg.released;
    });
  });

  describe('orphans', () => {
    const stored = (overrides: Partial<StoredLeg> = {}): StoredLeg => ({
      engine: `127.0.0.1:${drachtio.port}`,
      sipCallId: 'orphan',
      transactionId: 'txn-orphan',
      requestUri: 'sip:callee@127.0.0.1:5070',
      localTag: 'mine',
      localUri: 'sip:100@127.0.0.1:5060',
      remoteUri: 'sip:callee@127.0.0.1:5070',
      inviteCseq: 10,
      ...overrides,
    });
    const answeredState = {
      dialogId: 'orphan;from-tag=mine',
      remoteTag: 'theirs',
      remoteTarget: 'sip:callee@127.0.0.1:5071',
      routeSet: ['sip:proxy@127.0.0.1:5072;lr'],
    };

    const earlyState = {
      remoteTag: 'theirs',
      remoteTarget: 'sip:callee@127.0.0.1:5071',
      routeSet: ['sip:proxy@127.0.0.1:5072;lr'],
    };
    /** Reason phrases exactly as the server sends them. */
    const unknownTransaction = 'unable to cancel unknown transaction id: txn-orphan';
    const alreadyCancelled = 'internal server error canceling transaction id: txn-orphan';

    function confirmCancel(cancel: ControlFrame): void {
      const message = 'CANCEL sip:a@b SIP/2.0\r\nCSeq: 10 CANCEL\r\n\r\n';
      drachtio.confirm(cancel, 'txn-cancel', message);
    }

    /** Refuses ACK and BYE, because the engine does not know the dialog. */
    async function refuseBye(): Promise<void> {
      drachtio.refuse(await drachtio.take('ACK'), 'Server error: unable to find dialog');
      drachtio.refuse(await drachtio.take('BYE'), 'Server error: unable to find dialog');
    }

    async function byeResponse(status: number): Promise<void> {
      const bye = await drachtio.take('BYE');
      const message = `BYE sip:a@b SIP/2.0\r\nFrom: <sip:a@b>;tag=mine\r\nTo: <sip:c@d>;tag=theirs\r\nCall-ID: orphan\r\nCSeq: 11 BYE\r\nContent-Length: 0\r\n\r\n`;
      drachtio.confirm(bye, 'txn-bye', message);
      drachtio.deliver(bye.from, message.replace('BYE sip:a@b SIP/2.0', `SIP/2.0 ${status} X`), {
        transactionId: 'txn-bye',
        dialogId: 'orphan;from-tag=mine',
      });
    }

    test.each([
      ['its own engine', {}],
      // It may be the same engine under another name.
      ['an engine of another address', { engine: '127.0.0.1:1' }],
    ])('cancels a leg that rang by its transaction, on %s', async (_name, other) => {
      const result = sip.endOrphan(stored(other));

      const cancel = await drachtio.take('CANCEL');
      expect(cancel.fields.slice(2)).toEqual(['txn-orphan', '']);
      confirmCancel(cancel);
      await refuseBye();
      await refuseBye();
      drachtio.refuse(await drachtio.take('CANCEL'), unknownTransaction);
      expect(await result).toBe('ended');
    });

    test('hangs up a leg whose answer crossed the CANCEL', async () => {
      const result = sip.endOrphan(stored());

      confirmCancel(await drachtio.take('CANCEL'));
      await refuseBye();
      await drachtio.take('ACK');
      await byeResponse(200);
      expect(await result).toBe('ended');
    });

    test('hangs up a leg whose answer comes long after the CANCEL at the next attempt', async () => {
      const first = sip.endOrphan(stored());
      confirmCancel(await drachtio.take('CANCEL'));
      await refuseBye();
      await refuseBye();
      drachtio.refuse(await drachtio.take('CANCEL'), alreadyCancelled);
      expect(await first).toBe('cancelled');

      const second = sip.endOrphan(stored());
      drachtio.refuse(await drachtio.take('CANCEL'), alreadyCancelled);
      await drachtio.take('ACK');
      await byeResponse(200);
      expect(await second).toBe('ended');
      expect(drachtio.frames).toEqual([]);
    });

    test('does not report a leg as over if its engine goes away after the CANCEL', async () => {
      const result = sip.endOrphan(stored());
      confirmCancel(await drachtio.take('CANCEL'));
      await refuseBye();
      drachtio.dropConnections();

      expect(['cancelled', 'unreachable']).toContain(await result);
    });

    test('sends a BYE in the early dialog from another engine if the engine of a leg that rang is unreachable', async () => {
      const result = sip.endOrphan(stored(earlyState));

      drachtio.refuse(await drachtio.take('CANCEL'), unknownTransaction);
      await refuseBye();
      await eventually(() => drachtio.frames.length === 1, 'the rebuilt BYE arrives');
      const [bye] = drachtio.frames;
      expect(bye?.fields.slice(2)).toEqual(['', '', 'sip:proxy@127.0.0.1:5072;lr']);
      expect(bye?.sip).toMatch(/^BYE sip:callee@127\.0\.0\.1:5071 SIP\/2\.0/);
      expect(headerOf(bye?.sip ?? '', 'To')).toBe('<sip:callee@127.0.0.1:5070>;tag=theirs');
      await byeResponse(200);
      expect(await result).toBe('ended');
    });

    test('cancels a ringing leg on the engine that knows it, without a BYE', async () => {
      const result = sip.endOrphan(stored(earlyState));

      confirmCancel(await drachtio.take('CANCEL'));
      await refuseBye();
      await refuseBye();
      drachtio.refuse(await drachtio.take('CANCEL'), unknownTransaction);

      expect(await result).toBe('ended');
      expect(drachtio.frames).toEqual([]);
    });

    test('reads tag, Contact and route of each early dialog from the 18x of its branch', async () => {
      const { observer, invite } = await ring();
      expect(observer.ringingLeg).toMatchObject({
        transactionId: invite.transactionId,
        remoteTag: 'remote',
        remoteTarget: 'sip:callee@127.0.0.1:5070',
      });
      expect(observer.ringingLeg?.dialogId).toBeUndefined();

      const headers = ['Record-Route: <sip:127.0.0.2;lr>, <sip:127.0.0.3;lr>'];
      invite.respond(183, 'Session Progress', { headers, contact: false });
      await eventually(() => observer.kinds().includes('183'), 'the 183 is reported');
      expect(observer.ringingLeg).toMatchObject({
        remoteTarget: 'sip:callee@127.0.0.1:5070',
        routeSet: ['sip:127.0.0.3;lr', 'sip:127.0.0.2;lr'],
      });

      invite.respond(181, 'Call Is Being Forwarded', { contact: false, tag: 'branch' });
      await eventually(() => observer.kinds().includes('181'), 'the 181 is reported');
      expect(observer.ringingLeg).toEqual({
        ...(await observer.until('sent')).leg,
        remoteTag: 'branch',
      });
    });

    test('acknowledges an answered leg once more, and sends a BYE by its dialog', async () => {
      const result = sip.endOrphan(stored(answeredState));

      const ack = await drachtio.take('ACK');
      expect(ack.fields[3]).toBe('orphan;from-tag=mine');
      drachtio.confirm(ack, 'txn-ack', 'ACK sip:a@b SIP/2.0\r\nCSeq: 10 ACK\r\n\r\n');
      await byeResponse(200);
      expect(await result).toBe('ended');
    });

    test('finds a leg whose answer was not stored by the dialog id that drachtio derives', async () => {
      const result = sip.endOrphan(stored());

      drachtio.refuse(await drachtio.take('CANCEL'), 'unable to cancel unknown transaction id');
      const ack = await drachtio.take('ACK');
      expect(ack.fields[3]).toBe('orphan;from-tag=mine');
      drachtio.refuse(ack, 'Server error');
      await byeResponse(200);
      expect(await result).toBe('ended');
    });

    test('sends a BYE that it builds from the stored leg if the engine forgot the dialog', async () => {
      const result = sip.endOrphan(stored(answeredState));

      await refuseBye();
      await eventually(() => drachtio.frames.length === 1, 'the rebuilt BYE arrives');
      const [bye] = drachtio.frames;
      expect(bye?.fields.slice(2)).toEqual(['', '', 'sip:proxy@127.0.0.1:5072;lr']);
      expect(bye?.sip).toMatch(/^BYE sip:callee@127\.0\.0\.1:5071 SIP\/2\.0/);
      expect(headerOf(bye?.sip ?? '', 'Call-ID')).toBe('orphan');
      expect(headerOf(bye?.sip ?? '', 'From')).toBe('<sip:100@127.0.0.1:5060>;tag=mine');
      expect(headerOf(bye?.sip ?? '', 'To')).toBe('<sip:callee@127.0.0.1:5070>;tag=theirs');
      expect(headerOf(bye?.sip ?? '', 'CSeq')).toBe('1010 BYE');
      await byeResponse(200);
      expect(await result).toBe('ended');
    });

    test.each([
      ['Contact', ['Contact: <sip:callee@10.0.0.7:5060>'], []],
      [
        'Record-Route',
        ['Contact: <sip:callee@198.51.100.1>', 'Record-Route: <sip:192.168.0.2;lr>'],
        ['sip:192.168.0.2;lr'],
      ],
    ])(
      'sends a rebuilt BYE to where the 200 came from if its %s shows a NAT',
      async (_name, headers, recorded) => {
        const { observer, invite } = await ring();
        invite.respond(200, 'OK', { body: answer, headers, contact: false });
        const { leg } = await observer.until('answered');
        expect(leg.nextHop).toBe('sip:127.0.0.1:5070');
        expect(leg.routeSet ?? []).toEqual(recorded);

        const result = sip.endOrphan(leg);
        await refuseBye();
        await eventually(() => drachtio.frames.length === 1, 'the rebuilt BYE arrives');
        expect(drachtio.frames[0]?.fields.slice(2)).toEqual(['', '', 'sip:127.0.0.1:5070']);
        await byeResponse(200);
        expect(await result).toBe('ended');
      },
    );

    test('sends a rebuilt BYE to a public Contact, as the standard requires', async () => {
      const { observer, invite } = await ring();
      const headers = ['Contact: <sip:callee@198.51.100.1>'];
      invite.respond(200, 'OK', { body: answer, headers, contact: false });

      expect((await observer.until('answered')).leg.routeSet).toBeUndefined();
    });

    test.each([
      ['481, because the far end has forgotten the dialog', 481, 'gone'],
      ['a made-up 408, because no server answered', 408, 'unreachable'],
    ])('judges a BYE that gets %s', async (_name, status, expected) => {
      const result = sip.endOrphan(stored(answeredState));

      drachtio.refuse(await drachtio.take('ACK'), 'Server error');
      await byeResponse(status);

      expect(await result).toBe(expected);
    });

    test('reports a leg that rang and that no engine knows as gone', async () => {
      const result = sip.endOrphan(stored());

      drachtio.refuse(await drachtio.take('CANCEL'), 'unable to cancel unknown transaction id');
      drachtio.refuse(await drachtio.take('ACK'), 'Server error');
      drachtio.refuse(await drachtio.take('BYE'), 'Server error');

      expect(await result).toBe('gone');
    });

    test('sends the rebuilt BYE from another engine, which does not know the ids', async () => {
      const result = sip.endOrphan(stored({ ...answeredState, engine: '127.0.0.1:1' }));

      await refuseBye();
      await byeResponse(200);

      expect(await result).toBe('ended');
      expect(drachtio.frames).toEqual([]);
    });

    test('does not wait forever for a silent engine', async () => {
      await reconnect({ orphanTimeoutMs: 100 });

      expect(await sip.endOrphan(stored(answeredState))).toBe('unreachable');
    });

    test('reports a leg as unreachable if no engine is connected', async () => {
      await drachtio[Symbol.asyncDispose]();
      await sip[Symbol.asyncDispose]();
      sip = sipOver([], { orphanTimeoutMs: 100 });

      expect(await sip.endOrphan(stored(answeredState))).toBe('unreachable');
    });

    test('waits for an engine that connects in time', async () => {
      const { port } = drachtio;
      await drachtio[Symbol.asyncDispose]();
      await eventually(() => !sip.ready(), 'the loss is noticed');
      const result = sip.endOrphan(stored());
      drachtio = await ScriptedDrachtio.start(port);

      confirmCancel(await drachtio.take('CANCEL'));
      await refuseBye();
      await refuseBye();
      drachtio.refuse(await drachtio.take('CANCEL'), unknownTransaction);
      expect(await result).toBe('ended');
    });
  });

  test('does not treat a refused secret as a connection', async () => {
    await using other = createDrachtioSip({
      servers: [{ ...drachtio.address, secret: 'wrong' }],
      trunks: loadTrunks({ secrets: () => ({}) }),
      allowedNetworks: [],
      logger: silentLogger,
      clock: { now: () => new Date() },
      limits: testLimits,
    });

    await eventually(() => drachtio.refusals > 1, 'it has tried again');
    expect(other.ready()).toBe(false);
  });

  test('drops a server that does not answer the authentication, and retries', async () => {
    await sip[Symbol.asyncDispose]();
    drachtio.authenticates = false;
    sip = sipOver([drachtio], { connectTimeoutMs: 50 });
    await eventually(() => drachtio.connections === 1, 'it is connected');
    expect(sip.ready()).toBe(false);

    drachtio.authenticates = true;

    await eventually(() => sip.ready(), 'the engine is connected');
  });

  test('stopping hangs up answered calls and cancels ringing calls', async () => {
    const ringing = await ring();
    const talkingCall = await talking();

    const stopped = sip[Symbol.asyncDispose]();

    await drachtio.take('CANCEL');
    await drachtio.take('BYE');
    await stopped;
    expect((await ringing.observer.until('failed')).failure.kind).toBe('cancelled');
    expect((await talkingCall.observer.until('ended')).end.by).toBe('local');
    await eventually(() => drachtio.connections === 0, 'the connection is closed');
  });
});
