// The whole gateway with streams that commands begin, replace and end, over HTTP and NATS.

import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import type { CommandReply } from '../../src/calls/contract/command.ts';
import { readDevApp } from '../support/dialer-client.ts';
import { eventually } from '../support/eventually.ts';
import { freeUdpPort } from '../support/free-port.ts';
import { forSuite } from '../support/opened.ts';
import { speakUntilBotHears } from '../support/streams/spoken-to-bot.ts';
import { StreamCallee } from '../support/streams/stream-callee.ts';
import { problemsOfStream } from '../support/streams/stream-messages.ts';
import { speech, startStreamRig } from '../support/streams/stream-rig.ts';

const rig = forSuite(startStreamRig);
afterEach(() => rig.reset());

/** Places a call and answers it. Default: a request without a stream. */
async function answeredCall(stream: object | null = null) {
  const { callee, callId } = await rig.call(stream);
  const { dialer } = rig.laptop.gateway;
  await callee.answer();
  await eventually(() => rig.typesOf(callId).includes('answered'), 'the call is answered');
  const path = `/api/public/bot/${dialer.botId}/calls/${callId}`;
  return {
    ...{ callee, callId },
    details: () => dialer.request('GET', path),
    http: (command: object) =>
      dialer.request('POST', `${path}/commands`, { command: 'stream', ...command }),
    nats: async (command: object): Promise<CommandReply> => {
      const body = JSON.stringify({ command: 'stream', ...command });
      const subject = `offhook.command.${callId}`;
      const reply = await rig.laptop.nats.request(subject, body, { timeout: 30_000 });
      return reply.json<CommandReply>();
    },
  };
}

const streamEvents = (callId: string) =>
  rig
    .eventsOf(callId)
    .filter(({ type }) => type.startsWith('stream'))
    .map(({ type, data }): Readonly<Record<string, unknown>> => ({ type, ...data }));

