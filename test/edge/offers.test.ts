// A re-INVITE without an offer, which asks for ours (RFC 3261, section 14.2). PBXs send it in order
// to resume a held call or to transfer it, so our offer decides whether the parties hear each other
// afterwards (RFC 6337, sections 5.1 to 5.3).

import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { CallLeg } from '../../src/calls/ports.ts';
import type { MediaGateway } from '../../src/media/media-port.ts';
import { FarEnd } from '../media/support/far-end.ts';
import { answerFor, callId, createScripted } from '../media/support/gateway.ts';
import { observe } from '../media/support/observed.ts';
import { openTrunkWorld } from '../sip/trunk-world.ts';
import { eventually } from '../support/eventually.ts';
import { MediaLeg } from '../support/media-leg.ts';
import type { RawCallee, RawMessage } from '../support/raw-callee.ts';
import { recordedLogger } from '../support/recorded-logger.ts';

let media: MediaGateway;

beforeAll(async () => {
  media = createScripted();
  expect(await media.ready()).toBe(true);
});

afterAll(() => media[Symbol.asyncDispose]());

type Talk = {
  readonly callee: RawCallee;
  readonly invite: RawMessage;
  readonly farEnd: FarEnd;
  readonly leg: CallLeg;
  readonly observer: MediaLeg;
  readonly log: ReturnType<typeof recordedLogger>;
  /** Sends a re-INVITE or UPDATE, and returns the SDP of our 200. */
  readonly ask: (body?: string, method?: string) => Promise<string>;
  readonly acknowledge: (body?: string) => void;
};

/** Sets up a call in which our INVITE has been answered. */
async function talk(answerSdp = (port: number) => answerFor(port)): Promise<Talk> {
  const log = recordedLogger();
  const world = await openTrunkWorld({ gateways: 1, logger: log.logger });
  const farEnd = await FarEnd.open();
  const session = await media.open(callId, observe());
  if (session === undefined) throw new Error('no session');
  onTestFinished(async () => {
    session.close();
    await world[Symbol.asyncDispose]();
    await farEnd[Symbol.asyncDispose]();
  });
  const [callee] = world.gateways;
  if (callee === undefined) throw new Error('no gateway');
  const observer = new MediaLeg(session);
  const target = { kind: 'tel', number: '15551230001' } as const;
  const { offerSdp } = session;
  const request = { callId, target, trunk: 'carrier', caller: '15550001111', offerSdp };
  const leg = world.sip.place(request, observer);
  const invite = await callee.take('INVITE');
  callee.reply(invite, 200, 'OK', { body: answerSdp(farEnd.port) });
  await observer.until('answered');
  leg.acknowledge();
  await callee.take('ACK');
  await eventually(() => farEnd.received.length > 0, 'the gateway sends audio');
  return {
    ...{ callee, invite, farEnd, leg, observer, log },
    ask: async (body = '', method = 'INVITE') => {
      callee.request(invite, method, { body });
      return (await callee.takeResponse(200)).body;
    },
    acknowledge: (body = '') => callee.request(invite, 'ACK', { body }),
  };
}

const mediaLinesOf = (sdp: string) => sdp.split('\r\n').filter((line) => /^[ma]=/.test(line));
const originOf = (sdp: string) => /^o=- (\d+) (\d+) /m.exec(sdp)?.slice(1).map(Number) ?? [];
const quiet = (farEnd: FarEnd) => {
  let before = -1;
  return eventually(async () => {
    const isQuiet = farEnd.received.length === before;
    before = farEnd.received.length;
    await new Promise((resolve) => setTimeout(resolve, 100));
    return isQuiet;
  }, 'the gateway has stopped sending');
};
const hears = async (farEnd: FarEnd, payloadType: number) => {
  const from = farEnd.received.length;
  await eventually(
    () => farEnd.received.slice(from).some((packet) => packet.payloadType === payloadType),
    `the far end receives payload type ${payloadType}`,
  );
};

