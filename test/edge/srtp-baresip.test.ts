// Encrypted calls with baresip, whose SRTP is libre's own and whose SIP runs over TLS. In a call,
// baresip sends requests on the embedded engine only, because it can't send them to the URI `sips:`
// in drachtio-server's Contact.

import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AudioEnvelope } from '../../src/calls/capture/capture.ts';
import type { MediaEncryption, MediaEvent } from '../../src/calls/media.ts';
import type { Sound } from '../../src/calls/playback/playback.ts';
import type { ReferEvent } from '../../src/calls/ports.ts';
import { decodeTable, encodeMulaw } from '../../src/media/g711.ts';
import { callId, createScripted } from '../media/support/gateway.ts';
import { openTrunkWorld } from '../sip/trunk-world.ts';
import { type BaresipOptions, startBaresip } from '../support/baresip.ts';
import { type Certificate, createCa } from '../support/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { MediaLeg } from '../support/media-leg.ts';
import { RawCallee } from '../support/raw-callee.ts';
import { connectPlainPhone, keep } from '../support/srtp/plain-phone.ts';
import { newKey, SrtpPhone, speakUntilHeard } from '../support/srtp/srtp-phone.ts';
import { speech } from '../support/streams/stream-rig.ts';
import { testSound } from '../support/test-sound.ts';
import { onlyEmbedded } from './engines.ts';

const user = '15551230001';
const target = { kind: 'tel', number: user } as const;
const rateHz = 8_000;

let folder: string;
let ca: string;
let certificate: Certificate;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'offhook-srtp-'));
  const authority = await createCa(folder, 'carrier-ca');
  certificate = await authority.issue('localhost', 'DNS:localhost,IP:127.0.0.1');
  ca = readFileSync(authority.ca, 'utf8');
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

/** 5 s of a tone. */
const tone: Sound = testSound(
  'tone',
  Uint8Array.from({ length: 5 * rateHz }, (_, at) =>
    encodeMulaw(Math.round(8_000 * Math.sin((2 * Math.PI * 440 * at) / rateHz))),
  ),
);

const median = (levels: Uint8Array) => [...levels].sort((a, b) => a - b)[levels.length >> 1] ?? 0;

/** Calls a baresip, which answers. The media follows what either side negotiates. */
async function callBaresip(
  theirs: BaresipOptions['encryption'],
  ours: MediaEncryption,
  more: Pick<BaresipOptions, 'says'> = {},
) {
  const baresip = keep(await startBaresip({ user, certificate, encryption: theirs, ...more }));
  const gateway = { host: '127.0.0.1', port: baresip.port, transport: 'tls' } as const;
  const world = keep(
    await openTrunkWorld({
      gateways: 0,
      trunk: { gateways: [{ ...gateway, priority: 1, weight: 1 }], tls: { ca }, media: ours },
    }),
  );
  const media = keep(createScripted());
  const envelopes: (AudioEnvelope | undefined)[] = [];
  const digits: string[] = [];
  const observe = (event: MediaEvent) => {
    if (event.kind === 'envelope') envelopes.push(event.envelope);
    if (event.kind === 'dtmf') digits.push(event.digit);
  };
  const session = await media.open(callId, { observe }, world.sip.offerFor('carrier'));
  if (session === undefined) throw new Error('no media session');
  const observer = new MediaLeg(session);
  const { offerSdp } = session;
  const leg = world.sip.place(
    { callId, target, trunk: 'carrier', caller: '15550001111', offerSdp },
    observer,
  );
  const { sdp } = await observer.until('answered');
  leg.acknowledge();
  return { baresip, world, media, session, observer, leg, sdp, offer: offerSdp, envelopes, digits };
}

type Call = Awaited<ReturnType<typeof callBaresip>>;

/** Plays a tone, and returns the loudness of what we say and hear in the last second of two. */
async function loudness({ media, session, envelopes }: Call) {
  session.send({ kind: 'play', playback: { playbackId: 'p', source: 'command', sound: tone } });
  const before = (await media.statistics()).packetsReceived;
  await eventually(
    async () => (await media.statistics()).packetsReceived > before + 100,
    'two seconds of audio come back from baresip',
  );
  session.send({ kind: 'requestEnvelope' });
  await eventually(() => envelopes.length > 0, 'the loudness of the call arrives');
  const { heard = new Uint8Array(), said = new Uint8Array() } = envelopes[0] ?? {};
  // In steps of 40 ms.
  return { heard: median(heard.slice(-25)), said: median(said.slice(-25)) };
}

const forged = async ({ media }: Call) => (await media.statistics()).packetsForged;

