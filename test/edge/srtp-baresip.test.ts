// Encrypted calls with baresip, whose SRTP is libre's own and whose SIP runs over TLS.

import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import type { AudioEnvelope } from '../../src/calls/capture/capture.ts';
import type { CallId } from '../../src/calls/contract/identity.ts';
import type { MediaEncryption } from '../../src/calls/media.ts';
import type { Sound } from '../../src/calls/playback/playback.ts';
import { encodeMulaw } from '../../src/media/g711.ts';
import { createScripted } from '../media/support/gateway.ts';
import { openTrunkWorld } from '../sip/trunk-world.ts';
import { type BaresipOptions, startBaresip } from '../support/baresip.ts';
import { type Certificate, createCa } from '../support/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { RecordingLeg } from '../support/recording-leg.ts';
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
const tone: Sound = {
  ...{ name: 'tone', durationMs: 5_000 },
  mulaw: Uint8Array.from({ length: 5 * rateHz }, (_, at) =>
    encodeMulaw(Math.round(8_000 * Math.sin((2 * Math.PI * 440 * at) / rateHz))),
  ),
};

const median = (levels: Uint8Array) => [...levels].sort((a, b) => a - b)[levels.length >> 1] ?? 0;

async function callBaresip(theirs: BaresipOptions['encryption'], ours: MediaEncryption) {
  await using baresip = await startBaresip({ user, certificate, encryption: theirs });
  const gateway = { host: '127.0.0.1', port: baresip.port, transport: 'tls' } as const;
  await using world = await openTrunkWorld({
    gateways: 0,
    trunk: { gateways: [{ ...gateway, priority: 1, weight: 1 }], tls: { ca }, media: ours },
  });
  await using media = createScripted();
  const envelopes: (AudioEnvelope | undefined)[] = [];
  const session = await media.open(
    'call-1' as CallId,
    { observe: (event) => void (event.kind === 'envelope' && envelopes.push(event.envelope)) },
    world.sip.offerFor('carrier'),
  );
  if (session === undefined) throw new Error('no media session');
  const observer = new RecordingLeg();
  const leg = world.sip.place(
    {
      ...{ callId: 'call-1' as CallId, target, trunk: 'carrier', caller: '15550001111' },
      offerSdp: session.offerSdp,
    },
    observer,
  );
  const { sdp } = await observer.until('answered');
  expect(session.applyAnswer(sdp, 'answer')).toBe(true);
  leg.acknowledge();
  session.send({ kind: 'play', playback: { playbackId: 'p', source: 'command', sound: tone } });
  const before = (await media.statistics()).packetsReceived;
  await eventually(
    async () => (await media.statistics()).packetsReceived > before + 100,
    'two seconds of audio come back from baresip',
  );
  session.send({ kind: 'requestEnvelope' });
  await eventually(() => envelopes.length > 0, 'the loudness of the call arrives');
  const statistics = await media.statistics();
  leg.hangUp('done');
  await leg.released;
  const { heard = new Uint8Array(), said = new Uint8Array() } = envelopes[0] ?? {};
  // The last second, in steps of 40 ms.
  const levels = { heard: median(heard.slice(-25)), said: median(said.slice(-25)) };
  return { sdp, offer: session.offerSdp, statistics, levels };
}

onlyEmbedded('baresip that requires SRTP hears us, and we hear it', async () => {
  const call = await callBaresip('srtp-mand', 'srtp-required');

  expect(call.offer).toContain('RTP/SAVP');
  expect(call.sdp).toMatch(/a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:/);
  expect(call.levels.said).toBeGreaterThan(0);
  expect(Math.abs(call.levels.heard - call.levels.said)).toBeLessThanOrEqual(1);
  expect(call.statistics.packetsForged).toBe(0);
});

onlyEmbedded('baresip without SRTP answers our offer of it without, and is heard', async () => {
  const call = await callBaresip('none', 'srtp');

  expect(call.offer).toContain('RTP/AVP');
  expect(call.sdp).not.toContain('crypto');
  expect(call.levels.said).toBeGreaterThan(0);
  expect(Math.abs(call.levels.heard - call.levels.said)).toBeLessThanOrEqual(1);
});