describe('a re-INVITE without an offer', () => {
  test('gets our first offer again if nothing has changed', async () => {
    const { ask, acknowledge, farEnd, invite } = await talk();

    const offered = await ask();
    acknowledge(answerFor(farEnd.port));

    expect(offered).toBe(invite.body);
  });

  test('resumes a held call: we offer all codecs, keys and sendrecv, and send again', async () => {
    const onlyPcmu = (port: number) => answerFor(port).replace(' 101', '');
    const { ask, acknowledge, farEnd, invite } = await talk(onlyPcmu);
    const held = await ask(`${onlyPcmu(farEnd.port)}a=sendonly\r\n`);
    acknowledge();
    await quiet(farEnd);

    const offered = await ask();
    acknowledge(answerFor(farEnd.port));

    expect(held).toContain('a=recvonly');
    expect(mediaLinesOf(offered)).toEqual(mediaLinesOf(invite.body));
    const [id, version = 0] = originOf(held);
    expect(originOf(offered)).toEqual([id, version + 1]);
    await hears(farEnd, 0);
  });

  test('may change the codec and keep us on hold, by the answer in its ACK', async () => {
    const { ask, acknowledge, farEnd, leg, observer } = await talk();
    const inPcma = answerFor(farEnd.port).replace('AVP 0', 'AVP 8');
    await ask();
    acknowledge(`${inPcma}a=sendonly\r\n`);
    await observer.until('lateAnswer');
    await quiet(farEnd);

    await ask();
    acknowledge(inPcma);

    await hears(farEnd, 8);
    leg.hangUp('done');
  });

  test('keeps the payload types of the far end and the m= lines of its last offer', async () => {
    const { ask, acknowledge, farEnd } = await talk();
    await ask(
      [
        ...['v=0', 'o=- 1 2 IN IP4 127.0.0.1', 's=-', 'c=IN IP4 127.0.0.1', 't=0 0'],
        ...['m=image 5000 udptl t38', `m=audio ${farEnd.port} RTP/AVP 8 96 101`],
        ...['a=rtpmap:96 telephone-event/8000', 'a=rtpmap:101 speex/8000', 'a=sendonly', ''],
      ].join('\r\n'),
    );
    acknowledge();

    const lines = mediaLinesOf(await ask());

    expect(lines[0]).toBe('m=image 0 udptl t38');
    expect(lines[1]).toMatch(/^m=audio \d+ RTP\/AVP 0 8 96$/);
    expect(lines).toContain('a=rtpmap:96 telephone-event/8000');
    expect(lines).toContain('a=sendrecv');
  });

  test.each([
    ['without an answer', '', 'an ACK contains no answer to our offer'],
    ['with an unusable answer', 'v=0\r\n', 'an ACK contains an unusable answer to our offer'],
  ])('leaves the media as it was after an ACK %s, and logs that', async (_, body, message) => {
    const { ask, acknowledge, farEnd, observer, log } = await talk();

    await ask();
    acknowledge(body);

    await eventually(
      () => log.lines.some(({ msg }) => msg.includes(message)),
      'the log names the flaw',
    );
    await hears(farEnd, 0);
    expect(observer.kinds()).not.toContain('ended');
  });

  test('refuses an UPDATE with an offer until its ACK (RFC 3311, section 5.2)', async () => {
    const { ask, acknowledge, callee, invite, farEnd, observer } = await talk();
    await ask();

    callee.request(invite, 'UPDATE', { body: answerFor(farEnd.port) });

    expect(await callee.takeAnswer('UPDATE')).toBe(491);
    // RawCallee's ACK has the number of its last request, and this one acknowledges the INVITE.
    expect(observer.kinds()).not.toContain('reoffer');
    acknowledge();
  });
});

describe('a far end that accepts only short packets (maxptime)', () => {
  test('gets packets of that length without gaps, from its answer until it accepts longer ones', async () => {
    const { ask, acknowledge, farEnd } = await talk((port) => answerFor(port, 'a=maxptime:10\r\n'));
    const lengths = () => new Set(farEnd.received.map(({ payload }) => payload.length));
    await eventually(() => farEnd.received.length > 20, 'the far end receives more packets');
    expect(lengths()).toEqual(new Set([80]));

    await ask(answerFor(farEnd.port));
    acknowledge();

    await eventually(() => lengths().has(160), 'the far end receives longer packets');
    const gaps = farEnd.received.filter(
      ({ sequence }, index) =>
        index > 0 && sequence !== (((farEnd.received[index - 1]?.sequence ?? 0) + 1) & 0xffff),
    );
    expect(gaps).toEqual([]);
  });

  test('learns the length of our packets, and what we accept', async () => {
    const { invite } = await talk();

    expect(mediaLinesOf(invite.body)).toEqual(
      expect.arrayContaining(['a=ptime:20', 'a=maxptime:150']),
    );
  });
});
