import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { MediaSession } from '../../src/calls/media.ts';
import { eventually } from '../support/eventually.ts';
import { freeUdpPort } from '../support/free-port.ts';
import { forSuite } from '../support/opened.ts';
import { FarEnd } from './support/far-end.ts';
import { answerFor, callId, createScripted, portOf } from './support/gateway.ts';
import { type Observed, observe } from './support/observed.ts';

const loud = 0x10;
/** The source is locked 150 frames after the first packet. Each frame has at most one packet. */
const packetsUntilLocked = 160;

type LockedCall = {
  readonly session: MediaSession;
  readonly observed: Observed;
  readonly port: number;
  readonly farEnd: FarEnd;
  readonly stopStream: () => void;
};

describe('a call whose source is locked', () => {
  const calls: LockedCall[] = [];

  async function place(): Promise<LockedCall> {
    const observed = observe();
    const session = await media.open(callId, observed);
    if (session === undefined) throw new Error('no session');
    // A port that no other call gets while it is closed.
    const farEnd = await FarEnd.open('127.0.0.1', await freeUdpPort());
    const port = portOf(session.offerSdp);
    session.applyAnswer(answerFor(farEnd.port), 'answer');
    return { session, observed, port, farEnd, stopStream: farEnd.stream(port, loud) };
  }

  function next(): LockedCall {
    const call = calls.pop();
    if (call === undefined) throw new Error('one call for each test');
    return call;
  }

  async function end({ session, farEnd, stopStream }: LockedCall): Promise<void> {
    stopStream();
    session.close();
    await farEnd[Symbol.asyncDispose]();
  }

  const media = forSuite(() => createScripted({ portMin: 31_460, portMax: 31_479 }));
  beforeAll(async () => {
    for (let call = 0; call < 3; call += 1) calls.push(await place());
    const isLocked = ({ farEnd }: LockedCall) => farEnd.received.length >= packetsUntilLocked;
    await eventually(() => calls.every(isLocked), 'every call is locked to its phone');
  });

  afterAll(() => Promise.all(calls.map(end)));

  test('follows the far end to a new port that a NAT assigns in mid-speech', async () => {
    const call = next();
    await using moved = await FarEnd.open();
    call.stopStream();
    moved.continue(call.farEnd);
    const stop = moved.stream(call.port, loud);
    await eventually(() => moved.received.length >= 3, 'audio arrives at the new port');
    stop();

    expect(call.observed.failures).toEqual([]);
    await end(call);
  });

  test('survives ICMP errors when the far end closes its port before its BYE', async () => {
    const call = next();
    const { port } = call.farEnd;
    call.stopStream();
    await call.farEnd[Symbol.asyncDispose]();
    const before = (await media.statistics()).packetsSent;
    for (let sent = 0; sent < 60; ) sent = (await media.statistics()).packetsSent - before;
    expect(call.observed.failures).toEqual([]);

    await using again = await FarEnd.open('127.0.0.1', port);
    await eventually(
      () => again.received.length >= 3,
      'audio arrives at the port that is open again',
    );
    call.session.close();
  });

  test('can be held, and resumed at another address', async () => {
    const call = next();
    await using other = await FarEnd.open();
    call.stopStream();
    call.session.answerReoffer(answerFor(call.farEnd.port, 'a=sendonly\r\n'));
    call.session.answerReoffer(answerFor(other.port));
    const { ssrc } = call.farEnd;
    const header = [0x80, 101, 0, 10, 0, 0, 3, 0, 0, 0, ssrc >> 8, ssrc & 0xff];
    await eventually(() => other.received.length >= 3, 'audio arrives at the other address');
    other.sendRaw(call.port, Uint8Array.from([...header, 4, 0x8a, 0x03, 0x20]));
    await eventually(
      () => call.observed.dtmf.length > 0,
      'a key from the other address is reported',
    );

    expect(call.observed.dtmf).toEqual([{ digit: '4', durationMs: 100 }]);
    expect(call.observed.failures).toEqual([]);
    await end(call);
  });
});