describe('a bot that a command calls', () => {
  test.each(['http', 'nats'] as const)('over %s and the person hear each other', async (door) => {
    const { callee, callId, details, ...doors } = await answeredCall();
    const bot = await rig.startBot();
    const secret = randomBytes(12).toString('hex');
    const url = `${bot.url}?key=${secret}`;
    const command = { url, parameters: { from: 'menu' }, id: 'bot' };

    const taken = { ok: true, commandId: 'bot', state: 'answered' };
    expect(await doors[door](command)).toMatchObject(
      door === 'nats' ? taken : { status: 202, body: taken },
    );
    // Repeat the command over NATS.
    expect(await doors.nats(command)).toEqual(taken);
    const connection = await bot.connection();
    const [question, answer] = [speech(1_600, 3), speech(1_600, 40)];
    connection.say(answer);
    await callee.untilHeard((heard) => heard.includes(answer), 'the person hears the bot');
    await speakUntilBotHears(callee, connection, question);

    expect(connection.request.url).toBe(`/audio?key=${secret}`);
    expect(connection.of('start')[0]?.start.customParameters).toMatchObject({
      ...{ callId, from: 'menu' },
    });
    expect(problemsOfStream(connection.texts, { isOver: false })).toEqual([]);
    callee.hangUp();
    await rig.endOf(callId);
    expect(bot.connections).toHaveLength(1);
    expect(streamEvents(callId)).toMatchObject([
      { type: 'stream-started', commandId: 'bot', connection: 1 },
      { type: 'stream-stopped', commandId: 'bot', reason: 'call-ended', playedMs: 200 },
    ]);
    const published = JSON.stringify([rig.eventsOf(callId), await details()]);
    expect(published).not.toContain(secret);
    expect(rig.laptop.gateway.output()).not.toContain(secret);
  });

  test('hangs up like other bots: by closing the stream, and by the REST form', async () => {
    const closed = await answeredCall();
    const bot = await rig.startBot();
    await closed.http({ url: bot.url });
    (await bot.connection()).socket.close(1000);
    await closed.callee.isHungUp();
    expect(await rig.endOf(closed.callId)).toMatchObject({ reasonCode: 'Bot-disconnected' });

    const { callee, callId, http } = await answeredCall();
    await http({ url: bot.url });
    const [begin] = (await bot.connection(1)).of('start');
    const { accountSid, callSid } = begin?.start ?? {};
    const { dataDir, runtime } = rig.laptop.gateway;
    const { streamSecret } = await readDevApp(dataDir);
    const path = `/2010-04-01/Accounts/${accountSid}/Calls/${callSid}.json`;
    const response = await fetch(`${runtime.httpUrl}${path}`, {
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from(`${accountSid}:${streamSecret}`).toString('base64')}`,
      },
      body: new URLSearchParams({ Status: 'completed' }),
    });
    expect(response.status).toBe(200);
    await callee.isHungUp();
    await rig.endOf(callId);
  });

  test('but cannot reach leaves the call up, and another bot can take it', async () => {
    const { callee, callId, http, nats } = await answeredCall();
    const url = `ws://127.0.0.1:${await freeUdpPort()}/`;
    const refusing = await rig.startBot({ refuseWith: () => 403 });
    await http({ url, id: 'nobody' });
    await eventually(() => streamEvents(callId).length > 0, 'a stream event is published');
    await nats({ url: refusing.url, id: 'closed' });
    const refusals = () => streamEvents(callId).filter((event) => event['commandId'] === 'closed');
    await eventually(() => refusals().length > 0, 'the refusal is published');

    expect(refusals()).toEqual([
      { type: 'stream-failed', commandId: 'closed', reason: 'status-403', willRetry: false },
    ]);
    expect(streamEvents(callId).slice(-2)[0]).toEqual({
      ...{ type: 'stream-stopped', commandId: 'nobody', stoppedBy: 'closed', reason: 'replaced' },
    });
    expect(callee.isBeingHungUp).toBe(false);
    const bot = await rig.startBot();
    await http({ url: bot.url });
    (await bot.connection()).say(speech(800));
    await callee.untilHeard((heard) => heard.includes(speech(800)), 'the person hears the bot');
  });
});

describe('a bot that replaces another bot', () => {
  test('has the person to itself, under its own streamSid, and null ends its stream', async () => {
    const first = await rig.startBot();
    const second = await rig.startBot();
    const { callee, callId, http, nats } = await answeredCall({ url: first.url });
    const before = await first.connection();
    before.say(speech(80_000));
    await callee.untilHeard(
      (heard) => heard.includes(speech(160)),
      'the person hears the first bot',
    );

    expect(await http({ url: second.url, id: 'second' })).toMatchObject({ status: 202 });
    const after = await second.connection();
    await eventually(() => before.closeCode !== undefined, 'the stream of the first bot is closed');
    after.say(speech(1_600, 40));
    await callee.untilHeard(
      (heard) => heard.includes(speech(1_600, 40)),
      'the person hears the second bot',
    );
    expect(problemsOfStream(before.texts, { isOver: true })).toEqual([]);
    expect(after.of('start')[0]?.start.callSid).toBe(before.of('start')[0]?.start.callSid);
    expect(after.streamSid).not.toBe(before.streamSid);
    // The bot sent ten seconds of speech, and the person heard only a fraction.
    expect(callee.heard.includes(speech(80_000))).toBe(false);

    expect(await nats({ url: null, id: 'none' })).toMatchObject({ ok: true });
    await eventually(() => after.closeCode !== undefined, 'the stream of the second bot is closed');
    expect(after.of('stop')).toHaveLength(1);
    expect(await http({ url: null })).toMatchObject({
      status: 409,
      body: { detail: 'The call has no stream.' },
    });
    expect(callee.isBeingHungUp).toBe(false);
    callee.hangUp();
    expect(await rig.endOf(callId)).toMatchObject({ outcome: 'completed' });
    expect(streamEvents(callId)).toMatchObject([
      { type: 'stream-started' },
      { type: 'stream-stopped', stoppedBy: 'second', reason: 'replaced' },
      { type: 'stream-started', commandId: 'second' },
      { type: 'stream-stopped', commandId: 'second', stoppedBy: 'none', reason: 'command' },
    ]);
  });
});

describe('a stream is refused', () => {
  test('to a private address, over HTTP and NATS', async () => {
    const { callId, http, nats } = await answeredCall();
    const errors = [{ path: 'url', message: expect.stringMatching(/private, local or reserved/) }];

    expect(await http({ url: 'ws://10.0.0.1/?key=s3cret' })).toMatchObject({
      ...{ status: 400, body: { errors } },
    });
    expect(await nats({ url: 'ws://10.0.0.1/' })).toMatchObject({
      ...{ ok: false, code: 'invalid', errors },
    });
    expect(streamEvents(callId)).toEqual([]);
  });

  test('while the gateway calls an agent, and while person and agent talk', async () => {
    const bot = await rig.startBot();
    const agents = await StreamCallee.waiting();
    const { callId, http, nats } = await answeredCall();
    await http({ command: 'transfer', to: agents.target });
    const agent = await agents.called();
    rig.keep(agent);
    expect(await nats({ url: bot.url })).toMatchObject({
      ...{ ok: false, code: 'state', error: 'The call is being transferred.' },
    });
    await agent.answer();
    await eventually(
      () => rig.typesOf(callId).includes('transfer-answered'),
      'the call is bridged',
    );

    expect(await http({ url: bot.url })).toMatchObject({
      ...{
        status: 409,
        body: { detail: 'The call was transferred: the person is talking to the agent.' },
      },
    });
    expect(bot.connections).toEqual([]);
  });
});
