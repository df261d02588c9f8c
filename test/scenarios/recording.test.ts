// Recorded calls on the whole gateway, with real phones: when recording begins, what pauses it,
// which digits are kept where, and that the file has what the phone said and heard, sample for
// sample.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { wavHeaderBytes } from '../../src/recording/formats/wav-header.ts';
import { eventually } from '../support/eventually.ts';
import { forSuite } from '../support/opened.ts';
import { hearEachOther } from '../support/streams/bridged.ts';
import { StreamCallee } from '../support/streams/stream-callee.ts';
import { speech, startStreamRig } from '../support/streams/stream-rig.ts';
import { makeWav } from '../support/wav.ts';

const rig = forSuite(() =>
  startStreamRig({ LOG_LEVEL: 'trace', STREAM_ALLOWED_NETWORKS: '127.0.0.0/8' }),
);

/** Lets the words before it leave the jitter buffer. */
const quiet = Buffer.alloc(3_200, 0xff);

/**
 * On a busy machine, a thread of the phone or of the gateway may stand still for longer than the
 * jitter buffer lasts, and a part of a word is lost. At least one of three words is whole.
 */
const often = (word: Buffer): Buffer => Buffer.concat([1, 2, 3].flatMap(() => [word, quiet]));

type Call = { readonly callId: string };

const dialer = () => rig.laptop.gateway.dialer;
const record = ({ callId }: Call, action: string) =>
  dialer().command(callId, { command: 'record', action });
const until = (call: Call, type: string, count = 1) =>
  eventually(
    () => rig.typesOf(call.callId).filter((one) => one === type).length >= count,
    `${count} ${type}`,
  );
const recordingEvents = ({ callId }: Call) =>
  rig.eventsOf(callId).filter(({ type }) => type.startsWith('recording-'));
const digits = ({ callId }: Call) =>
  rig.eventsOf(callId).flatMap(({ type, data }) => (type === 'dtmf' ? [data['digit']] : []));

/** Reads the stored recording over HTTP, and returns its two channels. */
async function fileOf(call: Call): Promise<{ readonly left: Buffer; readonly right: Buffer }> {
  const { botId, httpUrl, token } = dialer();
  const url = `${httpUrl}/api/public/bot/${botId}/calls/${call.callId}/recording`;
  let response = await fetch(url, { headers: { auth: token } });
  await eventually(async () => {
    // 404 and 409 until the recording is in the store.
    if (!response.ok) response = await fetch(url, { headers: { auth: token } });
    return response.ok;
  }, 'the recording is stored');
  const data = Buffer.from(await response.arrayBuffer()).subarray(wavHeaderBytes);
  const channel = (offset: number) => Buffer.from(data.filter((_, at) => at % 2 === offset));
  return { left: channel(0), right: channel(1) };
}

