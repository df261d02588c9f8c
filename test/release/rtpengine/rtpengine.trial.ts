// Calls through an SBC: Kamailio with TLS and rtpengine with SRTP towards us, UDP and plain RTP
// towards the carrier's phone. rtpengine's SRTP is its own, and it passes the audio on unchanged.
// At our end, each call is bridged to a plain phone, so both phones must hear the same bytes.

import { describe, expect, onTestFinished, test } from 'vitest';
import type { CallQuality } from '../../../src/calls/life/call-quality.ts';
import type { MediaEvent } from '../../../src/calls/media.ts';
import { openAuthority, tlsTrunk } from '../../edge/tls-world.ts';
import { callId, createScripted } from '../../media/support/gateway.ts';
import { openTrunkWorld } from '../../sip/trunk-world.ts';
import { eventually } from '../../support/eventually.ts';
import { startKamailio } from '../../support/kamailio.ts';
import { MediaLeg } from '../../support/media-leg.ts';
import { forSuite } from '../../support/opened.ts';
import { RawCallee } from '../../support/raw-callee.ts';
import { startRtpengine } from '../../support/rtpengine.ts';
import { connectPlainPhone, keep } from '../../support/srtp/plain-phone.ts';
import { SrtpPhone, speakUntilHeard } from '../../support/srtp/srtp-phone.ts';
import { speech } from '../../support/streams/stream-rig.ts';

const auth = { username: 'alice', password: 'wonderland' };
const authority = forSuite(openAuthority);
const media = forSuite(() => createScripted());
const statistics = () => media.statistics();

/** Calls the carrier's phone, which answers. `flags`: what rtpengine offers and accepts. */
async function talk(flags = '') {
  const callee = keep(await RawCallee.start({ dropsRepetitions: true }));
  const rtpengine = keep(await startRtpengine());
  const kamailio = keep(
    await startKamailio({
      ...{ phonePort: callee.port, realm: 'carrier.example', algorithm: 'SHA-256', qop: 'auth' },
      ...{ password: auth.password, certificate: authority.server },
      relay: { controlPort: rtpengine.controlPort, flags },
    }),
  );
  const trunk = tlsTrunk(kamailio.tlsPort, authority.ca);
  const world = keep(
    await openTrunkWorld({ gateways: 0, trunk: { ...trunk, auth, media: 'srtp-required' } }),
  );
  const events: MediaEvent[] = [];
  const observe = (event: MediaEvent) => void events.push(event);
  const session = await media.open(callId, { observe }, world.sip.offerFor('carrier'));
  if (session === undefined) throw new Error('no session');
  onTestFinished(() => session.close());
  const observer = new MediaLeg(session);
  const target = { kind: 'tel', number: '15551230001' } as const;
  const { offerSdp } = session;
  const request = { callId, target, trunk: 'carrier', caller: '15550001111', offerSdp };
  const leg = world.sip.place(request, observer);
  const invite = await callee.take('INVITE');
  const phone = keep(await SrtpPhone.open());
  phone.follow(invite.body);
  callee.reply(invite, 200, 'OK', { body: phone.sdp() });
  const { sdp } = await observer.until('answered');
  leg.acknowledge();
  await callee.take('ACK');
  const routes = invite.headers.get('record-route') ?? [];
  const routed = { headers: routes.map((route) => `Route: ${route}`) };
  return {
    ...{ rtpengine, session, observer, leg, invite, phone, sdp, offerSdp, events },
    agent: await connectPlainPhone(session),
    /** Sends a re-INVITE, and returns the description that the phone gets. */
    reoffer: async (body: string, acknowledged = '') => {
      callee.request(invite, 'INVITE', { body, ...routed });
      const accepted = await callee.takeResponse(200);
      callee.request(invite, 'ACK', { body: acknowledged, ...routed });
      return accepted.body;
    },
    hangUp: async () => {
      callee.request(invite, 'BYE', routed);
      expect(await callee.takeAnswer('BYE')).toBe(200);
      await leg.released;
    },
  };
}

