// The whole gateway connects a person to an agent: two phones on loopback, what each of them hears,
// and how the call ends.

import { afterEach, describe, expect, test } from 'vitest';
import { alawToMulaw, mulawToAlaw } from '../../src/media/g711.ts';
import { eventually } from '../support/eventually.ts';
import { forSuite } from '../support/opened.ts';
import { hearEachOther, speakUntilHeard } from '../support/streams/bridged.ts';
import { speakUntilBotHears } from '../support/streams/spoken-to-bot.ts';
import { StreamCallee } from '../support/streams/stream-callee.ts';
import { speech, startStreamRig } from '../support/streams/stream-rig.ts';
import { makeWav } from '../support/wav.ts';

const rig = forSuite(startStreamRig);
afterEach(() => rig.reset());

type Bridge = Readonly<Record<string, unknown>>;

/** Dials a person, who answers, and resolves when the agent's phone has its INVITE. */
async function connecting(bridge: Bridge = {}, stream: object | null = null, more: object = {}) {
  const agents = await StreamCallee.waiting();
  const { callee: person, callId } = await rig.call(stream, {
    bridge: { to: agents.target, ...bridge },
    ...more,
  });
  expect(agents.isCalled()).toBe(false);
  await person.answer();
  const agent = await agents.called();
  rig.keep(agent);
  return { person, agent, callId };
}

async function connected(bridge?: Bridge) {
  const { person, agent, callId } = await connecting(bridge);
  agent.ring();
  await agent.answer();
  await eventually(() => rig.typesOf(callId).includes('transfer-answered'), 'the call is bridged');
  return { person, agent, callId };
}

const isSilence = (payload: Buffer): boolean => payload.every((byte) => byte === 0xff);
const transferOf = async (callId: string) => (await rig.endOf(callId))['transfer'];