describe('a recorded call', () => {
  test('has both sides to the sample, over a bridge, with what was said in a pause left out', async () => {
    const recording = { pauseOnKeys: false };
    const call = await rig.call(null, { recording });
    const { callee: person } = call;
    await person.answer();
    await until(call, 'recording-started');
    const words = [1, 2, 3].map((seed) => speech(4_800, seed));
    const [first, secret, last] = words as [Buffer, Buffer, Buffer];
    await person.speak(often(first));

    expect(await record(call, 'pause')).toMatchObject({ status: 202 });
    await until(call, 'recording-paused');
    await person.speak(secret);
    expect(await record(call, 'resume')).toMatchObject({ status: 202 });
    await until(call, 'recording-resumed');

    const { callee: agent } = await StreamCallee.called((to) =>
      dialer().command(call.callId, { command: 'transfer', to }),
    );
    rig.keep(agent);
    await agent.answer();
    await until(call, 'transfer-answered');
    await hearEachOther(person, agent);
    const reply = speech(4_800, 4);
    await Promise.all([person.speak(often(last)), agent.speak(often(reply))]);
    await person.untilHeard((heard) => heard.includes(reply), 'the person hears the agent');
    person.hangUp();

    const end = await rig.endOf(call.callId);
    const { left, right } = await fileOf(call);
    expect(left.includes(first)).toBe(true);
    expect(left.includes(last)).toBe(true);
    expect(right.includes(reply)).toBe(true);
    expect(left.includes(secret.subarray(1_600, 3_200))).toBe(false);
    const [paused, resumed] = ['paused', 'resumed'].map((what) => {
      const found = recordingEvents(call).find(({ type }) => type === `recording-${what}`);
      return Number(found?.data['offsetMs']);
    }) as [number, number];
    expect(end['recording']).toEqual({
      ...{ state: 'storing', durationMs: left.length / 8, pausedMs: resumed - paused },
    });
    const silent = left.subarray(paused * 8, resumed * 8);
    expect(silent.length).toBeGreaterThan(3_200);
    expect(silent.every((byte) => byte === 0xff)).toBe(true);
    // The recording began with the answer, before anybody could have said anything.
    expect(rig.typesOf(call.callId).indexOf('recording-started')).toBe(3);
  });

  test('begins after its notice, over which the bot does not talk', async () => {
    const notice = speech(8_000, 7);
    await dialer().addSound('notice', makeWav({ code: 7, bits: 8, data: notice }));
    const bot = await rig.startBot();
    const call = await rig.call(
      { url: bot.url },
      { recording: { from: 'answer', announce: 'sound:notice', required: true } },
    );
    const { callee: person } = call;
    await person.answer();
    const connection = await bot.connection();
    const said = speech(3_200, 8);
    connection.say(said);
    // Neither the bot nor a command cuts the notice off.
    await dialer().command(call.callId, { command: 'stop' });
    await until(call, 'recording-started');
    connection.say(said);
    await person.untilHeard((heard) => heard.includes(said), 'the bot is heard');
    expect(person.heard.includes(notice)).toBe(true);
    expect(await record(call, 'stop')).toMatchObject({ status: 202 });
    await until(call, 'recording-stopped');
    expect(await record(call, 'start')).toMatchObject({ status: 409 });
    person.hangUp();
    await rig.endOf(call.callId);

    const { right } = await fileOf(call);
    expect(right.includes(said)).toBe(true);
    expect(right.includes(notice.subarray(4_000))).toBe(false);
    const [started] = recordingEvents(call);
    expect(started?.data).toMatchObject({ from: 'answer', announcedAt: expect.any(String) });
  });
});

test('an agent who answers during the notice is heard after it, and is recorded', async () => {
  const notice = speech(12_000, 9);
  await dialer().addSound('before-the-agent', makeWav({ code: 7, bits: 8, data: notice }));
  const agents = await StreamCallee.waiting();
  const call = await rig.call(null, {
    recording: { announce: 'sound:before-the-agent' },
    bridge: { to: agents.target },
  });
  const { callee: person } = call;
  await person.answer();
  const agent = await agents.called();
  rig.keep(agent);
  await agent.answer();
  await until(call, 'transfer-answered');
  expect(rig.typesOf(call.callId)).not.toContain('recording-started');
  const reply = speech(1_600, 10);
  await eventually(async () => {
    await agent.speak(reply);
    return person.heard.includes(reply);
  }, 'the person hears the agent');
  expect(person.heard.includes(notice)).toBe(true);
  expect(person.heard.indexOf(reply)).toBeGreaterThan(person.heard.indexOf(notice));
  await until(call, 'recording-started');
  await agent.speak(Buffer.concat([reply, quiet]));
  person.hangUp();
  await rig.endOf(call.callId);
  expect((await fileOf(call)).right.includes(reply)).toBe(true);
});

