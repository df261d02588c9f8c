// The whole gateway with commands over HTTP and NATS: what a phone hears of a sound, to the sample,
// and which events are published.

import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { CommandReply } from '../../src/calls/contract/command.ts';
import { DtmfReceiver } from '../../src/media/rtp/dtmf-receiver.ts';
import { convert } from '../../src/sounds/conversion.ts';
import { eventually } from '../support/eventually.ts';
import { forSuite } from '../support/opened.ts';
import { one } from '../support/raw-callee.ts';
import { speakUntilHeard } from '../support/streams/bridged.ts';
import { StreamCallee } from '../support/streams/stream-callee.ts';
import { speech, startStreamRig } from '../support/streams/stream-rig.ts';
import { makeWav, seeded } from '../support/wav.ts';

/** Half a second of noise at 16 kHz, in which no two stretches are alike. */
const random = seeded(3);
const wav = makeWav({
  samples: [Int16Array.from({ length: 8_000 }, () => (random() - 0.5) * 20_000)],
  rate: 16_000,
});
const converted = convert(wav);
const mulaw = Buffer.from(converted.ok ? converted.mulaw : []);

const rig = forSuite(startStreamRig);
beforeAll(async () => {
  const { gateway } = rig.laptop;
  const response = await fetch(`${gateway.runtime.httpUrl}/api/public/sounds/offer`, {
    method: 'PUT',
    headers: { auth: gateway.dialer.token, 'content-type': 'audio/wav' },
    body: new Uint8Array(wav),
  });
  expect(response.status).toBe(200);
});
afterEach(() => rig.reset());

async function answeredCall() {
  const { callee, callId } = await rig.call(null);
  const { dialer } = rig.laptop.gateway;
  const path = `/api/public/bot/${dialer.botId}/calls/${callId}/commands`;
  return {
    ...{ callee, callId },
    http: (command: object, headers: Record<string, string> = {}) =>
      dialer.request('POST', path, command, headers),
    nats: async (command: object): Promise<CommandReply> => {
      const subject = `offhook.command.${callId}`;
      const reply = await rig.laptop.nats.request(subject, JSON.stringify(command), {
        timeout: 30_000,
      });
      return reply.json<CommandReply>();
    },
  };
}

function timesHeard(heard: Buffer): number {
  let count = 0;
  for (let at = heard.indexOf(mulaw); at !== -1; at = heard.indexOf(mulaw, at + 1)) count += 1;
  return count;
}

