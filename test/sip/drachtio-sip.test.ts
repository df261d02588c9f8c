import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { CallId } from '../../src/calls/contract/identity.ts';
import type { DrachtioServer } from '../../src/config.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createDrachtioSip, type DrachtioSip } from '../../src/sip/drachtio-sip.ts';
import type { SipLimits } from '../../src/sip/engine/sip-limits.ts';
import { builtInTrunk, loadTrunks } from '../../src/sip/trunks/trunks.ts';
import { onlyEmbedded } from '../edge/engines.ts';
import { eventually } from '../support/eventually.ts';
import { one, RawCallee, type RawMessage } from '../support/raw-callee.ts';
import { RecordingLeg } from '../support/recording-leg.ts';
import { silenceWithinMs, startEngine, type TestEngine } from '../support/sip-engine.ts';

const offer = [
  'v=0',
  'o=- 1 1 IN IP4 127.0.0.1',
  's=-',
  'c=IN IP4 127.0.0.1',
  't=0 0',
  'm=audio 20000 RTP/AVP 0',
  '',
].join('\r\n');
const answer = offer.replace('20000', '30000');
const secret = 'cymru';

function serverOf(engine: TestEngine): DrachtioServer {
  return { host: engine.controlHost, port: engine.controlPort, secret };
}

/**
 * Tests the whole path: the SIP port, drachtio-srf, the embedded engine, UDP, and a callee that
 * does only what the test writes.
 */