describe('a key that is pressed in a pause', () => {
  test('reaches only the bot', async () => {
    const bot = await rig.startBot();
    const call = await rig.call(
      { url: bot.url },
      {
        recording: { pauseOnKeys: true },
        notifyEvents: ['dtmf', 'dtmf-sent', 'recording-*'],
      },
    );
    const plain = await rig.call({ url: bot.url }, { notifyEvents: ['dtmf'] });
    for (const { callee } of [plain, call]) await callee.answer();
    const connections = [await bot.connection(0), await bot.connection(1)];
    await until(call, 'recording-started');
    // Keys of a call that isn't recorded are kept, so the search below finds them.
    plain.callee.press(1);
    await until(plain, 'dtmf');
    plain.callee.info('2');
    await until(plain, 'dtmf', 2);
    call.callee.press(7);
    await until(call, 'dtmf');
    call.callee.info('8');
    await until(call, 'dtmf', 2);
    await until(call, 'recording-paused');

    const pressed = () =>
      connections.flatMap((one) => one.of('dtmf').map(({ dtmf }) => dtmf.digit)).sort();
    await eventually(() => pressed().length === 4, 'the bot gets the keys');
    expect(pressed()).toEqual(['1', '2', '7', '8']);
    expect(digits(plain)).toEqual(['1', '2']);
    expect(digits(call)).toEqual(['*', '*']);

    for (const { callee, callId } of [plain, call]) {
      callee.hangUp();
      await rig.laptop.receiver.untilEnded(callId);
    }
    const seen = await everything([plain, call]);
    const placesOf = (pattern: RegExp) =>
      seen.filter(([, text]) => pattern.test(text)).map(([place]) => place);
    const form = (keys: string) =>
      new RegExp(`"digit": ?"[${keys}]"|Signal=[${keys}]|durationMs[a-zA-Z]*[${keys}](rtp|info)`);
    expect(placesOf(form('12')).join('\n')).toMatch(/capture/);
    expect(placesOf(form('12')).join('\n')).toMatch(/notification/);
    expect(placesOf(form('12')).join('\n')).toMatch(/pglite/);
    expect(placesOf(form('78'))).toEqual([]);
  });
});

/** Everything that users can read about the calls, the log, and every file on the disk. */
async function everything(
  calls: readonly Call[],
): Promise<readonly (readonly [place: string, text: string])[]> {
  const { gateway, receiver } = rig.laptop;
  const ask = await consoleOf();
  const seen: [string, string][] = [];
  for (const { callId } of calls) {
    for (const file of ['capture', 'export.json', 'sip.pcap']) {
      const path = `/calls/${callId}/${file}`;
      await eventually(async () => (await ask(path)).status === 200, `${file} of an ended call`);
      seen.push([file, Buffer.from(await (await ask(path)).arrayBuffer()).toString('latin1')]);
    }
    const { body } = await dialer().request('GET', `/api/public/calls/${callId}`);
    seen.push(['call', JSON.stringify(body)]);
  }
  seen.push(['log', gateway.output()]);
  for (const { rawBody } of receiver.received) seen.push(['notification', String(rawBody)]);
  for (const event of rig.laptop.events) seen.push(['event', JSON.stringify(event)]);
  const files = await readdir(gateway.dataDir, { recursive: true, withFileTypes: true });
  for (const file of files.filter((each) => each.isFile())) {
    const path = join(file.parentPath, file.name);
    const bytes = await readFile(path).catch(() => Buffer.alloc(0));
    seen.push([path, bytes.toString('latin1')]);
  }
  return seen;
}

async function consoleOf() {
  const { httpUrl } = rig.laptop.gateway.runtime;
  const { url } = (await dialer().request('POST', '/console/link')).body as {
    readonly url: string;
  };
  const answer = await fetch(`${httpUrl}/console/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: httpUrl },
    body: JSON.stringify({ token: url.split('token=')[1] }),
  });
  const cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? '';
  return (path: string) => fetch(`${httpUrl}/console/api${path}`, { headers: { cookie } });
}
