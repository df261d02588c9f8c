// Routes through proxies. A proxy without `lr` in its Record-Route is a strict router of RFC 2543:
// it gets its own URI as the request URI, and the remote target last in Route (RFC 3261 section
// 12.2.1.1).

import { afterEach, describe, expect, test } from 'vitest';
import { answer, openTrunkWorld, type TrunkWorld } from '../sip/trunk-world.ts';
import { one, type RawCallee, type RawMessage } from '../support/raw-callee.ts';
import { onlyEmbedded } from './engines.ts';

let world: TrunkWorld | undefined;

afterEach(async () => {
  await world?.[Symbol.asyncDispose]();
  world = undefined;
});

/** The second gateway is a proxy that has recorded its route. The first one answers the call. */
async function answeredVia(recordRoute: (proxy: string) => readonly string[]) {
  world = await openTrunkWorld({ gateways: 2 });
  const [callee, proxy] = world.gateways;
  if (callee === undefined || proxy === undefined) throw new Error('two gateways');
  const { leg, observer } = world.place();
  const invite = await callee.take('INVITE');
  const headers = recordRoute(world.nameOf(proxy)).map((route) => `Record-Route: ${route}`);
  callee.reply(invite, 200, 'OK', { body: answer, headers });
  const { leg: stored } = await observer.until('answered');
  leg.acknowledge();
  return { callee, proxy, leg, observer, invite, stored };
}

const routesOf = (message: RawMessage) =>
  (message.headers.get('route') ?? []).flatMap((value) => value.split(', '));
const targetOf = (callee: RawCallee) => `sip:callee@127.0.0.1:${callee.port}`;

describe('requests in a call', () => {
  test('leave a loose route as it is', async () => {
    const { callee, proxy, leg } = await answeredVia((name) => [
      '<sip:far.example;lr>',
      `<sip:${name};lr>`,
    ]);
    const ack = await proxy.take('ACK');
    leg.hangUp('done');
    const bye = await proxy.take('BYE');
    proxy.reply(bye, 200, 'OK');

    for (const request of [ack, bye]) {
      expect(request.startLine).toBe(`${request.method} ${targetOf(callee)} SIP/2.0`);
      expect(routesOf(request)).toEqual([
        `<sip:127.0.0.1:${proxy.port};lr>`,
        '<sip:far.example;lr>',
      ]);
    }
  });

  test('reach a strict router that is the only proxy', async () => {
    const { callee, proxy, leg } = await answeredVia((name) => [`<sip:edge@${name}>`]);
    const ack = await proxy.take('ACK');
    leg.hangUp('done');
    const bye = await proxy.take('BYE');
    proxy.reply(bye, 200, 'OK');

    for (const request of [ack, bye]) {
      expect(request.startLine).toBe(`${request.method} sip:edge@127.0.0.1:${proxy.port} SIP/2.0`);
      expect(routesOf(request)).toEqual([`<${targetOf(callee)}>`]);
    }
  });

  onlyEmbedded('reach a strict router among others; drachtio skips it', async () => {
    const { callee, proxy, leg } = await answeredVia((name) => [
      '<sip:far.example;lr>',
      `<sip:edge@${name}>`,
    ]);
    const ack = await proxy.take('ACK');
    leg.hangUp('done');
    const bye = await proxy.take('BYE');
    proxy.reply(bye, 200, 'OK');

    for (const request of [ack, bye]) {
      expect(request.startLine).toBe(`${request.method} sip:edge@127.0.0.1:${proxy.port} SIP/2.0`);
      expect(routesOf(request)).toEqual(['<sip:far.example;lr>', `<${targetOf(callee)}>`]);
    }
  });

  test('lose what a request URI cannot contain', async () => {
    const { proxy } = await answeredVia((name) => [
      `<sip:edge@${name};method=INVITE;x=1?Subject=hello>`,
    ]);

    expect((await proxy.take('ACK')).startLine).toBe(
      `ACK sip:edge@127.0.0.1:${proxy.port};x=1 SIP/2.0`,
    );
  });

  onlyEmbedded(
    'pass over a Record-Route that nobody can send to; drachtio ignores such a 200',
    async () => {
      const { callee, proxy } = await answeredVia((name) => [
        `<sip:${name};lr>, <tel:+15550001111>`,
        '<mailto:proxy@example.com>, <sip:>',
      ]);
      const ack = await proxy.take('ACK');

      expect(ack.startLine).toBe(`ACK ${targetOf(callee)} SIP/2.0`);
      expect(routesOf(ack)).toEqual([`<sip:127.0.0.1:${proxy.port};lr>`]);
    },
  );
});

describe('a BYE that is rebuilt from a stored leg', () => {
  /** Without a dialog id, the engine doesn't know the call, as after its restart. */
  async function endedElsewhere(recordRoute: (proxy: string) => readonly string[]) {
    const call = await answeredVia(recordRoute);
    await call.proxy.take('ACK');
    call.leg.hangUp('done');
    call.proxy.reply(await call.proxy.take('BYE'), 200, 'OK');
    await call.leg.released;
    const result = world?.sip.endOrphan(call.stored);
    const bye = await call.proxy.take('BYE');
    call.proxy.reply(bye, 200, 'OK');
    expect(await result).toBe('ended');
    return { ...call, bye };
  }

  onlyEmbedded('follows a loose route; drachtio drops the Route header', async () => {
    const { callee, proxy, bye } = await endedElsewhere((name) => [
      '<sip:far.example;lr>',
      `<sip:${name};lr>`,
    ]);

    expect(bye.startLine).toBe(`BYE ${targetOf(callee)} SIP/2.0`);
    expect(routesOf(bye)).toEqual([`<sip:127.0.0.1:${proxy.port};lr>`, '<sip:far.example;lr>']);
    expect(one(bye, 'to')).toContain(';tag=callee');
  });

  onlyEmbedded('follows a strict route; drachtio sends it to the first hop only', async () => {
    const { callee, proxy, bye } = await endedElsewhere((name) => [
      '<sip:far.example;lr>',
      `<sip:edge@${name}>`,
    ]);

    expect(bye.startLine).toBe(`BYE sip:edge@127.0.0.1:${proxy.port} SIP/2.0`);
    expect(routesOf(bye)).toEqual(['<sip:far.example;lr>', `<${targetOf(callee)}>`]);
  });
});

describe('requests of the carrier', () => {
  test('belong to their call whatever a strict router has made of the request URI', async () => {
    const { callee, invite, observer } = await answeredVia(() => []);
    await callee.take('ACK');
    const contact = one(invite, 'contact');
    const engine = contact.replace(/<sip:[^@]*@/, '<sip:');

    const rewritten = { ...invite, headers: new Map(invite.headers).set('contact', [engine]) };
    callee.request(rewritten, 'BYE', { headers: [`Route: ${contact}`] });

    expect((await callee.takeResponse(200)).method).toBe('BYE');
    await observer.until('ended');
  });
});
