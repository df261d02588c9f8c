// What the gateway says about itself: Allow, Supported and Accept where RFC 3261 requires or
// recommends them, and how it refuses methods and extensions that it doesn't have.

import { afterEach, describe, expect, test } from 'vitest';
import { header, RawPeer } from '../embedded/drachtio/raw-ends.ts';
import { answer, openTrunkWorld, type TrunkWorld } from '../sip/trunk-world.ts';
import { eventually } from '../support/eventually.ts';
import { one } from '../support/raw-callee.ts';
import { onlyEmbedded } from './engines.ts';

const methods = ['INVITE', 'ACK', 'BYE', 'CANCEL', 'OPTIONS', 'INFO', 'UPDATE', 'PRACK', 'NOTIFY'];
const listOf = (value: string) => value.split(',').map((entry) => entry.trim());

let world: TrunkWorld | undefined;

afterEach(async () => {
  await world?.[Symbol.asyncDispose]();
  world = undefined;
});

async function openCall() {
  world = await openTrunkWorld({ gateways: 1 });
  const [carrier] = world.gateways;
  if (carrier === undefined) throw new Error('a gateway');
  const { leg, observer } = world.place();
  const invite = await carrier.take('INVITE');
  carrier.reply(invite, 200, 'OK', { body: answer });
  await observer.until('answered');
  leg.acknowledge();
  await carrier.take('ACK');
  return { carrier, leg, observer, invite };
}

describe('within a call', () => {
  test('the INVITE lists methods and extensions', async () => {
    const { invite } = await openCall();

    expect(listOf(one(invite, 'allow'))).toEqual(methods);
    expect(listOf(one(invite, 'supported'))).toEqual(['100rel', 'timer']);
    expect(invite.headers.has('require')).toBe(false);
  });

  test('the 200 to a re-INVITE and an UPDATE lists methods and extensions', async () => {
    const { carrier, invite } = await openCall();

    for (const method of ['INVITE', 'UPDATE']) {
      carrier.request(invite, method, { body: answer });
      const ok = await carrier.takeResponse(200);
      if (method === 'INVITE') carrier.request(invite, 'ACK');
      expect(ok.method).toBe(method);
      expect(listOf(one(ok, 'allow'))).toEqual(methods);
      expect(listOf(one(ok, 'supported'))).toEqual(['100rel', 'timer']);
    }
  });

  test('the 200 to OPTIONS also lists the bodies that we read', async () => {
    const { carrier, invite } = await openCall();

    carrier.request(invite, 'OPTIONS');
    const ok = await carrier.takeResponse(200);

    expect(listOf(one(ok, 'allow'))).toEqual(methods);
    expect(listOf(one(ok, 'supported'))).toEqual(['100rel', 'timer']);
    expect(listOf(one(ok, 'accept'))).toContain('application/sdp');
  });

  test('a method that we do not have gets 501 with Allow', async () => {
    const { carrier, invite } = await openCall();

    for (const method of ['MESSAGE', 'PUBLISH']) {
      carrier.request(invite, method);
      expect(listOf(one(await carrier.takeResponse(501), 'allow'))).toEqual(methods);
    }
  });

  test('an INFO with a body that we cannot read gets 415 with Accept', async () => {
    const { carrier, invite } = await openCall();

    carrier.request(invite, 'INFO', { body: 'x', type: 'application/unheard-of' });

    expect(listOf(one(await carrier.takeResponse(415), 'accept'))).toContain(
      'application/dtmf-relay',
    );
  });

  test.each(['INVITE', 'UPDATE', 'INFO', 'OPTIONS'])(
    'a required extension that we do not have gets 420 with its name: %s',
    async (method) => {
      const { carrier, invite, observer } = await openCall();

      carrier.request(invite, method, { headers: ['Require: 100rel, replaces, timer, x-other'] });
      const refusal = await carrier.takeResponse(420);
      if (method === 'INVITE') carrier.request(invite, 'ACK');

      expect(refusal.method).toBe(method);
      expect(listOf(one(refusal, 'unsupported'))).toEqual(['replaces', 'x-other']);
      expect(observer.kinds()).not.toContain('reoffer');
    },
  );

  test('extensions that we have may be required', async () => {
    const { carrier, invite } = await openCall();

    carrier.request(invite, 'OPTIONS', { headers: ['Require: Timer,100rel'] });

    expect((await carrier.takeResponse(200)).method).toBe('OPTIONS');
  });

  test('a BYE ends the call, whatever it requires', async () => {
    const { carrier, invite, observer } = await openCall();

    carrier.request(invite, 'BYE', { headers: ['Require: replaces'] });

    expect((await carrier.takeResponse(200)).method).toBe('BYE');
    await observer.until('ended');
  });
});

