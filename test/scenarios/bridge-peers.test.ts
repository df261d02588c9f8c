// A bridge one of whose ends is sipp, which knows nothing of our engine: a second leg that is not to be had, or comes too late, and what
// either end may change while the two talk. RTP is sent and heard by sockets of the test.

import { describe, expect, test } from 'vitest';
import { mulawToAlaw } from '../../src/media/g711.ts';
import { FarEnd } from '../media/support/far-end.ts';
import { eventually } from '../support/eventually.ts';
import { forSuite } from '../support/opened.ts';
import type { Sipp, SippOptions } from '../support/sipp.ts';
import { startSipp } from '../support/sipp.ts';
import {
  bye,
  byeAnswered,
  goOn,
  hungUp,
  offer,
  startInDialog,
  steer,
  steered,
} from '../support/sipp-steps.ts';
import { startStreamRig } from '../support/streams/stream-rig.ts';

const rig = forSuite(startStreamRig);

const callee = (scenario: string, options: Partial<SippOptions> = {}): Promise<Sipp> =>
  startSipp({ scenario, ...options });

async function bridge(person: Sipp, agent: Sipp, more: Readonly<Record<string, unknown>> = {}) {
  const { callId } = await rig.laptop.dial(person.uri('person'), {
    ...{ machineDetection: 'disabled', stream: null },
    bridge: { to: agent.uri('agent'), ...more },
  });
  return callId;
}

async function expectPlayedWhole(...ends: readonly Sipp[]): Promise<void> {
  for (const end of ends) expect(await end.exited).toEqual({ code: 0, errors: '' });
}

const isUp = (callId: string) =>
  eventually(() => rig.typesOf(callId).includes('transfer-answered'), 'it is bridged');

describe.concurrent('a second leg', () => {
  test('that is busy: the person is hung up', async () => {
    await using person = await callee('answer-local-bye');
    await using agent = await callee('reject', { keys: { status: '486 Busy Here' } });
    const callId = await bridge(person, agent);

    expect(await rig.endOf(callId)).toMatchObject({
      transfer: { outcome: 'busy', sipStatus: 486 },
    });
    await expectPlayedWhole(person, agent);
  });

  test('that rings for ever is cancelled after its time-out', async () => {
    await using person = await callee('answer-local-bye');
    await using agent = await callee('cancelled');
    const callId = await bridge(person, agent, { timeoutMs: 1_000 });

    expect(await rig.endOf(callId)).toMatchObject({ transfer: { outcome: 'no-answer' } });
    await expectPlayedWhole(person, agent);
  });

  test('whose 200 crosses our CANCEL is acknowledged and hung up; the person never hears it', async () => {
    await using person = await callee('answer-local-bye');
    await using agent = await callee('cancel-race');
    const callId = await bridge(person, agent, { timeoutMs: 1_000 });

    expect(await rig.endOf(callId)).toMatchObject({ transfer: { outcome: 'no-answer' } });
    expect(rig.typesOf(callId)).not.toContain('transfer-answered');
    await expectPlayedWhole(person, agent);
  });

  test('is cancelled when the person hangs up while it rings', async () => {
    await using person = await startInDialog([steered, bye, byeAnswered]);
    await using agent = await callee('cancelled');
    const callId = await bridge(person, agent);
    await eventually(() => rig.typesOf(callId).includes('transfer-ringing'), 'it rings');
    await goOn(person);

    expect(await rig.endOf(callId)).toMatchObject({
      ...{ reasonCode: 'Caller-disconnected', transfer: { outcome: 'cancelled' } },
    });
    await expectPlayedWhole(person, agent);
  });

  test('has its early media heard by the person, then itself; who hangs up ends both', async () => {
    await using hearing = await FarEnd.open();
    await using speaking = await FarEnd.open();
    await using person = await startInDialog([hungUp], hearing.port);
    const keys = { media_port: String(speaking.port) };
    await using agent = await callee('early-media-answer', { pauseMs: 400, keys });
    const callId = await bridge(person, agent);
    speaking.stream(await audioPortOf(agent), 0x21);
    const heard = () => hearing.received.filter(({ payload }) => payload[0] === 0x21).length;
    await eventually(() => heard() > 0, 'its early media is heard');
    await isUp(callId);
    expect(
      rig.eventsOf(callId).find(({ type }) => type === 'transfer-ringing')?.data,
    ).toMatchObject({ sipStatus: 183, earlyMedia: true });
    const before = heard();
    await eventually(() => heard() > before + 5, 'it goes on');
    await rig.laptop.gateway.dialer.end(callId);

    await rig.endOf(callId);
    await expectPlayedWhole(person, agent);
  });

  test('that answers and hangs up ends the call', async () => {
    await using person = await callee('answer-local-bye');
    await using agent = await callee('answer-remote-bye');
    const callId = await bridge(person, agent);

    expect(await rig.endOf(callId)).toMatchObject({
      ...{ outcome: 'completed', reasonCode: 'Bot-disconnected' },
      transfer: { outcome: 'completed' },
    });
    await expectPlayedWhole(person, agent);
  });
});

