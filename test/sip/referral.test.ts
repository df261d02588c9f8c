// A REFER and its NOTIFYs over a control connection, in the frames of drachtio-server 0.9.10: header names as sofia writes them,
// those that it does not know behind Content-Length, and several frames in one segment.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { CallId } from '../../src/calls/contract/identity.ts';
import type { ReferEvent } from '../../src/calls/ports.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createDrachtioSip, type DrachtioSip } from '../../src/sip/drachtio-sip.ts';
import { builtInTrunk, loadTrunks } from '../../src/sip/trunks/trunks.ts';
import { eventually } from '../support/eventually.ts';
import { RecordingLeg } from '../support/recording-leg.ts';
import {
  type ControlFrame,
  headerOf,
  ScriptedDrachtio,
  type ScriptedInvite,
} from '../support/scripted-drachtio.ts';

const agents = { kind: 'sip', user: 'agents', host: 'pbx.example' } as const;
const sdp = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\n';

let drachtio: ScriptedDrachtio;
let sip: DrachtioSip;

beforeEach(async () => {
  drachtio = await ScriptedDrachtio.start();
  const gateway = { host: '127.0.0.1', port: 5070, transport: 'udp' } as const;
  const auth = { username: 'alice', password: 'wonderland' };
  sip = createDrachtioSip({
    servers: [drachtio.address],
    trunks: loadTrunks({
      secrets: () => ({}),
      builtIn: [{ ...builtInTrunk('carrier', gateway), auth }],
    }),
    allowedNetworks: ['127.0.0.0/8'],
    logger: silentLogger,
    clock: { now: () => new Date() },
    limits: { disposeTimeoutMs: 50, byeTimeoutMs: 200 },
  });
  await eventually(() => sip.ready(), 'the engine is connected');
});

afterEach(async () => {
  await sip[Symbol.asyncDispose]();
  await drachtio[Symbol.asyncDispose]();
});

async function referring(timeoutMs = 5_000) {
  const observer = new RecordingLeg();
  const target = { kind: 'tel', number: '15551230001' } as const;
  const place = { callId: 'call-1' as CallId, target, caller: '15550001111', offerSdp: sdp };
  const leg = sip.place(place, observer);
  const invite = await drachtio.takeInvite();
  invite.confirm();
  invite.respond(200, 'OK', { body: sdp });
  await observer.until('answered');
  leg.acknowledge();
  await drachtio.take('ACK');
  const told: string[] = [];
  // As the call sees it: what is told first decides.
  observer.observe = ({ kind }) => void told.push(kind);
  const headers = { 'X-Queue': 'sales' };
  leg.refer({ target: agents, headers, timeoutMs }, (event) => told.push(wordOf(event)));
  const refer = await drachtio.take('REFER');
  return { leg, invite, refer, told };
}

function wordOf(event: ReferEvent): string {
  if (event.kind === 'progress') return `progress ${event.sipStatus}`;
  return event.kind === 'failed' ? `failed ${event.failure.sipStatus}` : event.kind;
}

/** The engine's word that it was sent, and the answer, as one segment brings them. */
function answerRefer(
  invite: ScriptedInvite,
  refer: ControlFrame,
  status: string,
  more = '',
): string {
  const transactionId = `txn-${drachtio.nextId()}`;
  const lines = [
    'Via: SIP/2.0/UDP 127.0.0.1;rport=5060;branch=z9hG4bKrefer',
    `From: <sip:100@127.0.0.1:5060>;tag=${invite.localTag}`,
    'To: <sip:callee@127.0.0.1:5070>;tag=remote',
    `Call-ID: ${invite.callId}`,
    'CSeq: 101 REFER',
  ];
  const sent = ['REFER sip:callee@127.0.0.1:5070 SIP/2.0', ...lines, 'Content-Length: 0', '', ''];
  drachtio.confirm(refer, transactionId, sent.join('\r\n'));
  const message = [
    `SIP/2.0 ${status}`,
    ...lines,
    'Content-Length: 0',
    ...(more ? [more] : []),
    '',
    '',
  ];
  const meta = { transactionId, dialogId: invite.dialogId };
  drachtio.deliver(refer.from, message.join('\r\n'), meta);
  return transactionId;
}

function notify(invite: ScriptedInvite, fragment: string, state: string): void {
  const event = ['Event: refer', `Subscription-State: ${state}`];
  const type = 'Content-Type: message/sipfrag;version=2.0';
  invite.request('NOTIFY', {
    headers: fragment === '' ? event : [...event, type],
    body: fragment,
  });
}

const answers = () => drachtio.frames.filter(({ method }) => method === 'SIP/2.0');

