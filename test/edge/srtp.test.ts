// Encrypted calls over TLS with a scripted phone. The phone's SRTP is the reference implementation,
// with rollover counters of its own. Each call is bridged to a phone without encryption, which must
// hear the encrypted phone byte by byte, and the other way round.

import { describe, expect, onTestFinished, test } from 'vitest';
import type { MediaEncryption } from '../../src/calls/media.ts';
import { callId, createScripted } from '../media/support/gateway.ts';
import { observe } from '../media/support/observed.ts';
import { openTrunkWorld } from '../sip/trunk-world.ts';
import { eventually } from '../support/eventually.ts';
import { MediaLeg } from '../support/media-leg.ts';
import { forSuite } from '../support/opened.ts';
import type { RawMessage } from '../support/raw-callee.ts';
import { connectPlainPhone, keep } from '../support/srtp/plain-phone.ts';
import type { ReferenceKey } from '../support/srtp/reference-srtp.ts';
import {
  cryptoLine,
  newKey,
  type PhoneSdp,
  SrtpPhone,
  speakUntilHeard,
} from '../support/srtp/srtp-phone.ts';
import { speech } from '../support/streams/stream-rig.ts';
import { startTlsCallee } from '../support/tls-channel.ts';
import { openAuthority, tlsTrunk } from './tls-world.ts';