describe('a person and an agent', () => {
  test('hear each other to the byte, each in one stream of numbers, until the agent hangs up', async () => {
    const { person, agent, callId } = await connected();
    await hearEachOther(person, agent);
    const [question, answer] = [speech(3_200, 3), speech(3_200, 40)];
    await Promise.all([
      speakUntilHeard(person, agent, question),
      speakUntilHeard(agent, person, answer),
    ]);
    expectContinuous(person);
    expectContinuous(agent);
    agent.hangUp();
    await person.isHungUp();

    expect(await rig.endOf(callId)).toMatchObject({
      ...{ reason: '200 OK', reasonCode: 'Bot-disconnected', outcome: 'completed' },
      transfer: {
        ...{ mode: 'bridge', outcome: 'completed', to: expect.stringContaining('sip:agent@') },
        ...{ answeredAt: expect.any(String), durationMs: expect.any(Number) },
        msToTwoWayAudio: expect.any(Number),
      },
    });
    expect(rig.typesOf(callId)).toEqual([
      ...['queued', 'dialing', 'answered', 'transfer-ringing', 'transfer-answered'],
      ...['transfer-completed', 'completed'],
    ]);
  });

  test('are each hung up once if the other hangs up first', async () => {
    const { person, agent, callId } = await connected();
    person.hangUp();
    await agent.isHungUp();

    expect(await rig.endOf(callId)).toMatchObject({
      ...{ reasonCode: 'Caller-disconnected', outcome: 'completed' },
      transfer: { outcome: 'completed' },
    });
    expect(agent.isBeingHungUp).toBe(false);
    expect(person.isBeingHungUp).toBe(false);
    // Neither side has said anything.
    expect(await transferOf(callId)).not.toHaveProperty('msToTwoWayAudio');
  });

  test('are both hung up when the call has reached the maximum duration of its request', async () => {
    const maxDurationMs = 6_000;
    const { person, agent, callId } = await connecting({}, null, { maxDurationMs });
    agent.ring();
    await agent.answer();
    await Promise.all([person.isHungUp(), agent.isHungUp()]);

    const end = await rig.endOf(callId);
    expect(end).toMatchObject({
      ...{ reason: 'Maximum call duration reached', outcome: 'completed' },
      transfer: { mode: 'bridge', outcome: 'completed' },
    });
    expect(end['callDurationMs']).toBeGreaterThanOrEqual(maxDurationMs);
  });

  test('make the gateway report the time from the answer until both were heard', async () => {
    const before = performance.now();
    const { person, agent, callId } = await connected();
    const answered = performance.now();
    const question = speech(3_200, 3);
    await speakUntilHeard(person, agent, question);
    const heard = performance.now();
    const answer = speech(1_600, 40);
    await speakUntilHeard(agent, person, answer);
    agent.hangUp();
    await person.isHungUp();
    const after = performance.now();

    // These bounds hold at any speed of the machine: the answer came before the question, and the
    // reply after it.
    const { msToTwoWayAudio } = (await transferOf(callId)) as { msToTwoWayAudio: number };
    expect(msToTwoWayAudio).toBeGreaterThanOrEqual(Math.floor(heard - answered));
    expect(msToTwoWayAudio).toBeLessThanOrEqual(Math.ceil(after - before));
  });

  test('understand each other with different codecs, also after one of them changes its codec', async () => {
    const { person, agent } = await connecting();
    await agent.answer('PCMA');
    const said = speech(1_600, 9);
    const inAlaw = Buffer.from(said.map((byte) => mulawToAlaw[byte] ?? 0));
    await speakUntilHeard(person, agent, said, { heard: inAlaw });
    const reply = speech(1_600, 21);
    const inMulaw = Buffer.from(reply.map((byte) => alawToMulaw[byte] ?? 0));
    await speakUntilHeard(agent, person, reply, { heard: inMulaw, payloadType: 8 });

    await agent.reoffer('sendrecv', 'PCMU');
    const more = speech(1_600, 33);
    await speakUntilHeard(person, agent, more);
  });

  test('receive each other’s keys, and the gateway answers a hold by one side and sends silence to the other', async () => {
    const { person, agent, callId } = await connected();
    await hearEachOther(person, agent);
    person.press(5);
    await eventually(
      () => agent.packets.filter(({ payloadType }) => payloadType === 101).length === 3,
      'the agent receives the key',
    );
    const keys = agent.packets.filter(({ payloadType }) => payloadType === 101);
    expect(new Set(keys.map(({ timestamp }) => timestamp)).size).toBe(1);
    expect(keys.map(({ payload }) => payload[0])).toEqual([5, 5, 5]);

    // A key by SIP INFO, from either side, becomes an RTP key that the gateway sends.
    const keysOf = ({ packets }: StreamCallee, event: number) =>
      packets.filter(({ payloadType, payload }) => payloadType === 101 && payload[0] === event);
    person.info('7');
    await eventually(() => keysOf(agent, 7).length > 3, 'the agent receives the key');
    agent.info('#');
    await eventually(() => keysOf(person, 11).length > 3, 'the person receives the key');
    const published = () => rig.eventsOf(callId).filter(({ type }) => type.startsWith('dtmf'));
    await eventually(() => published().length >= 2, 'the person’s keys are published');
    expect(published().map(({ type, data }) => [type, data['digit'], data['source']])).toEqual([
      ['dtmf', '5', 'rtp'],
      ['dtmf', '7', 'info'],
    ]);

    await person.reoffer('inactive');
    const before = agent.packets.length;
    await eventually(
      () => agent.packets.length > before + 10,
      'the agent hears silence during the hold',
    );
    expect(agent.packets.slice(-5).every(({ payload }) => isSilence(payload))).toBe(true);
    await person.reoffer('sendrecv');
    const said = speech(1_600, 50);
    await speakUntilHeard(person, agent, said);
  });
});

describe('while the agent’s phone rings', () => {
  test('the person hears the ringback of the gateway', async () => {
    const { person, agent } = await connecting();
    agent.ring();
    await person.untilHeard(
      (heard) => heard.some((byte) => (byte & 0x7f) < 0x60),
      'the person hears ringback',
    );
    await agent.answer();
    const said = speech(1_600);
    await speakUntilHeard(agent, person, said);
    await eventually(
      () => isSilence(person.packets.at(-1)?.payload ?? said),
      'the person hears silence again',
    );
  });

  test('the person hears the early media of that phone instead, if it sends any', async () => {
    const { person, agent, callId } = await connecting();
    agent.progress();
    const music = speech(3_200, 11);
    // Audio that arrives before the gateway has read the 183 is not passed on.
    const isHeard = async (): Promise<boolean> => {
      await agent.speak(music);
      return person.heard.includes(music.subarray(1_600));
    };
    await eventually(isHeard, 'the person hears the early media');
    await eventually(
      () => rig.typesOf(callId).includes('transfer-ringing'),
      'transfer-ringing is published',
    );
    expect(rig.eventsOf(callId).at(-1)).toMatchObject({
      type: 'transfer-ringing',
      data: { sipStatus: 183, earlyMedia: true },
    });
  });
});