describe('sip port over the embedded engine', () => {
  let engine: TestEngine;
  let callee: RawCallee;
  let sip: DrachtioSip;

  function connect(server = serverOf(engine), limits: Partial<SipLimits> = {}): DrachtioSip {
    const gateway = { host: '127.0.0.1', port: callee.port, transport: 'udp' } as const;
    const carrier = {
      ...builtInTrunk('carrier', gateway),
      auth: { username: 'alice', password: 'secret' },
    };
    return createDrachtioSip({
      servers: [server],
      trunks: loadTrunks({ secrets: () => ({}), builtIn: [carrier] }),
      allowedNetworks: ['127.0.0.0/8'],
      logger: silentLogger,
      clock: { now: () => new Date() },
      limits: {
        reconnectMinMs: 20,
        reconnectMaxMs: 50,
        disposeTimeoutMs: 300,
        crossingMs: 50,
        ...limits,
      },
    });
  }

  beforeEach(async () => {
    engine = await startEngine();
    callee = await RawCallee.start();
    sip = connect();
    await eventually(() => sip.ready(), 'the engine is connected');
  });

  afterEach(async () => {
    await sip[Symbol.asyncDispose]();
    await engine.close();
    await callee[Symbol.asyncDispose]();
  });

  function place(port: DrachtioSip = sip) {
    const observer = new RecordingLeg();
    const leg = port.place(
      {
        callId: 'call-1' as CallId,
        target: { kind: 'tel', number: '15551230001' },
        caller: '15550001111',
        offerSdp: offer,
      },
      observer,
    );
    return { leg, observer };
  }

  async function ring(port?: DrachtioSip) {
    const { leg, observer } = place(port);
    const invite = await callee.take('INVITE');
    callee.reply(invite, 180, 'Ringing');
    await observer.until('provisional');
    return { leg, observer, invite };
  }

  async function answered(port?: DrachtioSip) {
    const call = await ring(port);
    callee.reply(call.invite, 200, 'OK', { body: answer });
    await call.observer.until('answered');
    return call;
  }

  async function talking(port?: DrachtioSip) {
    const call = await answered(port);
    call.leg.acknowledge();
    await callee.take('ACK');
    return call;
  }

  async function takeBye(): Promise<RawMessage> {
    const bye = await callee.take('BYE');
    callee.reply(bye, 200, 'OK');
    return bye;
  }

  test('sends a BYE when this side hangs up', async () => {
    const { leg, observer, invite } = await answered();
    expect(one(invite, 'from')).toMatch(/^<sip:15550001111@127\.0\.0\.1:\d+>;tag=/);
    expect(invite.body).toBe(offer);
    expect(callee.has('ACK')).toBe(false);

    leg.acknowledge();
    await callee.take('ACK');
    leg.hangUp('done');
    await takeBye();

    await leg.released;
    expect(observer.kinds()).toEqual(['sent', '180', 'answered', 'ended']);
    expect((await observer.until('answered')).sdp).toBe(answer);
    expect((await observer.until('ended')).end).toMatchObject({ by: 'local', reason: 'done' });
  });

  test('ends a call that the far end hangs up', async () => {
    const { leg, observer, invite } = await talking();

    callee.request(invite, 'BYE');

    await callee.takeResponse(200);
    expect((await observer.until('ended')).end.by).toBe('remote');
    await leg.released;
  });

  test('reports early media with its SDP', async () => {
    const { observer } = place();
    const invite = await callee.take('INVITE');

    callee.reply(invite, 183, 'Session Progress', { body: answer });

    expect(await observer.until('provisional')).toMatchObject({
      kind: 'provisional',
      status: 183,
      sdp: answer,
    });
  });

  test.each([
    [404, 'Not Found'],
    [480, 'Temporarily Unavailable'],
    [486, 'Busy Here'],
    [503, 'Service Unavailable'],
    [603, 'Decline'],
  ])('%i %s', async (status, reason) => {
    const { leg, observer, invite } = await ring();

    callee.reply(invite, status, reason);

    expect((await observer.until('failed')).failure).toMatchObject({
      sipStatus: status,
      reason,
      kind: 'response',
    });
    await callee.take('ACK');
    await leg.released;
  });

  test('fails on a redirection without following it', async () => {
    const { observer, invite } = await ring();

    callee.reply(invite, 302, 'Moved Temporarily');

    expect((await observer.until('failed')).failure).toMatchObject({ sipStatus: 302 });
  });

  test('reports a port without a listener as a failure of the stack', async () => {
    const closed = await RawCallee.start();
    const { port } = closed;
    await closed[Symbol.asyncDispose]();
    const observer = new RecordingLeg();

    sip.place(
      {
        callId: 'call-1' as CallId,
        target: { kind: 'sip', user: 'bob', host: '127.0.0.1', port },
        caller: '100',
        offerSdp: offer,
      },
      observer,
    );

    expect((await observer.until('failed')).failure).toMatchObject({
      sipStatus: 503,
      kind: 'stack',
    });
  });

  test('reports a silent target as a failure of the stack', async () => {
    const hasty = await startEngine({ timers: { t1Ms: 5 } });
    const port = connect(serverOf(hasty));
    await eventually(() => port.ready(), 'the engine is connected');

    const { leg, observer } = place(port);

    expect((await observer.until('failed', silenceWithinMs)).failure).toMatchObject({
      sipStatus: 408,
      kind: 'stack',
    });
    await leg.released;
    await port[Symbol.asyncDispose]();
    await hasty.close();
  });

  test('acknowledges a reliable provisional response', async () => {
    const { observer } = place();
    const invite = await callee.take('INVITE');

    callee.reply(invite, 183, 'Session Progress', {
      body: answer,
      headers: ['Require: 100rel', 'RSeq: 17'],
    });

    const prack = await callee.take('PRACK');
    expect(one(prack, 'rack')).toMatch(/^17 \d+ INVITE$/);
    callee.reply(prack, 200, 'OK');
    expect(await observer.until('provisional')).toMatchObject({ status: 183, sdp: answer });
  });

  test('sends ACK and BYE through a proxy that record-routed, and stores the route', async () => {
    const { leg, observer, invite } = await ring();
    const proxy = `<sip:127.0.0.1:${callee.port};lr;proxy=1>`;

    callee.reply(invite, 200, 'OK', { body: answer, headers: [`Record-Route: ${proxy}`] });
    const { leg: stored } = await observer.until('answered');
    leg.acknowledge();
    const ack = await callee.take('ACK');
    leg.hangUp('done');
    const bye = await takeBye();

    expect(stored.routeSet).toEqual([proxy.slice(1, -1)]);
    expect(one(ack, 'route')).toBe(proxy);
    expect(one(bye, 'route')).toBe(proxy);
  });

  test('places a direct call to the target without credentials', async () => {
    const observer = new RecordingLeg();
    sip.place(
      {
        callId: 'call-1' as CallId,
        target: { kind: 'sip', user: 'bob', host: 'localhost', port: callee.port },
        caller: '100',
        offerSdp: offer,
      },
      observer,
    );

    const invite = await callee.take('INVITE');
    expect(invite.startLine).toBe(`INVITE sip:bob@localhost:${callee.port} SIP/2.0`);
    callee.reply(invite, 401, 'Unauthorized', {
      headers: ['WWW-Authenticate: Digest realm="lab", nonce="abc"'],
    });
    expect((await observer.until('failed')).failure).toMatchObject({ sipStatus: 401 });
    expect((await observer.until('sent')).gateway).toBe(`127.0.0.1:${callee.port}`);
  });

  test('answers a challenge with the digest credentials of the trunk', async () => {
    const { leg, observer } = place();
    const challenged = await callee.take('INVITE');
    callee.reply(challenged, 407, 'Proxy Authentication Required', {
      headers: ['Proxy-Authenticate: Digest realm="lab", nonce="abc", qop="auth", algorithm=MD5'],
    });
    await callee.take('ACK');

    const invite = await callee.take('INVITE');
    callee.reply(invite, 200, 'OK', { body: answer });
    await observer.until('answered');
    leg.acknowledge();
    await callee.take('ACK');
    leg.hangUp('done');
    await takeBye();

    expect(one(invite, 'proxy-authorization')).toMatch(/^Digest username="alice"/);
    expect(observer.kinds()).toEqual(['sent', 'resent', 'answered', 'ended']);
    await leg.released;
  });

  test('repeats a challenged BYE with credentials for its own URI', async () => {
    const { leg } = await talking();

    leg.hangUp('done');
    const challenged = await callee.take('BYE');
    callee.reply(challenged, 407, 'Proxy Authentication Required', {
      headers: ['Proxy-Authenticate: Digest realm="lab", nonce="abc", algorithm=MD5'],
    });

    const bye = await takeBye();
    expect(bye.startLine).toBe(`BYE sip:callee@127.0.0.1:${callee.port} SIP/2.0`);
    expect(one(bye, 'to')).toBe(one(challenged, 'to'));
    expect(one(bye, 'proxy-authorization')).toContain(`uri="sip:callee@127.0.0.1:${callee.port}"`);
    expect(one(bye, 'cseq')).not.toBe(one(challenged, 'cseq'));
    await leg.released;
  });

  test('cancels a ringing phone', async () => {
    const { leg, observer, invite } = await ring();

    leg.cancel('ring time-out');
    const cancel = await callee.take('CANCEL');
    callee.reply(cancel, 200, 'OK');
    callee.reply(invite, 487, 'Request Terminated');

    await leg.released;
    expect(observer.kinds()).toEqual(['sent', '180', 'failed']);
    expect((await observer.until('failed')).failure.kind).toBe('cancelled');
  });

  test('sends a CANCEL only after the first provisional response', async () => {
    const { leg, observer } = place();
    const invite = await callee.take('INVITE');
    await observer.until('sent');

    leg.cancel('changed my mind');
    expect(callee.has('CANCEL')).toBe(false);
    callee.reply(invite, 180, 'Ringing');

    callee.reply(await callee.take('CANCEL'), 200, 'OK');
    callee.reply(invite, 487, 'Request Terminated');
    await leg.released;
    expect(observer.kinds()).toEqual(['sent', 'failed']);
  });

  test('acknowledges and hangs up a 200 that crossed the CANCEL', async () => {
    const { leg, observer, invite } = await ring();

    leg.cancel('ring time-out');
    await callee.take('CANCEL');
    callee.reply(invite, 200, 'OK', { body: answer });

    await callee.take('ACK');
    await takeBye();
    await leg.released;
    expect(observer.kinds()).toEqual(['sent', '180', 'failed']);
  });

  test('sends ACK and BYE if the call hangs up before it acknowledges', async () => {
    const { leg } = await answered();

    leg.hangUp('no media');

    await callee.take('ACK');
    await takeBye();
    await leg.released;
  });

  onlyEmbedded(
    'hangs up a second fork that answers, which drachtio-server leaves connected',
    async () => {
      const { leg, observer, invite } = await answered();

      callee.reply(invite, 200, 'OK', { body: answer, tag: 'other' });

      const bye = await takeBye();
      expect(one(bye, 'to')).toMatch(/tag=other/);
      leg.acknowledge();
      await eventually(() => callee.has('ACK'), 'the first is acknowledged');
      expect(observer.kinds()).toEqual(['sent', '180', 'answered']);
      leg.hangUp('done');
      expect(one(await takeBye(), 'to')).toMatch(/tag=callee/);
    },
  );

  test('answers a re-INVITE with an offer', async () => {
    const { observer, invite } = await talking();
    observer.reofferAnswer = offer.replace('20000', '20002');

    callee.request(invite, 'INVITE', { body: answer });

    const response = await callee.takeResponse(200);
    expect(response.body).toBe(observer.reofferAnswer);
    expect((await observer.until('reoffer')).sdp).toBe(answer);
  });

  test('leaves the call up after a refused re-INVITE', async () => {
    const { observer, invite } = await talking();
    observer.reofferAnswer = undefined;

    callee.request(invite, 'INVITE', { body: answer });

    await callee.takeResponse(488);
    expect(observer.kinds()).toEqual(['sent', '180', 'answered', 'reoffer']);
  });

  test('answers an UPDATE with an offer, while ringing and when answered', async () => {
    const { leg, observer, invite } = await ring();

    callee.request(invite, 'UPDATE', { body: answer });
    await callee.takeResponse(200);
    callee.reply(invite, 200, 'OK', { body: answer });
    await observer.until('answered');
    leg.acknowledge();

    callee.request(invite, 'UPDATE', { body: answer });

    const response = await callee.takeResponse(200);
    expect(response.method).toBe('UPDATE');
    expect(observer.events.filter((event) => event.kind === 'reoffer')).toHaveLength(2);
  });

  test('reports a digit in INFO', async () => {
    const { observer, invite } = await talking();

    callee.request(invite, 'INFO', {
      type: 'application/dtmf-relay',
      body: 'Signal=5\r\nDuration=160\r\n',
    });

    await callee.takeResponse(200);
    expect(await observer.until('dtmf')).toEqual({ kind: 'dtmf', digit: '5', durationMs: 160 });
  });

  test('answers OPTIONS of strangers, and refuses their INVITE', async () => {
    const { invite } = await talking();
    const stranger: RawMessage = {
      ...invite,
      headers: new Map([
        ...invite.headers,
        ['call-id', ['stranger']],
        ['from', ['<sip:us@127.0.0.1>']],
      ]),
    };

    callee.request(stranger, 'OPTIONS');
    expect((await callee.takeResponse(200)).method).toBe('OPTIONS');
    callee.request(stranger, 'INVITE', { body: offer });
    await callee.takeResponse(480);
  });

  test('ends ringing and answered calls when the engine is killed', async () => {
    const ringing = await ring();
    const up = await talking();

    await engine.close();

    expect((await ringing.observer.until('failed')).failure.kind).toBe('transport');
    expect((await up.observer.until('ended')).end.by).toBe('lost');
  });

  test('the next engine hangs up a callee that a killed engine left in a call', async () => {
    const { leg } = await talking();
    const { controlPort } = engine;
    let isReleased = false;
    void leg.released.then(() => {
      isReleased = true;
    });

    await engine.close();
    engine = await startEngine({ controlPort });

    const bye = await takeBye();
    expect(one(bye, 'to')).toMatch(/tag=callee/);
    expect(isReleased).toBe(false);
    callee.reply(bye, 200, 'OK');
    await leg.released;
  });

  test('the next engine ends a phone that a killed engine left ringing, in its early dialog', async () => {
    const { leg, observer, invite } = await ring();
    const { controlPort } = engine;

    await engine.close();
    engine = await startEngine({ controlPort });

    const bye = await takeBye();
    expect(bye.startLine).toBe(`BYE sip:callee@127.0.0.1:${callee.port} SIP/2.0`);
    expect(one(bye, 'call-id')).toBe(one(invite, 'call-id'));
    expect(one(bye, 'from')).toBe(one(invite, 'from'));
    expect(one(bye, 'to')).toMatch(/tag=callee$/);
    await leg.released;
    expect(observer.kinds()).toEqual(['sent', '180', 'failed']);
  });

  describe('legs of an earlier process', () => {
    /**
     * Simulates the death of the first process: its connection closes, but the engine and the
     * callee stay.
     */
    async function orphanOf(call: Awaited<ReturnType<typeof ring>>, kind: 'sent' | 'answered') {
      return (await call.observer.until(kind)).leg;
    }

    let first: DrachtioSip;

    beforeEach(async () => {
      // This limit leaves the first process no time to end its calls when it is disposed of.
      first = connect(serverOf(engine), { disposeTimeoutMs: 1 });
      await eventually(() => first.ready(), 'the first process is connected');
    });

    afterEach(() => first[Symbol.asyncDispose]());

    test('hangs up a leg that is up, from another connection', async () => {
      const leg = await orphanOf(await talking(first), 'answered');

      const result = sip.endOrphan(leg);
      await takeBye();

      expect(await result).toBe('ended');
    });

    test('acknowledges and hangs up a leg that was answered but not acknowledged', async () => {
      const leg = await orphanOf(await answered(first), 'sent');

      const result = sip.endOrphan(leg);
      await callee.take('ACK');
      await takeBye();

      expect(await result).toBe('ended');
    });

    test('cancels a ringing leg from another connection', async () => {
      const call = await ring(first);
      const leg = await orphanOf(call, 'sent');

      const asked = sip.endOrphan(leg);
      callee.reply(await callee.take('CANCEL'), 200, 'OK');
      callee.reply(call.invite, 487, 'Request Terminated');
      await callee.take('ACK');

      // If the final response did not come in time, end the leg again.
      const result = await asked;
      expect(result === 'cancelled' ? await sip.endOrphan(leg) : result).toBe('ended');
      expect(callee.has('CANCEL')).toBe(false);
    });

    test('sends a BYE from another engine if the engine of the leg is dead too', async () => {
      const call = await talking(first);
      const leg = await orphanOf(call, 'answered');
      const other = await startEngine();
      await sip[Symbol.asyncDispose]();
      sip = connect(serverOf(other));
      await eventually(() => sip.ready(), 'the other engine is connected');

      const result = sip.endOrphan(leg);
      const bye = await takeBye();

      expect(await result).toBe('ended');
      expect(one(bye, 'call-id')).toBe(one(call.invite, 'call-id'));
      expect(one(bye, 'from')).toBe(one(call.invite, 'from'));
      expect(one(bye, 'to')).toMatch(/tag=callee$/);
      expect(Number.parseInt(one(bye, 'cseq'), 10)).toBeGreaterThan(
        Number.parseInt(one(call.invite, 'cseq'), 10),
      );
      await sip[Symbol.asyncDispose]();
      await other.close();
    });

    test('sends a BYE in the early dialog of a ringing leg if its engine is dead too', async () => {
      const call = await ring(first);
      const leg = call.observer.ringingLeg;
      if (leg === undefined) throw new Error('the 180 reported no leg');
      const other = await startEngine();
      await sip[Symbol.asyncDispose]();
      sip = connect(serverOf(other));
      await eventually(() => sip.ready(), 'the other engine is connected');

      const result = sip.endOrphan(leg);
      const bye = await takeBye();

      expect(await result).toBe('ended');
      expect(one(bye, 'to')).toMatch(/tag=callee$/);
      await sip[Symbol.asyncDispose]();
      await other.close();
    });

    test('reports a leg that the far end has forgotten as gone', async () => {
      const leg = await orphanOf(await talking(first), 'answered');

      const result = sip.endOrphan(leg);
      const bye = await callee.take('BYE');
      callee.reply(bye, 481, 'Call/Transaction Does Not Exist');

      expect(await result).toBe('gone');
    });
  });
});
