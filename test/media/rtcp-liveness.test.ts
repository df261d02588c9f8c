// Which RTCP keeps a call alive while the far end sends no audio. The tests send real datagrams to
// a media worker.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { MediaGateway } from '../../src/media/media-port.ts';
import { eventually } from '../support/eventually.ts';
import { freePortRange, type PortRange } from '../support/free-port.ts';
import { FarEnd } from './support/far-end.ts';
import { answerFor, callId, createScripted, portOf } from './support/gateway.ts';
import { observe } from './support/observed.ts';
import { description, receiverReport, senderReport } from './support/rtcp.ts';

const ssrc = 0x1234;
const loud = 0x10;
const ofSender = (sender = ssrc) =>
  Uint8Array.from([...senderReport(sender), ...description(sender)]);

let media: MediaGateway;
let ports: PortRange;
let others: PortRange;
beforeAll(async () => {
  [ports, others] = [await freePortRange(20), await freePortRange(4)];
  media = createScripted({ ...ports, inactivityTimeoutMs: 2_000, portDrainMs: 0 });
  expect(await media.ready()).toBe(true);
});
afterAll(async () => {
  await media[Symbol.asyncDispose]();
  await ports[Symbol.asyncDispose]();
  await others[Symbol.asyncDispose]();
});

const discarded = async () => (await media.statistics()).packetsDiscarded;

/** Opens a call whose far end is `phone`. */
async function answered(phone: FarEnd, extra = '') {
  const observed = observe();
  const session = await media.open(callId, observed);
  if (session === undefined) throw new Error('no session');
  session.applyAnswer(answerFor(phone.port, extra), 'answer');
  await eventually(() => phone.received.length > 0, 'silence arrives from the gateway');
  return { observed, session, rtpPort: portOf(session.offerSdp) };
}

/**
 * Sends a datagram that is not a report after the others. When it is counted, the others have been
 * read.
 */
async function expectIgnored(
  count: number,
  from: FarEnd,
  toPort: number,
  ...datagrams: readonly Uint8Array[]
) {
  const wanted = (await discarded()) + count + 1;
  for (const datagram of [...datagrams, Uint8Array.of(0)]) from.sendRaw(toPort, datagram);
  await eventually(async () => (await discarded()) >= wanted, `${count} are ignored`);
  expect(await discarded()).toBe(wanted);
}

describe('a report counts as the far end’s if it', () => {
  test('comes from the port above that of its RTP', async () => {
    await using phone = await FarEnd.open('127.0.0.1', others.portMin);
    await using reporter = await FarEnd.open('127.0.0.1', others.portMin + 1);
    const { session, rtpPort } = await answered(phone);

    await expectIgnored(0, reporter, rtpPort + 1, ofSender(), ofSender(9));
    session.close();
  });

  test('comes from the port that a=rtcp names', async () => {
    await using phone = await FarEnd.open();
    await using reporter = await FarEnd.open();
    const { session, rtpPort } = await answered(phone, `a=rtcp:${reporter.port}\r\n`);

    await expectIgnored(0, reporter, rtpPort + 1, ofSender(), ofSender(9));
    session.close();
  });

  test('comes from any port of its host and has the SSRC of its audio', async () => {
    await using phone = await FarEnd.open();
    await using reporter = await FarEnd.open();
    const { session, rtpPort } = await answered(phone);
    await expectIgnored(1, reporter, rtpPort + 1, ofSender());
    const before = (await media.statistics()).packetsReceived;
    phone.send(rtpPort, loud);
    const isHeard = async () => (await media.statistics()).packetsReceived > before;
    await eventually(isHeard, 'the audio is heard');

    await expectIgnored(1, reporter, rtpPort + 1, ofSender(), ofSender(9));
    session.close();
  });

  test('comes from its RTP port, to either of our ports, without agreed multiplexing', async () => {
    await using phone = await FarEnd.open();
    const { session, rtpPort } = await answered(phone);

    await expectIgnored(0, phone, rtpPort + 1, ofSender(9));
    await expectIgnored(0, phone, rtpPort, ofSender(9));
    session.close();
  });

  test('is complete', async () => {
    await using phone = await FarEnd.open();
    const { session, rtpPort } = await answered(phone);
    const cutShort = ofSender().subarray(0, 30);

    await expectIgnored(2, phone, rtpPort + 1, cutShort, Uint8Array.of(0x80, 201, 0, 1));
    session.close();
  });
});

test.each([
  ['names none', 4_000, 'a=rtcp:0\r\n'],
  ['has its audio at the highest port', 65_535, ''],
])('a far end that %s gets no reports, and harms no other call', async (_title, port, extra) => {
  await using phone = await FarEnd.open();
  const other = await answered(phone);
  const observed = observe();
  const session = await media.open(callId, observed);
  session?.applyAnswer(answerFor(port, extra), 'answer');
  const sent = (await media.statistics()).packetsSent;
  await eventually(async () => (await media.statistics()).packetsSent > sent + 4, 'audio is sent');
  session?.close();

  const before = phone.received.length;
  await eventually(() => phone.received.length > before + 4, 'the other call goes on');
  expect(await media.ready()).toBe(true);
  other.session.close();
});

test('a silent call stays active by reports of its far end, but not by those of a neighbour', async () => {
  await using phone = await FarEnd.open('127.0.0.1', others.portMin);
  await using reporter = await FarEnd.open('127.0.0.1', others.portMin + 1);
  await using silent = await FarEnd.open();
  await using neighbour = await FarEnd.open();
  const reported = await answered(phone);
  const abandoned = await answered(silent);
  const timer = setInterval(() => {
    reporter.sendRaw(reported.rtpPort + 1, Uint8Array.from(receiverReport(ssrc)));
    neighbour.sendRaw(abandoned.rtpPort + 1, Uint8Array.from(receiverReport(ssrc)));
  }, 50);
  try {
    await eventually(
      () => abandoned.observed.inactive > 0,
      'the call without RTCP is reported as inactive',
    );
  } finally {
    clearInterval(timer);
  }

  expect(reported.observed.inactive).toBe(0);
  await eventually(
    () => reported.observed.inactive > 0,
    'inactivity is reported after the last RTCP report',
  );
  reported.session.close();
  abandoned.session.close();
});