const authority = forSuite(async () => {
  const opened = await openAuthority();
  return {
    ...opened,
    server: await opened.ca.issue('localhost', 'DNS:localhost,IP:127.0.0.1'),
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
});
const media = forSuite(() => createScripted());

/** Places a call to an encrypted phone, up to its INVITE. */
async function ringing(encryption: MediaEncryption = 'srtp-required', key = newKey()) {
  const carrier = keep(await startTlsCallee(authority.server));
  const trunk = { ...tlsTrunk(carrier.port, authority.ca, {}, '127.0.0.1'), media: encryption };
  const world = keep(await openTrunkWorld({ gateways: 0, trunk }));
  const phone = keep(await SrtpPhone.open(key));
  const observed = observe();
  const session = await media.open(callId, observed, world.sip.offerFor('carrier'));
  if (session === undefined) throw new Error('no session');
  onTestFinished(() => session.close());
  const observer = new MediaLeg(session);
  const target = { kind: 'tel', number: '15551230001' } as const;
  const { offerSdp } = session;
  const leg = world.sip.place(
    { callId, target, trunk: 'carrier', caller: '15550001111', offerSdp },
    observer,
  );
  const { callee } = carrier;
  const invite = await callee.take('INVITE');
  phone.follow(invite.body);
  return {
    ...{ callee, invite, phone, observed, session, observer, leg },
    answer: async (options: { tag?: string; sdp?: PhoneSdp } = {}) => {
      const { tag } = options;
      callee.reply(invite, 200, 'OK', {
        body: phone.sdp(options.sdp),
        ...(tag !== undefined && { tag }),
      });
      await observer.until('answered');
      leg.acknowledge();
      await callee.take('ACK');
    },
    /** Sends a re-INVITE, and returns our answer to it. */
    reoffer: async (body: string, status = 200): Promise<RawMessage> => {
      callee.request(invite, 'INVITE', { body });
      const response = await callee.takeResponse(status);
      return response;
    },
    acknowledge: (body = '') => callee.request(invite, 'ACK', { body }),
  };
}

async function talk(encryption?: MediaEncryption, key?: ReferenceKey) {
  const call = await ringing(encryption, key);
  await call.answer();
  return { ...call, agent: await connectPlainPhone(call.session) };
}

let seed = 1;
/** 200 ms of audio that never occurred before. */
const words = () => {
  seed += 1;
  return speech(1_600, seed);
};

async function hearEachOther(phone: SrtpPhone, agent: SrtpPhone) {
  await speakUntilHeard(phone, agent, words());
  await speakUntilHeard(agent, phone, words());
}

const statistics = () => media.statistics();
const ownKeyIn = (sdp: string) => /^a=crypto:\d+ \S+ inline:(\S+)/m.exec(sdp)?.[1];

describe('an encrypted call and a plain one', () => {
  test.each(['AES_CM_128_HMAC_SHA1_80', 'AES_CM_128_HMAC_SHA1_32'] as const)(
    'hear each other byte by byte, with %s',
    async (suite) => {
      const { phone, agent } = await talk('srtp-required', newKey(suite));
      await hearEachOther(phone, agent);
      expect(phone.rejected).toBe(0);
    },
  );

  test('pass keys on, in both directions', async () => {
    const { phone, agent, observed } = await talk();
    await hearEachOther(phone, agent);
    const keys = (one: SrtpPhone) =>
      one.heard.filter(({ payloadType }) => payloadType === 101).map(({ payload }) => payload[0]);

    phone.press(5);
    agent.press(11);

    await eventually(() => keys(agent).length === 4, 'the plain phone receives the key');
    await eventually(() => keys(phone).length === 4, 'the encrypted phone receives the key');
    expect([keys(agent), keys(phone)]).toEqual([
      [5, 5, 5, 5],
      [11, 11, 11, 11],
    ]);
    expect(observed.dtmf.map(({ digit }) => digit)).toEqual(['5']);
  });

  test('send reports that only the other end of each leg can read', async () => {
    const { phone, agent } = await talk();
    await hearEachOther(phone, agent);
    const { packetsForged } = await statistics();

    phone.report();
    agent.report();
    // The first report leaves 2.5 s after the answer on average.
    await eventually(
      () => phone.reports.length > 0 && agent.reports.length > 0,
      'both phones receive a report',
      20_000,
    );

    expect(phone.rejected).toBe(0);
    expect((await statistics()).packetsForged).toBe(packetsForged);
  });
});

describe('a re-INVITE of the encrypted phone', () => {
  test('holds and resumes with the same keys', async () => {
    const { phone, agent, reoffer, acknowledge, invite } = await talk();
    await hearEachOther(phone, agent);
    const become = async (direction: PhoneSdp['direction'] & string, answered: string) => {
      const { body } = await reoffer(phone.sdp({ direction }));
      acknowledge();
      expect(body).toContain(`a=${answered}\r\n`);
      expect(body).toContain('RTP/SAVP');
      expect(ownKeyIn(body)).toBe(ownKeyIn(invite.body));
    };

    await become('sendonly', 'recvonly');
    await speakUntilHeard(phone, agent, words());
    const before = phone.heard.length;
    agent.send(words().subarray(0, 160));
    await speakUntilHeard(phone, agent, words());
    expect(phone.heard.length).toBe(before);
    await become('inactive', 'inactive');
    await become('sendrecv', 'sendrecv');
    await hearEachOther(phone, agent);
    expect(phone.rejected).toBe(0);
  });

  test('with the same key keeps the rollover counter of a stream that has wrapped', async () => {
    const call = await ringing();
    const { phone, reoffer, acknowledge } = call;
    phone.sequence = 65_533;
    await call.answer();
    const agent = await connectPlainPhone(call.session);
    await hearEachOther(phone, agent);
    expect(phone.rollover).toBe(1);

    await reoffer(phone.sdp());
    acknowledge();

    await hearEachOther(phone, agent);
  });

  test('changes its key, and keeps the rollover counter', async () => {
    const call = await ringing();
    const { phone, reoffer, acknowledge } = call;
    phone.sequence = 65_533;
    await call.answer();
    const agent = await connectPlainPhone(call.session);
    await hearEachOther(phone, agent);
    const next = newKey();

    const { body } = await reoffer(phone.sdp({ crypto: [cryptoLine(next)] }));
    phone.useKey(next);
    phone.follow(body);
    acknowledge();

    await hearEachOther(phone, agent);
    expect(phone.rollover).toBe(1);
  });

  test('changes its key and begins another stream', async () => {
    const call = await ringing();
    const { phone, reoffer, acknowledge } = call;
    phone.sequence = 65_533;
    await call.answer();
    const agent = await connectPlainPhone(call.session);
    await hearEachOther(phone, agent);
    const next = newKey('AES_CM_128_HMAC_SHA1_32');

    const { body } = await reoffer(phone.sdp({ crypto: [cryptoLine(next, 1)] }));
    phone.useKey(next);
    phone.restart(0x9876, 30_000);
    phone.follow(body);
    acknowledge();

    await hearEachOther(phone, agent);
  });

  test('without an offer is answered with our keys, and the ACK brings a new key', async () => {
    const { phone, agent, reoffer, acknowledge, invite, observer } = await talk();
    await hearEachOther(phone, agent);

    const { body } = await reoffer('');
    const next = newKey();
    phone.useKey(next);
    acknowledge(phone.sdp());
    await observer.until('lateAnswer');

    expect(body).toContain('RTP/SAVP');
    expect(ownKeyIn(body)).toBe(ownKeyIn(invite.body));
    await hearEachOther(phone, agent);
  });

  test.each([
    ['drops its key', { protocol: 'RTP/AVP', crypto: [] }],
    ['keeps RTP/SAVP without a key', { crypto: [] }],
    ['has no suite that we know', { crypto: ['a=crypto:1 F8_128_HMAC_SHA1_80 inline:AAAA'] }],
  ] as const)('is refused with 488 if it %s, and the call goes on as before', async (_, sdp) => {
    const { phone, agent, reoffer, acknowledge } = await talk();
    await hearEachOther(phone, agent);

    await reoffer(phone.sdp(sdp), 488);
    acknowledge();

    await hearEachOther(phone, agent);
    expect(phone.rejected).toBe(0);
  });
});

describe('audio without the right key', () => {
  test('is not heard, but counted, and nothing plain leaves', async () => {
    const { phone, agent } = await talk();
    await hearEachOther(phone, agent);
    const { packetsForged } = await statistics();
    const key = phone.key;

    const [plain, forged] = [words(), words()];
    phone.useKey(undefined);
    phone.send(plain);
    phone.useKey(newKey());
    phone.send(forged);
    phone.useKey(key);
    await hearEachOther(phone, agent);

    expect(agent.audio.includes(plain.subarray(0, 160))).toBe(false);
    expect(agent.audio.includes(forged.subarray(0, 160))).toBe(false);
    expect((await statistics()).packetsForged).toBe(packetsForged + 2);
    expect(phone.rejected).toBe(0);
  });
});

describe('early media', () => {
  test.each([
    ['the same key', () => undefined],
    ['another key', newKey],
  ])('goes on after an answer with %s', async (_title, nextKey) => {
    const call = await ringing();
    const { phone, callee, invite, observer } = call;
    callee.reply(invite, 183, 'Session Progress', { body: phone.sdp() });
    await observer.until('provisional');
    for (let count = 0; count < 10; count += 1) phone.send(words().subarray(0, 160));

    const next = nextKey();
    if (next !== undefined) phone.useKey(next);
    await call.answer();

    await hearEachOther(phone, await connectPlainPhone(call.session));
  });

  test('of one branch of a fork does not prevent another branch’s answer', async () => {
    const call = await ringing();
    const { phone, callee, invite, observer } = call;
    const other = keep(await SrtpPhone.open(newKey()));
    other.follow(invite.body);
    callee.reply(invite, 183, 'Session Progress', { body: other.sdp(), tag: 'other' });
    await observer.until('provisional');
    other.ssrc = 0x7777;
    for (let count = 0; count < 10; count += 1) other.send(words().subarray(0, 160));

    await call.answer({ tag: 'callee' });

    await hearEachOther(phone, await connectPlainPhone(call.session));
  });
});

describe('a carrier that may choose', () => {
  test('answers in RTP/AVP with a key, and the call is encrypted', async () => {
    const call = await ringing('srtp');
    await call.answer({ sdp: { protocol: 'RTP/AVP' } });

    expect(call.invite.body).toContain('RTP/AVP');
    await hearEachOther(call.phone, await connectPlainPhone(call.session));
    expect(call.phone.rejected).toBe(0);
  });
});