describe('outside of a call', () => {
  async function openPeer() {
    world = await openTrunkWorld({ gateways: 1 });
    const [engine] = world.engines;
    if (engine === undefined) throw new Error('an engine');
    const peer = await RawPeer.open(engine);
    let count = 0;
    const ask = async (method: string, extra = '') => {
      count += 1;
      const callId = `outside-${count}`;
      const [from, to] = ['<sip:carrier@127.0.0.1>;tag=c', '<sip:gateway@127.0.0.1>'];
      peer.request(method, { callId, cseq: 1, from, to }, extra);
      return peer.inbox.take(new RegExp(`^SIP/2\\.0 [2-6][\\s\\S]*Call-ID: ${callId}\\r`, 'i'));
    };
    // The gateway adds its routes one after the other, SUBSCRIBE last.
    await eventually(
      async () => (await ask('SUBSCRIBE')).startsWith('SIP/2.0 405 '),
      'the gateway answers each method',
    );
    return { ask, [Symbol.asyncDispose]: () => peer.close() };
  }

  test('OPTIONS gets 200 with Allow, Supported and Accept', async () => {
    await using peer = await openPeer();

    const ok = await peer.ask('OPTIONS');

    expect(ok).toMatch(/^SIP\/2\.0 200 /);
    expect(listOf(header(ok, 'Allow'))).toEqual(methods);
    expect(listOf(header(ok, 'Supported'))).toEqual(['100rel', 'timer']);
    expect(listOf(header(ok, 'Accept'))).toContain('application/sdp');
  });

  test.each(['MESSAGE', 'SUBSCRIBE', 'REGISTER', 'PUBLISH', 'INFO'])(
    '%s gets 405 with Allow',
    async (method) => {
      await using peer = await openPeer();

      const refusal = await peer.ask(method);

      expect(refusal).toMatch(/^SIP\/2\.0 405 /);
      expect(listOf(header(refusal, 'Allow'))).toEqual(methods);
    },
  );

  onlyEmbedded('REFER gets 405 with Allow; drachtio never answers it', async () => {
    await using peer = await openPeer();

    expect(await peer.ask('REFER')).toMatch(/^SIP\/2\.0 405 /);
  });

  test('NOTIFY gets 481, because there is no subscription', async () => {
    await using peer = await openPeer();

    expect(await peer.ask('NOTIFY')).toMatch(/^SIP\/2\.0 481 /);
  });

  onlyEmbedded('an unknown method gets 501 with Allow; drachtio answers 503', async () => {
    await using peer = await openPeer();

    const refusal = await peer.ask('DANCE');

    expect(refusal).toMatch(/^SIP\/2\.0 501 /);
    expect(listOf(header(refusal, 'Allow'))).toEqual(methods);
  });

  test('INVITE gets 480, and 420 if it requires an extension that we do not have', async () => {
    await using peer = await openPeer();

    expect(await peer.ask('INVITE')).toMatch(/^SIP\/2\.0 480 /);
    const refusal = await peer.ask('INVITE', 'Require: replaces\r\n');
    expect(refusal).toMatch(/^SIP\/2\.0 420 /);
    expect(header(refusal, 'Unsupported')).toBe('replaces');
  });
});