describe('a sound that is played by command', () => {
  test('is heard to the sample, once for each id, and counted at the end', async () => {
    const { callee, callId, http, nats } = await answeredCall();
    await callee.answer();
    const play = { command: 'play', sound: 'sound:offer' };
    await eventually(() => callee.packets.length > 0, 'the phone hears silence');

    const answers = await Promise.all([
      http(play, { 'idempotency-key': 'one' }),
      http(play, { 'idempotency-key': 'one' }),
    ]);
    const again = await nats({ ...play, id: 'one' });
    await callee.untilHeard((heard) => heard.includes(mulaw), 'the sound is heard');

    const taken = { ok: true, commandId: 'one', state: 'answered' };
    expect(answers).toMatchObject([
      { status: 202, body: taken },
      { status: 202, body: taken },
    ]);
    expect(again).toEqual(taken);
    expect(await http({ command: 'stop' }, { 'idempotency-key': 'one' })).toMatchObject({
      status: 409,
    });
    await eventually(
      () => rig.typesOf(callId).includes('playback-finished'),
      'the end of the playback is published',
    );
    callee.hangUp();
    expect(await rig.endOf(callId)).toMatchObject({ playedMs: 500, outcome: 'completed' });
    expect(timesHeard(callee.heard)).toBe(1);
    const playback = {
      ...{ playbackId: 'one', commandId: 'one' },
      ...{ source: 'command', sound: 'sound:offer' },
    };
    expect(rig.eventsOf(callId).filter(({ type }) => type.startsWith('playback'))).toMatchObject([
      { type: 'playback-started', data: playback },
      { type: 'playback-finished', data: { ...playback, reason: 'done', playedMs: 500 } },
    ]);
  });

  test('loops until it is stopped, over NATS and over HTTP', async () => {
    const { callee, callId, http, nats } = await answeredCall();
    await callee.answer();
    expect(await nats({ command: 'play', sound: 'sound:offer', loop: true, id: 'l' })).toEqual({
      ok: true,
      commandId: 'l',
      state: 'answered',
    });
    await callee.untilHeard((heard) => timesHeard(heard) >= 2, 'the sound is heard twice');
    expect(await http({ command: 'stop' })).toMatchObject({ status: 202 });

    await eventually(
      () => rig.typesOf(callId).includes('playback-finished'),
      'the playback is stopped',
    );
    expect(rig.eventsOf(callId).at(-1)?.data).toMatchObject({ reason: 'stopped' });
  });

  test('is refused while the call rings and after it has ended', async () => {
    const { callee, http, nats, callId } = await answeredCall();
    callee.ring();
    await eventually(() => rig.typesOf(callId).includes('ringing'), 'the phone rings');
    const play = { command: 'play', sound: 'sound:offer', id: 'one' };

    expect(await http(play)).toMatchObject({
      status: 409,
      body: { detail: 'The call is ringing; play needs an answered call.' },
    });
    expect(await nats(play)).toMatchObject({ ok: false, code: 'state' });
    await callee.answer();
    await eventually(() => rig.typesOf(callId).includes('answered'), 'the call is answered');
    expect(await http(play)).toMatchObject({ status: 202 });
    expect(await http({ command: 'play', sound: 'sound:none' })).toMatchObject({
      status: 409,
      body: { detail: 'There is no sound none' },
    });

    expect(await nats({ command: 'hangup' })).toEqual({ ok: true, state: 'ending' });
    await callee.isHungUp();
    await rig.endOf(callId);
    expect(await http({ command: 'stop' })).toMatchObject({ status: 409 });
    expect(await nats({ command: 'stop' })).toMatchObject({ ok: false, code: 'ended' });
  });
});

describe('keys that are pressed by command', () => {
  function keysHeard(callee: StreamCallee): readonly string[] {
    const keys: string[] = [];
    const receiver = new DtmfReceiver((digit, durationMs) => keys.push(`${digit} ${durationMs}`));
    for (const { payloadType, payload, timestamp } of callee.packets) {
      if (payloadType === 101) receiver.receive(payload, 0, payload.length, timestamp);
      receiver.tick();
    }
    return keys;
  }

  test('are heard by the phone, once for each id, over HTTP and NATS, and published', async () => {
    const { callee, callId, http, nats } = await answeredCall();
    await callee.answer();
    await eventually(() => rig.typesOf(callId).includes('answered'), 'the call is answered');
    const press = { command: 'dtmf', digits: '4w7#', id: 'menu' };

    const taken = { ok: true, commandId: 'menu', state: 'answered' };
    expect(await http(press)).toMatchObject({ status: 202, body: taken });
    expect(await nats(press)).toEqual(taken);
    expect(await nats({ command: 'dtmf', digits: 'D', durationMs: 250 })).toMatchObject({
      ok: true,
    });
    const sent = () => rig.eventsOf(callId).filter(({ type }) => type === 'dtmf-sent');
    await eventually(() => sent().length === 2, 'both sequences of keys are sent');
    callee.hangUp();
    await rig.endOf(callId);

    expect(keysHeard(callee)).toEqual(['4 100', '7 100', '# 100', 'D 250']);
    expect(sent()).toMatchObject([
      { data: { commandId: 'menu', digits: '4w7#', complete: true } },
      { data: { digits: 'D', complete: true } },
    ]);
  });

  test('are refused if the phone does not accept keys', async () => {
    const { callee, callId, http, nats } = await answeredCall();
    await callee.answerVoiceOnly();
    await eventually(() => rig.typesOf(callId).includes('answered'), 'the call is answered');
    const press = { command: 'dtmf', digits: '1' };

    const detail =
      'The far end does not accept keys: its SDP does not list telephone-event (RFC 4733).';
    expect(await http(press)).toMatchObject({ status: 409, body: { detail } });
    expect(await nats(press)).toEqual({ ok: false, code: 'digits', error: detail });
  });
});