let seed = 1;
async function hearEachOther(phone: SrtpPhone, agent: SrtpPhone) {
  seed += 2;
  await speakUntilHeard(phone, agent, speech(1_600, seed));
  await speakUntilHeard(agent, phone, speech(1_600, seed + 1));
}

describe.each([
  ['AES_CM_128_HMAC_SHA1_80', ''],
  ['AES_CM_128_HMAC_SHA1_32', 'SDES-no-AES_CM_128_HMAC_SHA1_80'],
])('rtpengine with %s', (suite, flags) => {
  test('carries audio and keys byte by byte, through a hold and a re-INVITE without SDP', async () => {
    const before = await statistics();
    const call = await talk(flags);
    const { phone, agent, events, reoffer, observer } = call;
    expect(call.sdp).toMatch(/m=audio \d+ RTP\/SAVP /);
    expect(call.sdp).toMatch(new RegExp(`a=crypto:\\d ${suite} inline:`));
    expect(call.invite.body).not.toContain('crypto');
    await hearEachOther(phone, agent);
    phone.press(5);
    const pressed = () => events.flatMap((event) => (event.kind === 'dtmf' ? [event.digit] : []));
    await eventually(() => pressed().length === 1, 'the key arrives');
    expect(pressed()).toEqual(['5']);

    expect(await reoffer(phone.sdp({ direction: 'sendonly' }))).toContain('a=recvonly');
    await speakUntilHeard(phone, agent, speech(1_600, 900));
    phone.follow(await reoffer(phone.sdp()));
    await hearEachOther(phone, agent);
    expect(await reoffer('', phone.sdp())).toMatch(/m=audio \d+ RTP\/AVP /);
    await observer.until('lateAnswer');
    await hearEachOther(phone, agent);

    const after = await statistics();
    expect(after.packetsForged).toBe(before.packetsForged);
    await call.hangUp();
  });

  test('passes the reports of both sides on', async () => {
    const call = await talk(flags);
    const { phone, agent, events, session } = call;
    const before = await statistics();
    await hearEachOther(phone, agent);
    // The first report leaves 2.5 s after the answer on average.
    await eventually(() => phone.reports.length > 0, 'the phone receives our report', 20_000);
    expect(phone.reports[0]?.readUInt8(1)).toBeOneOf([200, 201]);
    phone.report({ jitterSamples: 80 });

    const quality = (): CallQuality | undefined =>
      events.findLast((event) => event.kind === 'quality')?.quality;
    await eventually(() => {
      session.send({ kind: 'requestQuality' });
      return quality()?.remote !== undefined;
    }, 'the phone’s report arrives');
    expect(quality()?.remote).toEqual({ lossPercent: 0, jitterMs: 10 });
    expect((await statistics()).packetsForged).toBe(before.packetsForged);
    await call.hangUp();
  });
});

test('rtpengine follows our sequence numbers over their wrap, and we follow its own', async () => {
  const call = await talk();
  const { phone, agent } = call;
  phone.sequence = 65_530;
  await hearEachOther(phone, agent);
  expect(phone.sequence).toBeLessThan(1_000);
  const { packetsForged } = await statistics();

  // Our first number is below 32,768, so the wrap comes after 65,536 packets at most.
  const frame = speech(160, 7);
  // rtpengine drops packets from a longer queue.
  const burst = 40;
  const number = () => phone.heard.at(-1)?.sequence ?? 0;
  const first = number();
  while (number() >= first) {
    const heard = phone.heard.length;
    for (let count = 0; count < burst; count += 1) agent.send(frame);
    await eventually(() => phone.heard.length >= heard + burst, 'the phone hears each packet');
  }

  await hearEachOther(phone, agent);
  expect((await statistics()).packetsForged).toBe(packetsForged);
});