test('baresip that requires SRTP hears us, and we hear it', async () => {
  const call = await callBaresip('srtp-mand', 'srtp-required');
  const levels = await loudness(call);

  expect(call.offer).toContain('RTP/SAVP');
  expect(call.sdp).toMatch(/a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:/);
  expect(levels.said).toBeGreaterThan(0);
  expect(Math.abs(levels.heard - levels.said)).toBeLessThanOrEqual(1);
  expect(await forged(call)).toBe(0);
  call.leg.hangUp('done');
  await call.leg.released;
});

test('baresip without SRTP answers our offer of it without, and is heard', async () => {
  const call = await callBaresip('none', 'srtp');
  const levels = await loudness(call);

  expect(call.offer).toContain('RTP/AVP');
  expect(call.sdp).not.toContain('crypto');
  expect(levels.said).toBeGreaterThan(0);
  expect(Math.abs(levels.heard - levels.said)).toBeLessThanOrEqual(1);
});

test('a plain phone, bridged to baresip, hears its own audio back byte by byte', async () => {
  const call = await callBaresip('srtp-mand', 'srtp-required');
  const phone = await connectPlainPhone(call.session);

  await speakUntilHeard(phone, phone, speech(800), 20);

  expect(await forged(call)).toBe(0);
});

onlyEmbedded(
  'baresip holds and resumes a bridged call, and is heard and hears keys as before',
  async () => {
    const said = speech(60 * rateHz);
    const says = Int16Array.from(said, (byte) => decodeTable.PCMU[byte] as number);
    const call = await callBaresip('srtp-mand', 'srtp-required', { says });
    const { baresip, observer, session } = call;
    const phone = await connectPlainPhone(call.session);
    /** Waits until the phone has heard two seconds more. They are a part of what baresip plays. */
    const hearsWords = async () => {
      const from = phone.audio.length;
      await eventually(() => phone.audio.length > from + 2 * rateHz, 'the phone hears baresip');
      const heard = phone.audio.subarray(from);
      expect(said.includes(heard.subarray(-rateHz))).toBe(true);
    };
    const reoffers = () =>
      observer.events.flatMap((event) => (event.kind === 'reoffer' ? [event.sdp] : []));
    await hearsWords();
    session.send({ kind: 'press', keys: { digits: '1', durationMs: 160 } });
    await baresip.reports(/CALL_DTMF_START.*"param":"1"/);

    await baresip.command('hold');
    await eventually(() => reoffers().length === 1, 'baresip holds');
    await baresip.command('resume');
    await eventually(() => reoffers().length === 2, 'baresip resumes');

    expect(reoffers()[0]).toContain('a=sendonly');
    expect(reoffers()[1]).toContain('a=sendrecv');
    await hearsWords();
    phone.press(2);
    await baresip.reports(/CALL_DTMF_START.*"param":"2"/);
    await baresip.command('sndcode', '7');
    await eventually(() => call.digits.includes('7'), 'we hear the key of baresip');
    expect(await forged(call)).toBe(0);
    expect(await baresip.log()).not.toMatch(/srtp: .*failed/);
  },
);

onlyEmbedded('baresip learns that we refuse its REFER, and hangs up', async () => {
  const { baresip, observer } = await callBaresip('srtp-mand', 'srtp-required');

  await baresip.command('transfer', 'sip:15550002222@127.0.0.1');

  await baresip.reports(/"type":"TRANSFER_FAILED".*603/);
  expect((await observer.until('ended')).end).toMatchObject({ by: 'remote' });
});

onlyEmbedded('baresip follows our REFER, and talks to the agent', async () => {
  const { leg } = await callBaresip('srtp-mand', 'srtp-required');
  const agent = keep(await RawCallee.start({ dropsRepetitions: true }));
  const phone = keep(await SrtpPhone.open(newKey()));
  const events: ReferEvent[] = [];
  const to = { kind: 'sip', user: 'agent', host: '127.0.0.1', port: agent.port } as const;

  leg.refer({ target: to, timeoutMs: 8_000 }, (event) => events.push(event));
  const invite = await agent.take('INVITE');
  phone.follow(invite.body);
  agent.reply(invite, 200, 'OK', { body: phone.sdp() });
  await agent.take('ACK');

  await eventually(
    () => events.some(({ kind }) => kind === 'taken over'),
    'baresip reports that the agent has answered',
  );
  await speakUntilHeard(phone, phone, speech(800), 20);
  // If nobody answered its BYE, baresip would wait 32 s for that before it ends.
  agent.request(invite, 'BYE');
  await agent.takeResponse(200);
});