describe('a REFER', () => {
  test('goes into the dialog, by its id and for its remote target, with what the engine does not add', async () => {
    const { invite, refer } = await referring();

    expect(refer.fields.slice(1)).toEqual(['sip', '', invite.dialogId]);
    expect(refer.sip).toMatch(/^REFER sip:callee@127\.0\.0\.1:5070 SIP\/2\.0\r\n/);
    expect(headerOf(refer.sip, 'Refer-To')).toBe('<sip:agents@pbx.example>');
    expect(headerOf(refer.sip, 'Referred-By')).toBe('<sip:100@127.0.0.1:5060>');
    expect(headerOf(refer.sip, 'X-Queue')).toBe('sales');
    // Left to the engine, which knows the dialog; a Contact too (RFC 3515, section 2.2).
    for (const name of ['Via', 'From', 'To', 'Call-ID', 'CSeq', 'Contact', 'Route']) {
      expect(headerOf(refer.sip, name), name).toBeUndefined();
    }
  });

  test('that is challenged is sent again, in the same dialog and with credentials for the URI that it has', async () => {
    const { invite, refer, told } = await referring();
    answerRefer(
      invite,
      refer,
      '407 Proxy Authentication Required',
      'Proxy-Authenticate: Digest realm="carrier", nonce="n1", qop="auth"',
    );
    const again = await drachtio.take('REFER');

    expect(again.fields[3]).toBe(invite.dialogId);
    expect(headerOf(again.sip, 'Refer-To')).toBe('<sip:agents@pbx.example>');
    expect(headerOf(again.sip, 'CSeq')).toBe('102 REFER');
    expect(headerOf(again.sip, 'Proxy-Authorization')).toContain('uri="sip:callee@127.0.0.1:5070"');
    answerRefer(invite, again, '202 Accepted');
    await eventually(() => told.length > 0, 'it is taken');
    expect(told).toEqual(['progress 202']);
  });

  test('that is taken and followed by a BYE in the same segment was taken first', async () => {
    const { invite, refer, told } = await referring();
    refer.from.cork();
    answerRefer(invite, refer, '202 Accepted');
    invite.request('BYE');
    refer.from.uncork();
    await eventually(() => told.includes('ended'), 'the BYE is told');

    expect(told).toEqual(['progress 202', 'ended']);
  });

  test('whose NOTIFYs come with their answer, in one segment, ends once', async () => {
    const { invite, refer, told } = await referring();
    refer.from.cork();
    notify(invite, '', 'pending');
    answerRefer(invite, refer, '202 Accepted');
    notify(invite, 'SIP/2.0 180 Ringing\r\n', 'active;expires=60');
    notify(invite, 'SIP/2.0 200 OK\r\n', 'terminated;reason=noresource');
    notify(invite, 'SIP/2.0 486 Busy Here\r\n', 'terminated;reason=noresource');
    refer.from.uncork();
    await eventually(() => answers().length === 4, 'each NOTIFY is answered');

    expect(told).toEqual(['progress 100', 'progress 202', 'progress 180', 'taken over']);
    expect(answers().map(({ sip: text }) => text.split('\r\n')[0])).toEqual(
      Array.from({ length: 4 }, () => 'SIP/2.0 200 OK'),
    );
  });

  test.each<[string, string | undefined, string]>([
    ['of the far end', '603 Decline', 'failed 603'],
    ['made up by the engine, as nobody answered', undefined, 'failed 408'],
  ])('that gets a refusal %s has failed', async (_, status, word) => {
    const { invite, refer, told } = await referring();
    if (status !== undefined) answerRefer(invite, refer, status);
    else {
      drachtio.confirm(refer, 'made-up', `${refer.sip.split('\r\n')[0]}\r\n\r\n`);
      const meta = { transactionId: 'made-up', dialogId: invite.dialogId, madeUp: true };
      drachtio.deliver(refer.from, 'SIP/2.0 408 Request Timeout\r\nCSeq: 101 REFER\r\n\r\n', meta);
    }
    await eventually(() => told.length > 0, 'it is told');

    expect(told).toEqual([word]);
  });

  test('that the engine does not send has failed', async () => {
    const { refer, told } = await referring();
    drachtio.refuse(refer, 'Server error: unable to find dialog for dialog id provided');
    await eventually(() => told.length > 0, 'it is told');

    expect(told).toEqual(['failed undefined']);
  });

  test('whose engine goes away is told before the call is', async () => {
    const { invite, refer, told } = await referring();
    answerRefer(invite, refer, '202 Accepted');
    await eventually(() => told.length > 0, 'it is taken');
    drachtio.dropConnections();
    await eventually(() => told.includes('ended'), 'the leg is over');

    expect(told).toEqual(['progress 202', 'ended']);
  });
});
