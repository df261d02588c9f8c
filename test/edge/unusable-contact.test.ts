// A 200 OK without a Contact to which we can send requests (RFC 3261, section 8.1.1.8). Nobody can
// talk in such a call, so it must end immediately, and the callee must not stay connected.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { header, RawApplication, RawPeer } from '../embedded/drachtio/raw-ends.ts';
import { answer, openTrunkWorld, type TrunkWorld } from '../sip/trunk-world.ts';
import { one, type RawCallee, type RawMessage } from '../support/raw-callee.ts';
import { startEngine, type TestEngine } from '../support/sip-engine.ts';
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

  test('a tel: URI behind a proxy that record-routes, which protects drachtio-server', async () => {
    await using world = await openTrunkWorld({ gateways: 1 });
    const proxy = `<sip:127.0.0.1:${world.gateways[0]?.port};lr>`;
    const headers = [`Record-Route: ${proxy}`, 'Contact: <tel:+15551230001>'];

    await expectHungUp(world, headers, 'OK with an unusable Contact');
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

/** The engine alone, without a gateway that would end the call by itself. */
describe('the engine', () => {
  let engine: TestEngine;
  let application: RawApplication;
  let peer: RawPeer;

  beforeEach(async () => {
    engine = await startEngine();
    application = await RawApplication.connect(engine);
    peer = await RawPeer.open(engine);
  });

  afterEach(async () => {
    application.close();
    await peer.close();
    await engine.close();
  });

  async function answered(contact: string) {
    await application.request(`||\r\nINVITE ${peer.uri} SIP/2.0\r\n\r\n`);
    const invite = await peer.inbox.take(/^INVITE /);
    peer.answer(invite, '200 OK', 'far', contact === '' ? 'X-None: yes' : `Contact: ${contact}`);
    const notice = await application.inbox.take(/\|sip\|network\|.*\r\nSIP\/2.0 200/);
    return { invite, dialogId: notice.split('|')[9] ?? '' };
  }

  const unusable: readonly (readonly [what: string, contact: string])[] = [
    ['nothing', ''],
    ['an empty value', ' '],
    ['a star', '*'],
    ['a tel: URI', '<tel:+15551230001>'],
    ['a tel: URI without brackets', 'tel:+15551230001'],
    ['a space in the user', '<sip:bob smith@127.0.0.1>'],
    ['a space without brackets', 'sip:bob smith@127.0.0.1'],
    ['an open bracket', '<sip:bob@127.0.0.1'],
    ['no host', '<sip:>'],
    ['port 0', '<sip:bob@127.0.0.1:0>'],
    ['a port that is no number', '<sip:bob@127.0.0.1:sip>'],
    ['IPv6 without brackets', '<sip:bob@::1>'],
    ['IPv6 with a zone', '<sip:bob@[fe80::1%25eth0]>'],
    ['IPv6 that does not end', '<sip:bob@[::1>'],
    ['several, all unusable', '<tel:1>, <mailto:b@example.com>'],
    ['a transport that the engine does not have', '<sip:bob@127.0.0.1;transport=sctp>'],
    ['a name without address', '<sip:bob@nobody.invalid>'],
  ];

  onlyEmbedded.for(unusable)(
    'acknowledges and hangs up at the application’s ACK, and says so: %s',
    async ([, contact]) => {
      const { invite, dialogId } = await answered(contact);

      const { answer: refusal } = await application.request(
        `|${dialogId}\r\nACK sip:placeholder SIP/2.0\r\n\r\n`,
      );

      expect(refusal).toContain('|NOK|');
      const ack = await peer.inbox.take(/^ACK /);
      const bye = await peer.inbox.take(/^BYE /);
      for (const request of [ack, bye]) {
        expect(request.split(' ')[1]).toBe(peer.uri);
        expect(header(request, 'Call-ID')).toBe(header(invite, 'Call-ID'));
        expect(header(request, 'To')).toContain(';tag=far');
      }
      await application.inbox.take(/\|unsolicited\|.*\r\nBYE .*No usable Contact in the answer/s);
    },
  );

  onlyEmbedded.for(unusable.slice(0, 4))(
    'acknowledges and hangs up at the application’s BYE: %s',
    async ([, contact]) => {
      const { dialogId } = await answered(contact);

      await application.request(`|${dialogId}\r\nBYE sip:placeholder SIP/2.0\r\n\r\n`);

      await peer.inbox.take(/^ACK /);
      await peer.inbox.take(/^BYE /);
      expect(application.inbox.matching(/unsolicited/)).toBe(0);
    },
  );

  test.for([
    ['an IPv6 address', '<sip:bob@[2001:db8::7]:5062>', 'sip:bob@[2001:db8::7]:5062'],
    ['no address', '<sip:bob@0.0.0.0:5062>', 'sip:bob@0.0.0.0:5062'],
    ['a group address', '<sip:bob@224.0.1.75>', 'sip:bob@224.0.1.75'],
  ] as const)(
    'sends to where the 200 came from if the Contact has %s',
    async ([, contact, requestUri]) => {
      const { dialogId } = await answered(contact);

      await application.request(`|${dialogId}\r\nACK sip:placeholder SIP/2.0\r\n\r\n`);
      await application.request(`|${dialogId}\r\nBYE sip:placeholder SIP/2.0\r\n\r\n`);

      expect((await peer.inbox.take(/^ACK /)).split(' ')[1]).toBe(requestUri);
      expect((await peer.inbox.take(/^BYE /)).split(' ')[1]).toBe(requestUri);
    },
  );

  onlyEmbedded('takes the first usable one of several Contacts', async () => {
    const { dialogId } = await answered(`<tel:1>, "Bob, B." <${peer.uri};x=1>, <sip:c@127.0.0.1>`);

    await application.request(`|${dialogId}\r\nACK sip:placeholder SIP/2.0\r\n\r\n`);

    expect((await peer.inbox.take(/^ACK /)).split(' ')[1]).toBe(`${peer.uri};x=1`);
  });

  onlyEmbedded.for(['INVITE', 'UPDATE'])(
    'refuses an %s whose Contact is unusable with 400, and keeps the target; drachtio dies of tel:',
    async (method) => {
      const { invite, dialogId } = await answered(`<${peer.uri}>`);
      await application.request(`|${dialogId}\r\nACK sip:placeholder SIP/2.0\r\n\r\n`);
      await peer.inbox.take(/^ACK /);
      const dialog = {
        ...{ callId: header(invite, 'Call-ID'), from: `${header(invite, 'To')};tag=far` },
        to: header(invite, 'From'),
      };

      for (const [cseq, contact] of [
        [1, '<tel:+1555>'],
        [2, '*'],
        [3, '<sip:a b@c>'],
      ] as const) {
        peer.request(method, { ...dialog, cseq }, '', contact);
        await peer.inbox.take(new RegExp(`^SIP/2\\.0 400 [\\s\\S]*CSeq: ${cseq} ${method}`));
      }
      await application.request(`|${dialogId}\r\nBYE sip:placeholder SIP/2.0\r\n\r\n`);

      expect((await peer.inbox.take(/^BYE /)).split(' ')[1]).toBe(peer.uri);
      expect(application.inbox.matching(new RegExp(`\\r\\n${method} `))).toBe(0);
    },
  );

  test('keeps the target if the 200 to a re-INVITE has an unusable Contact', async () => {
    const { dialogId } = await answered(`<${peer.uri}>`);
    await application.request(`|${dialogId}\r\nACK sip:placeholder SIP/2.0\r\n\r\n`);
    await peer.inbox.take(/^ACK /);

    await application.request(`|${dialogId}\r\nINVITE sip:placeholder SIP/2.0\r\n\r\n`);
    const again = await peer.inbox.take(/^INVITE [\s\S]*;tag=far/);
    peer.answer(again, '200 OK', 'far', 'Contact: <tel:+1555>');
    await application.inbox.take(/SIP\/2.0 200/);
    await application.request(`|${dialogId}\r\nACK sip:placeholder SIP/2.0\r\n\r\n`);

    expect((await peer.inbox.take(/^ACK /)).split(' ')[1]).toBe(peer.uri);
  });

  onlyEmbedded('reaches a caller whose INVITE has no Contact where it came from', async () => {
    await application.route('invite');
    const call = {
      ...{ callId: 'no-contact', cseq: 1, to: '<sip:alice@127.0.0.1>' },
      from: '<sip:far@caller.invalid>;tag=f',
    };
    peer.request('INVITE', call, '', '');
    const notice = await application.inbox.take(/\r\nINVITE /);
    await application.request(`${notice.split('|')[8]}|\r\nSIP/2.0 200 OK\r\n\r\n`);
    const ok = await peer.inbox.take(/ 200 OK/);
    peer.request('ACK', { ...call, to: header(ok, 'To') });
    const dialogId = (await application.inbox.take(/\r\nACK /)).split('|')[9] ?? '';
    await application.request(`|${dialogId}\r\nBYE sip:placeholder SIP/2.0\r\n\r\n`);

    expect((await peer.inbox.take(/^BYE /)).split(' ')[1]).toBe('sip:far@caller.invalid');
  });
});
