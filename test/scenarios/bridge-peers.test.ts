// Bridges with sipp, an independent SIP implementation, at both ends: a second leg that does not
// answer or answers too late, and what either end may change while the two talk. Sockets of the
// test send and receive the RTP.

import { describe, expect, test } from 'vitest';
import { mulawToAlaw } from '../../src/media/g711.ts';
import { FarEnd } from '../media/support/far-end.ts';
import { eventually } from '../support/eventually.ts';
import { forSuite } from '../support/opened.ts';
import type { Sipp, SippOptions } from '../support/sipp.ts';
import { startSipp } from '../support/sipp.ts';
import {
  answerOnRequest,
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
  eventually(() => rig.typesOf(callId).includes('transfer-answered'), 'the call is bridged');

describe.concurrent('a second leg', () => {
  test('that is busy makes the gateway hang up the person', async () => {
    await using person = await callee('answer-local-bye');
    await using agent = await callee('reject', { keys: { status: '486 Busy Here' } });
    const callId = await bridge(person, agent);

    expect(await rig.endOf(callId)).toMatchObject({
      transfer: { outcome: 'busy', sipStatus: 486 },
    });
    await expectPlayedWhole(person, agent);
  });

  test('that does not stop ringing is cancelled after its time-out', async () => {
    await using person = await callee('answer-local-bye');
    await using agent = await callee('cancelled');
    const callId = await bridge(person, agent, { timeoutMs: 1_000 });

    expect(await rig.endOf(callId)).toMatchObject({ transfer: { outcome: 'no-answer' } });
    await expectPlayedWhole(person, agent);
  });

  test('whose 200 crosses our CANCEL is acknowledged and hung up, and the person never hears it', async () => {
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
    await eventually(
      () => rig.typesOf(callId).includes('transfer-ringing'),
      'the agent’s phone rings',
    );
    await goOn(person);

    expect(await rig.endOf(callId)).toMatchObject({
      ...{ reasonCode: 'Caller-disconnected', transfer: { outcome: 'cancelled' } },
    });
    await expectPlayedWhole(person, agent);
  });

  test('passes its early media and then its audio to the person, and a hang-up ends both legs', async () => {
    await using hearing = await FarEnd.open();
    await using speaking = await FarEnd.open();
    await using person = await startInDialog([hungUp], hearing.port);
    const keys = { media_port: String(speaking.port) };
    await using agent = await callee('early-media-answer', { pauseMs: 400, keys });
    const callId = await bridge(person, agent);
    speaking.stream(await audioPortOf(agent), 0x21);
    const heard = () => hearing.received.filter(({ payload }) => payload[0] === 0x21).length;
    await eventually(() => heard() > 0, 'the person hears the early media');
    await isUp(callId);
    expect(
      rig.eventsOf(callId).find(({ type }) => type === 'transfer-ringing')?.data,
    ).toMatchObject({ sipStatus: 183, earlyMedia: true });
    const before = heard();
    await eventually(() => heard() > before + 5, 'the person hears more audio');
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
  test('holds, resumes, moves, changes its codec and presses a key, and the audio continues', async () => {
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
    const gatewayPort = await audioPortOf(changing);
    other.stream(await audioPortOf(staying), 0x33);
    const stop = first.stream(gatewayPort, 0x22);
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
    await isHeardBy(first, 0x33, 0, 'the changing end hears the other');
    await isHeardBy(other, 0x22, 0, 'the other end hears the changing one');

    await steer(changing);
    // The other end hears the music of the end that holds. The end that holds receives nothing,
    // apart from packets that were on their way when the hold began.
    const sentWhileHeld = async () => {
      const before = first.received.length;
      await isHeardBy(other, 0x22, 0, 'the other end hears the music on hold', 25);
      return first.received.length - before;
    };
    await sentWhileHeld();
    expect(await sentWhileHeld()).toBe(0);
    await steer(changing);
    await isHeardBy(first, 0x33, 0, 'the changing end hears the other again');

    stop();
    second.continue(first);
    await steer(changing);
    second.stream(gatewayPort, 0x22);
    await isHeardBy(second, 0x33, 0, 'the changing end hears the other at its new port');
    await isHeardBy(other, 0x22, 0, 'the other end hears the changing one from its new port');

    await steer(changing);
    await isHeardBy(second, mulawToAlaw[0x33] ?? 0, 8, 'the changing end hears the other in A-law');
    await steer(changing);
    await isHeardBy(second, 0x33, 0, 'the changing end hears the other in µ-law again');

    second.press(gatewayPort, 5);
    const keys = () => other.received.filter(({ payloadType }) => payloadType === 101);
    await eventually(() => keys().length === 3, 'the other end receives the key');
    expect(keys().map(({ payload }) => payload[0])).toEqual([5, 5, 5]);
    await rig.laptop.gateway.dialer.end(callId);
    await rig.endOf(callId);
    await expectPlayedWhole(changing, staying);
    expectOneStream(other);
  });
});

describe.concurrent('a held call that is resumed without an offer', () => {
  test.each(['the person', 'the agent'])('is heard again by %s of a bridge', async (who) => {
    await using first = await FarEnd.open();
    await using other = await FarEnd.open();
    const steps = [
      offer({ port: first.port, direction: 'inactive' }),
      answerOnRequest({ port: first.port, codec: 'PCMA' }),
    ].flatMap((step) => [steered, step]);
    await using changing = await startInDialog([...steps, hungUp], first.port);
    await using staying = await startInDialog([hungUp], other.port);
    const callId = await (who === 'the person'
      ? bridge(changing, staying)
      : bridge(staying, changing));
    await isUp(callId);
    other.stream(await audioPortOf(staying), 0x33);
    const hears = (byte: number, payloadType: number, what: string) => {
      const from = first.received.length;
      return eventually(
        () =>
          first.received
            .slice(from)
            .some((packet) => packet.payloadType === payloadType && packet.payload[0] === byte),
        what,
      );
    };
    await hears(0x33, 0, 'the changing end hears the other');

    await steer(changing);
    await steer(changing);

    await hears(mulawToAlaw[0x33] ?? 0, 8, 'the changing end hears the other again, in A-law');
    await rig.laptop.gateway.dialer.end(callId);
    await rig.endOf(callId);
    await expectPlayedWhole(changing, staying);
  });

  test('is sent audio again if it has no bridge', async () => {
    await using first = await FarEnd.open();
    const steps = [
      offer({ port: first.port, direction: 'inactive' }),
      answerOnRequest({ port: first.port, codec: 'PCMA' }),
    ].flatMap((step) => [steered, step]);
    await using person = await startInDialog([...steps, hungUp], first.port);
    const { callId } = await rig.laptop.dial(person.uri('person'), {
      ...{ machineDetection: 'disabled', stream: null },
    });
    await eventually(() => rig.typesOf(callId).includes('answered'), 'the call is answered');

    await steer(person);
    await steer(person);

    await eventually(
      () => first.received.some(({ payloadType }) => payloadType === 8),
      'the person receives audio again, in A-law',
    );
    const offered = (await person.messages()).filter(
      ({ direction, text }) => direction === 'received' && text.includes('m=audio'),
    );
    expect(offered.map(({ text }) => /^a=(?:sendrecv|inactive)/m.exec(text)?.[0])).toEqual([
      'a=sendrecv',
      'a=inactive',
      'a=sendrecv',
    ]);
    await rig.laptop.gateway.dialer.end(callId);
    await rig.endOf(callId);
    await expectPlayedWhole(person);
  });
});

/** Expects that the end heard one stream without gaps, whatever the other end did. */
function expectOneStream({ received }: FarEnd): void {
  expect(new Set(received.map(({ ssrc }) => ssrc)).size).toBe(1);
  const gaps = received.filter(
    ({ sequence }, index) =>
      index > 0 && sequence !== (((received[index - 1]?.sequence ?? 0) + 1) & 0xffff),
  );
  expect(gaps).toEqual([]);
}

/** Returns the gateway's audio port, as the INVITE to sipp offers it. */
async function audioPortOf(far: Sipp): Promise<number> {
  const find = async () =>
    (await far.messages())
      .filter(({ direction }) => direction === 'received')
      .map(({ text }) => /^m=audio (\d+)/m.exec(text)?.[1])
      .find((port) => port !== undefined);
  await eventually(async () => (await find()) !== undefined, 'sipp has received an INVITE');
  return Number(await find());
}