describe('a person who is transferred by command', () => {
  /** Answers a call and opens the phone that the transfer will dial. */
  async function waitingAgent() {
    const { callee: person, ...doors } = await answeredCall();
    const agents = await StreamCallee.waiting();
    await person.answer();
    await eventually(() => rig.typesOf(doors.callId).includes('answered'), 'the call is answered');
    return { ...{ person, agents }, ...doors };
  }
  const dialled = async (agents: Awaited<ReturnType<typeof StreamCallee.waiting>>) => {
    const agent = await agents.called();
    rig.keep(agent);
    return agent;
  };

  test.each(['http', 'nats'] as const)(
    'over %s and the agent hear each other, and one hang-up ends both legs',
    async (door) => {
      const { person, agents, callId, ...doors } = await waitingAgent();
      const command = { command: 'transfer', to: agents.target, caller: '4930123456', id: 'agent' };
      const taken = { ok: true, commandId: 'agent', state: 'answered' };
      const send = doors[door];
      expect(await send(command)).toMatchObject(
        door === 'nats' ? taken : { status: 202, body: taken },
      );
      const agent = await dialled(agents);
      expect(one(agent.invite, 'from')).toContain('sip:4930123456@');
      agent.ring();
      await agent.answer();
      await eventually(
        () => rig.typesOf(callId).includes('transfer-answered'),
        'the call is bridged',
      );

      const [question, answer] = [speech(1_600, 3), speech(1_600, 40)];
      await Promise.all([
        speakUntilHeard(person, agent, question),
        speakUntilHeard(agent, person, answer),
      ]);
      // Send the command again under its id, as after a lost answer, and then a different command.
      expect(await doors.nats(command)).toEqual(taken);
      expect(await doors.http({ ...command, id: 'another' })).toMatchObject({
        status: 409,
        body: { detail: 'The call is already being transferred.' },
      });
      agent.hangUp();
      await person.isHungUp();

      expect(await rig.endOf(callId)).toMatchObject({
        ...{ reasonCode: 'Bot-disconnected', outcome: 'completed' },
        transfer: { commandId: 'agent', to: agents.target, mode: 'bridge', outcome: 'completed' },
      });
      expect(
        rig
          .eventsOf(callId)
          .flatMap(({ type, data }) =>
            type.startsWith('transfer') ? [[type, data['commandId']]] : [],
          ),
      ).toEqual([
        ['transfer-ringing', 'agent'],
        ['transfer-answered', 'agent'],
        ['transfer-completed', 'agent'],
      ]);
      expect(agent.isBeingHungUp).toBe(false);
    },
  );

  test('stays in the call if no agent answers and the command says so, and may be transferred again', async () => {
    const { person, agents, callId, http, nats } = await waitingAgent();
    const onFailure = 'stay';
    await nats({ command: 'transfer', to: agents.target, onFailure });
    (await dialled(agents)).refuse(486, 'Busy Here');
    await eventually(
      () => rig.typesOf(callId).includes('transfer-failed'),
      'transfer-failed is published',
    );
    expect(person.isBeingHungUp).toBe(false);

    const others = await StreamCallee.waiting();
    expect(await http({ command: 'transfer', to: others.target })).toMatchObject({ status: 202 });
    const agent = await dialled(others);
    await agent.answer();
    await eventually(
      () => rig.typesOf(callId).includes('transfer-answered'),
      'the call is bridged',
    );
    person.hangUp();
    await agent.isHungUp();
    expect(await rig.endOf(callId)).toMatchObject({
      ...{ reasonCode: 'Caller-disconnected', transfer: { outcome: 'completed' } },
    });
  });

  test('is refused with the name of the member that the call does not allow', async () => {
    const { http, nats } = await waitingAgent();
    const command = { command: 'transfer', to: 'sip:a@pbx.example', headers: { Via: 'x' } };

    expect(await http(command)).toMatchObject({
      status: 400,
      body: { errors: [{ path: 'headers.Via' }] },
    });
    expect(await nats(command)).toMatchObject({ ok: false, code: 'invalid' });
  });
});