describe.concurrent.each(['the person', 'the agent'])('%s of a bridge', (who) => {
  test('holds, resumes, moves, changes its codec and presses a key, and the audio goes on', async () => {
    await using first = await FarEnd.open();
    await using second = await FarEnd.open();
    await using other = await FarEnd.open();
    const steps = [
      offer({ port: first.port, direction: 'sendonly' }),
      offer({ port: first.port }),
      offer({ port: second.port }),
      offer({ port: second.port, codec: 'PCMA' }),
      offer({ port: second.port, codec: 'PCMU' }),
    ].flatMap((step) => [steered, step]);
    await using changing = await startInDialog([...steps, hungUp], first.port);
    await using staying = await startInDialog([hungUp], other.port);
    const callId = await (who === 'the person'
      ? bridge(changing, staying)
      : bridge(staying, changing));
    await isUp(callId);
    const ours = await audioPortOf(changing);
    other.stream(await audioPortOf(staying), 0x33);
    const stop = first.stream(ours, 0x22);
    const isHeardBy = async (
      end: FarEnd,
      byte: number,
      payloadType: number,
      what: string,
      packets = 3,
    ) => {
      const from = end.received.length;
      const fits = (packet: (typeof end.received)[number]) =>
        packet.payloadType === payloadType && packet.payload.every((each) => each === byte);
      await eventually(() => end.received.slice(from).filter(fits).length >= packets, what);
    };
    await isHeardBy(first, 0x33, 0, 'the other is heard');
    await isHeardBy(other, 0x22, 0, 'it is heard');

    await steer(changing);
    // The other end hears who holds, its music that is, and meanwhile nothing is sent to who holds, but at first what was on its way.
    const sentWhileHeld = async () => {
      const before = first.received.length;
      await isHeardBy(other, 0x22, 0, 'the music of the hold is heard', 25);
      return first.received.length - before;
    };
    await sentWhileHeld();
    expect(await sentWhileHeld()).toBe(0);
    await steer(changing);
    await isHeardBy(first, 0x33, 0, 'the other is heard again');

    stop();
    second.continue(first);
    await steer(changing);
    second.stream(ours, 0x22);
    await isHeardBy(second, 0x33, 0, 'the other is heard elsewhere');
    await isHeardBy(other, 0x22, 0, 'it is heard from elsewhere');

    await steer(changing);
    await isHeardBy(second, mulawToAlaw[0x33] ?? 0, 8, 'the other is heard in A-law');
    await steer(changing);
    await isHeardBy(second, 0x33, 0, 'the other is heard in µ-law again');

    second.press(ours, 5);
    const keys = () => other.received.filter(({ payloadType }) => payloadType === 101);
    await eventually(() => keys().length === 3, 'the key is passed on');
    expect(keys().map(({ payload }) => payload[0])).toEqual([5, 5, 5]);
    await rig.laptop.gateway.dialer.end(callId);
    await rig.endOf(callId);
    await expectPlayedWhole(changing, staying);
    expectOneStream(other);
  });
});

/** Whatever the other end did, what was heard is one stream. */
function expectOneStream({ received }: FarEnd): void {
  expect(new Set(received.map(({ ssrc }) => ssrc)).size).toBe(1);
  const gaps = received.filter(
    ({ sequence }, index) =>
      index > 0 && sequence !== (((received[index - 1]?.sequence ?? 0) + 1) & 0xffff),
  );
  expect(gaps).toEqual([]);
}

/** Ours, as sipp was offered it. */
async function audioPortOf(far: Sipp): Promise<number> {
  const find = async () =>
    (await far.messages())
      .filter(({ direction }) => direction === 'received')
      .map(({ text }) => /^m=audio (\d+)/m.exec(text)?.[1])
      .find((port) => port !== undefined);
  await eventually(async () => (await find()) !== undefined, 'the INVITE is there');
  return Number(await find());
}