describe('a bot', () => {
  test('hears silence from the INVITE on, and its stream ends when the agent answers', async () => {
    const bot = await rig.startBot();
    const { person, agent, callId } = await connecting({}, { url: bot.url });
    const connection = await bot.connection();
    await person.speak(speech(3_200));
    agent.ring();
    await agent.answer();
    await eventually(() => connection.closeCode !== undefined, 'the stream ends');

    expect(connection.heard.length).toBeGreaterThan(0);
    expect(isSilence(connection.heard)).toBe(true);
    await eventually(
      () => rig.typesOf(callId).includes('stream-stopped'),
      'stream-stopped is published',
    );
    expect(agent.isBeingHungUp).toBe(false);
    agent.hangUp();
    await person.isHungUp();
  });

  test('is notified when no agent was reached, and hears the person again', async () => {
    const bot = await rig.startBot();
    const { person, agent, callId } = await connecting({}, { url: bot.url });
    const connection = await bot.connection();
    agent.refuse(486, 'Busy Here');
    await eventually(
      () => connection.texts.some((text) => text.includes('"transfer-failed"')),
      'the bot is notified',
    );
    const message = connection.texts.map((text) => JSON.parse(text) as BotMessage).find(isFailure);
    expect(message).toMatchObject({
      event: 'transfer-failed',
      transfer: { mode: 'bridge', outcome: 'busy', reason: '486 Busy Here', sipStatus: 486 },
    });
    const said = speech(3_200);
    await speakUntilBotHears(person, connection, said, said.subarray(1_600));
    person.hangUp();

    expect(await transferOf(callId)).toMatchObject({ outcome: 'busy', sipStatus: 486 });
  });
});

describe('no agent is reached', () => {
  test.each([
    [486, 'Busy Here', 'busy'],
    [603, 'Decline', 'declined'],
  ])('%i %s: the gateway hangs up the person', async (status, reason, outcome) => {
    const { person, agent, callId } = await connecting();
    agent.refuse(status, reason);
    await person.isHungUp();

    expect(await rig.endOf(callId)).toMatchObject({
      ...{ reason: '200 OK', reasonCode: 'Bot-disconnected', outcome: 'completed' },
      transfer: { outcome, sipStatus: status },
    });
  });

  test('while the bot waits for a person: without a person or a message to leave, the call ends with detection', async () => {
    const { dialer } = rig.laptop.gateway;
    await dialer.addSound('offer', makeWav({ samples: [new Int16Array(8_000)] }));
    const bot = await rig.startBot();
    const { person, agent, callId } = await connecting(
      { on: 'answered' },
      { url: bot.url, connect: 'person' },
      {
        machineDetection: 'detect',
        timers: { noSpeechTimeoutMs: 2_000 },
        voicemail: { play: 'sound:offer' },
      },
    );
    agent.refuse(486, 'Busy Here');
    await eventually(() => rig.typesOf(callId).includes('transfer-failed'), 'the transfer fails');
    await person.isHungUp();

    expect(await rig.endOf(callId)).toMatchObject({
      ...{ reason: '200 OK', reasonCode: 'Bot-disconnected', outcome: 'completed' },
      machineDetection: 'amd_no_speech_detected',
    });
    expect(bot.connections).toEqual([]);
  });

  test('within the requested time: a late answer is hung up', async () => {
    const { person, agent, callId } = await connecting({ timeoutMs: 1_000, onFailure: 'stay' });
    agent.ring();
    await eventually(
      () => rig.typesOf(callId).includes('transfer-failed'),
      'the transfer is given up',
    );
    await agent.answer();
    await agent.isHungUp();
    expect(person.isBeingHungUp).toBe(false);
    person.hangUp();

    expect(await rig.endOf(callId)).toMatchObject({
      reasonCode: 'Caller-disconnected',
      transfer: { outcome: 'no-answer' },
    });
  });

  test('because the person hangs up while the agent’s phone rings, which is then cancelled', async () => {
    const { person, agent, callId } = await connecting();
    agent.ring();
    await eventually(
      () => rig.typesOf(callId).includes('transfer-ringing'),
      'the agent’s phone rings',
    );
    person.hangUp();
    await agent.isCancelled();

    expect(await rig.endOf(callId)).toMatchObject({
      reasonCode: 'Caller-disconnected',
      transfer: { outcome: 'cancelled' },
    });
  });
});

type BotMessage = { readonly event?: string };

function isFailure({ event }: BotMessage): boolean {
  return event === 'transfer-failed';
}

/** Expects sequence numbers without a gap, and timestamps that never decrease. */
function expectContinuous({ packets }: StreamCallee): void {
  for (const [index, { sequence, timestamp }] of packets.entries()) {
    const before = packets[index - 1];
    if (before === undefined) continue;
    expect(sequence).toBe((before.sequence + 1) & 0xffff);
    expect((timestamp - before.timestamp) | 0).toBeGreaterThan(0);
  }
}
