// The whole gateway with a carrier that requires SRTP over TLS: bridges to a plain and to another
// encrypted leg, a referral, and far ends that don't encrypt. The carrier's phone has an SRTP of
// its own.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createCa } from '../support/certificates.ts';
import { makeSeededDataDir } from '../support/databases.ts';
import { startGateway } from '../support/gateway-process.ts';
import { forSuite } from '../support/opened.ts';
import { one, RawCallee, type RawMessage } from '../support/raw-callee.ts';
import { startReceiver } from '../support/receiver.ts';
import { keep } from '../support/srtp/plain-phone.ts';
import { newKey, SrtpPhone, speakUntilHeard } from '../support/srtp/srtp-phone.ts';
import { speech } from '../support/streams/stream-rig.ts';
import { startTlsCallee } from '../support/tls-channel.ts';

const receiver = forSuite(startReceiver);
const rig = forSuite(async () => {
  const dataDir = await makeSeededDataDir();
  const ca = await createCa(dataDir.path, 'carrier-ca');
  const secure = await startTlsCallee(await ca.issue('localhost'));
  const plain = await RawCallee.start({ dropsRepetitions: true });
  const trunksFile = join(dataDir.path, 'trunks.yaml');
  await writeFile(
    trunksFile,
    `trunks:
  - name: secure
    default: true
    media: srtp-required
    tls: { caFile: carrier-ca.pem }
    gateways:
      - { host: localhost, port: ${secure.port}, transport: tls }
  - name: plain
    gateways:
      - { host: 127.0.0.1, port: ${plain.port} }
`,
  );
  const gateway = await startGateway(dataDir.path, {
    TRUNKS_FILE: trunksFile,
    NOTIFY_ALLOWED_NETWORKS: '127.0.0.0/8',
    LOG_LEVEL: 'debug',
  });
  return {
    ...{ gateway, secure: secure.callee, plain },
    async [Symbol.asyncDispose]() {
      await gateway.terminate();
      await secure[Symbol.asyncDispose]();
      await plain[Symbol.asyncDispose]();
      await dataDir.remove();
    },
  };
});

const person = '+15551230001';
const dial = (more: Readonly<Record<string, unknown>>) =>
  rig.gateway.dialer.dial({
    ...{ target: `tel:${person}`, notifyurl: receiver.url, machineDetection: 'disabled', ...more },
  });
const endOf = async (callId: string) => (await receiver.untilEnded(callId)).at(-1);

/** Waits for the INVITE, and answers it. */
async function answer(callee: RawCallee, phone: SrtpPhone, tag: string): Promise<RawMessage> {
  const invite = await callee.take('INVITE');
  phone.follow(invite.body);
  callee.reply(invite, 200, 'OK', { body: phone.sdp(), tag });
  await callee.take('ACK');
  return invite;
}

async function hearEachOther(one: SrtpPhone, other: SrtpPhone, seed: number): Promise<void> {
  await speakUntilHeard(one, other, speech(1_600, seed));
  await speakUntilHeard(other, one, speech(1_600, seed + 1));
}

describe('an encrypted call', () => {
  test.each([
    ['a plain leg', 'plain', () => undefined],
    ['another encrypted leg with keys of its own', 'secure', newKey],
  ] as const)('is bridged to %s, byte by byte', async (_, trunk, agentKey) => {
    const [phone, agent] = [
      keep(await SrtpPhone.open(newKey())),
      keep(await SrtpPhone.open(agentKey())),
    ];
    const { callId } = await dial({ bridge: { to: 'tel:+15551230002', trunk } });
    const first = await answer(rig.secure, phone, 'person');
    const second = await answer(rig[trunk], agent, 'agent');

    await hearEachOther(phone, agent, 10);

    const keyIn = (invite: RawMessage) => /inline:(\S+)/.exec(invite.body)?.[1] ?? 'none';
    expect(keyIn(first)).not.toBe(keyIn(second));
    expect([phone.rejected, agent.rejected]).toEqual([0, 0]);
    rig[trunk].request(second, 'BYE', { tag: 'agent' });
    rig.secure.reply(await rig.secure.take('BYE'), 200, 'OK', { contact: false });
    expect(await endOf(callId)).toMatchObject({ outcome: 'completed' });
    expect(rig.gateway.output()).not.toContain(keyIn(first));
    expect(rig.gateway.output()).not.toContain(phone.key?.inline);
  });

  test('is referred over its TLS connection', async () => {
    const phone = keep(await SrtpPhone.open(newKey()));
    const { callId } = await dial({ bridge: { to: 'tel:+15551230002', mode: 'refer' } });
    const invite = await answer(rig.secure, phone, 'person');
    const refer = await rig.secure.take('REFER');
    expect(one(refer, 'refer-to')).toContain('15551230002');
    rig.secure.reply(refer, 202, 'Accepted', { tag: 'person' });
    rig.secure.request(invite, 'NOTIFY', {
      ...{ tag: 'person', type: 'message/sipfrag;version=2.0', body: 'SIP/2.0 200 OK\r\n' },
      headers: ['Event: refer', 'Subscription-State: terminated;reason=noresource'],
    });
    expect(await rig.secure.takeAnswer('NOTIFY')).toBe(200);
    rig.secure.reply(await rig.secure.take('BYE'), 200, 'OK', { contact: false });
    expect(await endOf(callId)).toMatchObject({ outcome: 'transferred' });
  });
});

describe('a far end that does not encrypt', () => {
  test.each([
    ['answers RTP/AVP without a key', { protocol: 'RTP/AVP' }],
    ['answers RTP/SAVP without a key', { protocol: 'RTP/SAVP' }],
    [
      'answers with a suite that we did not offer',
      { protocol: 'RTP/SAVP', crypto: ['a=crypto:1 F8_128_HMAC_SHA1_80 inline:AAAA'] },
    ],
  ] as const)('%s: the call ends, says why, and sends no audio', async (_, sdp) => {
    const phone = keep(await SrtpPhone.open());
    const { callId } = await dial({});
    const invite = await rig.secure.take('INVITE');
    rig.secure.reply(invite, 200, 'OK', { body: phone.sdp(sdp) });
    await rig.secure.take('ACK');
    rig.secure.reply(await rig.secure.take('BYE'), 200, 'OK', { contact: false });

    expect(await endOf(callId)).toMatchObject({
      ...{ outcome: 'carrier-failure', reason: '200 OK without a usable SRTP key' },
    });
    expect(phone.heard).toEqual([]);
  });

  test('is no agent either: the transfer fails, and the person is not connected', async () => {
    const [phone, agent] = [keep(await SrtpPhone.open(newKey())), keep(await SrtpPhone.open())];
    const { callId } = await dial({ bridge: { to: 'tel:+15551230002' } });
    await answer(rig.secure, phone, 'person');
    const invite = await rig.secure.take('INVITE');
    rig.secure.reply(invite, 200, 'OK', { body: agent.sdp(), tag: 'agent' });
    await rig.secure.take('ACK');
    for (let bye = 0; bye < 2; bye += 1)
      rig.secure.reply(await rig.secure.take('BYE'), 200, 'OK', { contact: false });

    expect(await endOf(callId)).toMatchObject({
      transfer: { outcome: 'carrier-failure', sipStatus: 200 },
    });
    expect(JSON.stringify((await rig.gateway.dialer.call(callId)).body)).toContain(
      'OK without a usable SRTP key',
    );
    expect(agent.heard).toEqual([]);
  });
});
