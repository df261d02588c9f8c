// The capture of a call: what it must not contain, how large it may be, and what the database
// returns.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SipMessage } from '../../src/calls/capture/capture.ts';
import type { CallId } from '../../src/calls/contract/identity.ts';
import type { MediaObserver, MediaPort } from '../../src/calls/media.ts';
import { readCapture, type StoredCapture, writeCaptures } from '../../src/capture/capture-store.ts';
import { Captures } from '../../src/capture/captures.ts';
import { pcapOf } from '../../src/capture/pcap.ts';
import { redact, SipLog } from '../../src/capture/sip-log.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { sipCallIdOf, sipMessageOf } from '../../src/sip/engine/sip-tap.ts';
import { insertCall } from '../support/call-records.ts';
import { databaseKinds, openTestDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { forSuite } from '../support/opened.ts';

const at = new Date('2026-11-20T08:00:00.123Z');
const callId = 'call-1' as CallId;

function message(text: string, change: Partial<SipMessage> = {}): SipMessage {
  const place = { transport: 'udp', address: '192.0.2.1', port: 5060 };
  return { at, isOurs: true, ...place, text, ...change };
}

const invite = [
  'INVITE sip:+15551230001@192.0.2.9 SIP/2.0',
  'Via: SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bK1',
  'Call-ID: abc@192.0.2.1',
  'CSeq: 1 INVITE',
  '',
  'v=0',
].join('\r\n');

describe('a secret', () => {
  test.each([
    ['Proxy-Authorization: Digest username="u", response="s3cret"', 'Proxy-Authorization:'],
    ['authorization:Digest response="s3cret",\r\n  nonce="s3cret"', 'authorization:'],
    ['WWW-Authenticate: Digest nonce="s3cret"', 'WWW-Authenticate:'],
    ['Identity: s3cret;info=<https://x>', 'Identity:'],
    ['X-Api-Token: s3cret', 'X-Api-Token:'],
    ['X-Carrier-Secret : s3cret', 'X-Carrier-Secret :'],
    ['From: <sip:user:s3cret@carrier.example>;tag=1', '<sip:user:(not kept)@carrier.example>'],
    ['a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:s3cret', 'a=crypto:1 AES_CM_128_HMAC_SHA1_80'],
    ['k=base64:s3cret', 'k='],
  ])('is not kept: %j', (line, stays) => {
    const text = redact(`INVITE sip:a@b SIP/2.0\r\nTo: <sip:a@b>\r\n${line}\r\nCSeq: 1 INVITE\r\n`);

    expect(text).not.toContain('s3cret');
    expect(text).toContain(stays);
    expect(text).toContain('To: <sip:a@b>');
    expect(text).toContain('CSeq: 1 INVITE');
  });

  test.each([
    ['application/dtmf-relay', 'Signal=7\r\nDuration=160\r\n', 'Signal=*\r\nDuration=160\r\n'],
    ['application/dtmf-relay', 'signal = #\nDuration=160', 'signal = *\nDuration=160'],
    ['application/dtmf', '7', '*'],
    ['application/x-keys', '4711', '*'],
  ])('is a key of %s while keys are hidden', (type, body, kept) => {
    const head = `INFO sip:a@b SIP/2.0\r\nCall-ID: abc\r\nContent-Type: ${type}\r\n\r\n`;
    const log = new SipLog();
    for (const text of [head + body, invite]) log.add(message(text), undefined, true);
    log.add(message(head + body));

    expect(log.view().messages.map(({ text }) => text)).toEqual([head + kept, invite, head + body]);
  });

  test('leaves other text unchanged', () => {
    expect(redact(invite)).toBe(invite);
    const asserted = 'P-Asserted-Identity: <sip:+15551230001@192.0.2.9:5060>';
    expect(redact(asserted)).toBe(asserted);
  });
});

describe('the SIP messages of a call', () => {
  test('stay below 64 KiB, and keep the beginning and the end', () => {
    const log = new SipLog();
    for (let index = 0; index < 2_000; index += 1) {
      log.add(message(`OPTIONS sip:${index}@b SIP/2.0\r\nX: ${'x'.repeat(500)}\r\n\r\nbody`));
    }
    const { messages, left } = log.view();

    expect(JSON.stringify(messages).length).toBeLessThan(65_536);
    expect(messages[0]?.text).toMatch(/sip:0@b/);
    expect(messages[0]?.text).toMatch(/body$/);
    expect(messages.at(-1)?.text).toMatch(/sip:1999@b/);
    expect(messages.at(-1)?.text).not.toMatch(/body/);
    expect(messages.length + left).toBe(2_000);
  });

  test('are read from the frames of the control connection', () => {
    const received = `id|sip|network|512|udp|192.0.2.9|5060|08:00:00.1|txn|dialog|\r\nSIP/2.0 180 Ringing\r\ni: abc\r\n\r\n`;
    const sent = `id|response|msg|OK|application|700|tcp|192.0.2.1|5062|08:00:00.1|txn|Msg sent:|\r\n${invite}`;

    expect(sipMessageOf(received, at)).toMatchObject({
      ...{ isOurs: false, transport: 'udp', address: '192.0.2.9', port: 5060 },
    });
    expect(sipMessageOf(sent, at)).toMatchObject({ isOurs: true, transport: 'tcp', text: invite });
    expect(sipCallIdOf(sipMessageOf(received, at)?.text ?? '')).toBe('abc');
    for (const other of ['id|response|msg|OK', 'id|response|msg|NOK|why\r\nx', 'ping', '', '\r\n'])
      expect(sipMessageOf(other, at)).toBeUndefined();
  });

  test('become packets with sender, receiver and time', () => {
    const log = new SipLog();
    log.add(message(invite));
    log.add(
      message('SIP/2.0 100 Trying\r\nCall-ID: abc@192.0.2.1\r\n\r\n', {
        ...{ isOurs: false, address: '192.0.2.9', port: 5070 },
      }),
    );
    const pcap = pcapOf(log.view().messages);

    expect(pcap.readUInt32LE(0)).toBe(0xa1b2c3d4);
    const [first, length] = [24, pcap.readUInt32LE(32)];
    expect(pcap.readUInt32LE(first) * 1_000 + pcap.readUInt32LE(first + 4) / 1_000).toBe(
      at.getTime(),
    );
    const ip = pcap.subarray(first + 16, first + 16 + length);
    expect([...ip.subarray(12, 20)]).toEqual([192, 0, 2, 1, 192, 0, 2, 9]);
    expect([ip.readUInt16BE(20), ip.readUInt16BE(22)]).toEqual([5060, 5070]);
    expect(ip.subarray(28).toString()).toBe(invite);
  });
});

describe('a view of a call', () => {
  /**
   * Returns the result if it is there before anything else happens. The media worker answers within
   * `ask`.
   */
  async function atOnce<Value>(work: Promise<Value>): Promise<Value | 'later'> {
    const later = new Promise<'later'>((resolve) => setImmediate(() => resolve('later')));
    return await Promise.race([work, later]);
  }

  async function openCall() {
    const captures = new Captures({
      ...{ write: async () => undefined, sipCallIdOf, logger: silentLogger },
    });
    const call = {
      captures,
      report: (_heard?: Uint8Array): void => undefined,
      ask: (): void => undefined,
      isClosed: false,
    };
    const port = captures.wrapPort({
      open: async (_callId, observer) => {
        call.report = (heard) => {
          const of = { startedAt: 5, stepMs: 40, said: new Uint8Array(3) };
          observer.observe({ kind: 'envelope', envelope: heard && { ...of, heard } });
        };
        const close = () => {
          call.isClosed = true;
        };
        const session = { send: () => call.ask(), close };
        return session as unknown as Awaited<ReturnType<MediaPort['open']>>;
      },
    });
    const session = await port.open(callId, {} as MediaObserver);
    return { call, captures, session };
  }

  test('does not wait for the audio of an unanswered call', async () => {
    const { call, captures } = await openCall();
    call.ask = () => call.report(undefined);
    expect(await atOnce(captures.view(callId))).toEqual({});

    call.ask = () => call.report(new Uint8Array([0, 100, 127]));
    expect(await atOnce(captures.view(callId))).toMatchObject({ audio: { heard: 'AGR/' } });
    // The previous report is kept.
    call.ask = () => call.report(undefined);
    expect(await atOnce(captures.view(callId))).toMatchObject({ audio: { heard: 'AGR/' } });
  });

  test('asks no worker for a call whose media is closed, and includes the last report', async () => {
    const { call, captures, session } = await openCall();
    session?.close();
    expect(call.isClosed).toBe(true);
    expect(await atOnce(captures.view(callId))).toEqual({});

    call.report(new Uint8Array([0, 100, 127]));
    expect(await atOnce(captures.view(callId))).toMatchObject({ audio: { heard: 'AGR/' } });
  });
});

describe.each(databaseKinds)('captures on %s', (kind) => {
  const database = forSuite(() => openTestDatabase(kind));
  beforeAll(async () => {
    await insertCall(database.pool, { callId });
  });
  afterAll(() => database.clear());

  test('are written once, when the call is off the wire', async () => {
    const written: StoredCapture[][] = [];
    const captures = new Captures({
      write: async (batch) => {
        written.push([...batch]);
        await writeCaptures(database.pool, batch);
      },
      sipCallIdOf,
      logger: silentLogger,
    });
    let observer: MediaObserver | undefined;
    let ask = (): void => undefined;
    const port = captures.wrapPort({
      open: async (_callId, given) => {
        observer = given;
        return { send: () => ask() } as unknown as Awaited<ReturnType<MediaPort['open']>>;
      },
    });
    captures.follow(callId, 'abc@192.0.2.1');
    await port.open(callId, { onAmd: () => undefined } as unknown as MediaObserver);
    captures.add(message(invite));
    captures.add(message(invite.replace('abc', 'of-somebody-else')));
    const heard = new Uint8Array([0, 100, 127]);
    // A reader gets the present state, not that of the previous read.
    ask = () => {
      const envelope = { startedAt: 5, stepMs: 40, heard, said: new Uint8Array(3) };
      setImmediate(() => observer?.observe({ kind: 'envelope', envelope }));
    };
    expect(await captures.view(callId)).toMatchObject({ audio: { heard: 'AGR/' } });
    // The reader does not wait for a worker that does not answer.
    ask = () => undefined;
    expect(await captures.view(callId)).toMatchObject({ audio: { heard: 'AGR/' } });
    const words = { kind: 'words', at: 3, untilAt: 9, text: 'hi' } as const;
    observer?.observe({
      kind: 'envelope',
      envelope: {
        ...{ startedAt: 5, stepMs: 40, heard, said: new Uint8Array(3) },
        notes: { notes: [{ kind: 'mark', at: 1, name: 'm' }, words], left: 2 },
      },
    });
    const command = { kind: 'command', at: 2, what: 'stop', by: 'app-1', tookMs: 7 } as const;
    captures.note(callId, command);
    captures.note('call-9' as CallId, command);
    // The call was transferred to two people. The second one is called at two gateways.
    for (const [sipCallId, legId] of [
      ...[['first@x', 'leg-a'] as const, ['second@x', 'leg-b'] as const],
      ...[['again@x', 'leg-b'] as const],
    ]) {
      captures.follow(callId, sipCallId, legId);
      captures.add(message(invite.replace('abc@192.0.2.1', sipCallId)));
    }

    captures.finish(callId);
    captures.finish(callId);
    await eventually(
      async () => (await captures.view(callId)) === undefined,
      'the capture was stored',
    );

    expect(written).toHaveLength(1);
    expect(await readCapture(database.pool, callId)).toEqual({
      sip: {
        messages: [
          { ...message(invite), at: at.toISOString() },
          ...['first@x', 'second@x', 'again@x'].map((sipCallId, index) => ({
            ...message(invite.replace('abc@192.0.2.1', sipCallId)),
            ...{ at: at.toISOString(), leg: [1, 2, 2][index] },
          })),
        ],
        left: 0,
      },
      audio: { startedAt: 5, stepMs: 40, heard: 'AGR/', said: 'AAAA' },
      notes: { notes: [{ kind: 'mark', at: 1, name: 'm' }, command, words], left: 2 },
    });
    expect(await readCapture(database.pool, 'call-2')).toBeUndefined();
  });
});
