// The whole gateway leaves a message, from the request to the mailbox's recording and the reports
// about it.

import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { joined, silence, tone } from '../../src/embedded/sandbox/tones.ts';
import { readMulawWav, recordingUrl } from '../../src/embedded/sandbox/wav-file.ts';
import { encode } from '../../src/media/g711.ts';
import { eventually } from '../support/eventually.ts';
import { forSuite } from '../support/opened.ts';
import { StreamCallee } from '../support/streams/stream-callee.ts';
import { type StreamRig, speech, startStreamRig } from '../support/streams/stream-rig.ts';
import { ticksLateOf, undisturbed } from '../support/undisturbed.ts';
import { makeWav } from '../support/wav.ts';

/** 1.2 s. The uploaded file differs from what is played: it is 8 kHz PCM. */
const message = readMulawWav(recordingUrl('bot-message')).subarray(0, 9_600);
const messageBytes = Buffer.from(encode('PCMU', message));
const greeting = readMulawWav(recordingUrl('voicemail-greeting')).subarray(0, 2_000 * 8);
const hello = readMulawWav(recordingUrl('person-hello'));
const beep = tone([1_000], 400, -9);
const mailbox = encode('PCMU', joined([silence(300), greeting, silence(400), beep]));
const quiet = (ms: number) => new Uint8Array(ms * 8).fill(0xff);

const rig = forSuite(startStreamRig);
beforeAll(async () => {
  await rig.laptop.gateway.dialer.addSound('offer', makeWav({ samples: [message] }));
});
afterEach(() => rig.reset());

/** The callees of all tests. Their delays count from the start of the file. */
const callees: StreamCallee[] = [];

async function call(...request: Parameters<StreamRig['call']>) {
  const placed = await rig.call(...request);
  callees.push(placed.callee);
  return placed;
}

/**
 * Counts late ticks of the gateway and of the callees: a greeting with a gap does not count as a
 * greeting.
 */
async function ticksLate(): Promise<number> {
  const spokenMs = callees.reduce((totalMs, { latestMs }) => totalMs + latestMs, 0);
  return (await ticksLateOf(rig.laptop.gateway.runtime)) + Math.floor(spokenMs / 20);
}

const leaveMessage = { machineDetection: 'detect', voicemail: { play: 'sound:offer' } };

describe('a message for a machine', () => {
  test('is recorded completely after the beep, then the gateway hangs up, and all interfaces report it', async () => {
    await undisturbed(ticksLate, async () => {
      const { callee, callId } = await call(null, leaveMessage);
      await callee.answer();
      await callee.speak(mailbox);
      await Promise.all([callee.speak(quiet(1_900)), callee.isHungUp()]);
      const end = await rig.endOf(callId);

      await callee.untilHeard(
        (heard) => heard.includes(messageBytes),
        'the whole message is heard',
      );
      expect(end).toMatchObject({
        ...{ outcome: 'voicemail-left', reason: '200 OK', reasonCode: 'Bot-disconnected' },
        ...{ machineDetection: 'amd_machine_detected', playedMs: 1_200 },
        voicemail: { durationMs: 1_200, complete: true, afterBeep: true },
      });
      expect(rig.typesOf(callId).filter((type) => type !== 'amd')).toEqual([
        ...['queued', 'dialing', 'answered', 'playback-started', 'playback-finished', 'completed'],
      ]);
      const { laptop } = rig;
      const notifications = await laptop.receiver.untilEnded(callId);
      expect(notifications.at(-1)).toMatchObject({
        ...{ status: 'completed', outcome: 'voicemail-left', playedMs: 1_200 },
        voicemail: { complete: true, afterBeep: true },
      });
    });
  });

  test('takes the call from its bot, whose marks return and whose close does not end the call', async () => {
    await undisturbed(ticksLate, async () => {
      const bot = await rig.startBot();
      const { callee, callId } = await call({ url: bot.url }, leaveMessage);
      await callee.answer();
      const connection = await bot.connection();
      const said = speech(80_000);
      connection.say(said);
      connection.mark('said');
      await callee.speak(mailbox);
      await eventually(() => connection.closeCode !== undefined, 'the stream is closed');
      connection.say(said);
      const { dialer } = rig.laptop.gateway;
      const path = `/api/public/bot/${dialer.botId}/calls/${callId}/commands`;
      expect(await dialer.request('POST', path, { command: 'stream', url: bot.url })).toMatchObject(
        {
          ...{ status: 409, body: { detail: 'The call is leaving a message.' } },
        },
      );
      await Promise.all([callee.speak(quiet(1_900)), callee.isHungUp()]);

      expect(connection.marks).toEqual(['said']);
      const stopped = rig.eventsOf(callId).find(({ type }) => type === 'stream-stopped');
      expect(stopped?.data).toMatchObject({ reason: 'voicemail' });
      await callee.untilHeard(
        (heard) => heard.includes(messageBytes),
        'the whole message is heard',
      );
      expect(await rig.endOf(callId)).toMatchObject({ outcome: 'voicemail-left' });
    });
  });

  test('is left if a beep corrects the verdict of a person, and the agent’s phone is cancelled', async () => {
    await undisturbed(ticksLate, async () => {
      const agents = await StreamCallee.waiting();
      const bridge = { to: agents.target };
      const { callee, callId } = await call(null, { ...leaveMessage, bridge });
      await callee.answer();
      const ringing = agents.called().then((agent) => {
        rig.keep(agent);
        agent.ring();
        return agent;
      });
      await callee.speak(encode('PCMU', joined([silence(300), hello, silence(2_500)])));
      const agent = await ringing;
      await Promise.all([
        callee.speak(encode('PCMU', joined([beep, silence(2_500)]))),
        agent.isCancelled(),
        callee.isHungUp(),
      ]);
      const end = await rig.endOf(callId);

      await callee.untilHeard(
        (heard) => heard.includes(messageBytes),
        'the whole message is heard',
      );
      expect(end).toMatchObject({
        ...{ outcome: 'voicemail-left', machineDetection: 'amd_tone_detected' },
        voicemail: { complete: true, afterBeep: true },
        transfer: { outcome: 'machine', mode: 'bridge' },
      });
      const failed = rig.eventsOf(callId).find(({ type }) => type === 'transfer-failed');
      expect(failed?.data).toMatchObject({ outcome: 'machine', reason: 'A machine after all' });
    });
  });

  test('that does not exist fails the call before it is dialled', async () => {
    const { callId } = await rig.laptop.dial('sip:nobody@127.0.0.1:9', {
      ...leaveMessage,
      voicemail: { play: 'sound:no-such-sound' },
    });

    expect(await rig.endOf(callId)).toMatchObject({
      ...{ outcome: 'gateway-failure', reasonCode: 'Service Unavailable' },
      reason: expect.stringMatching(/^Voicemail: .*no-such-sound/),
    });
    expect(rig.typesOf(callId)).toEqual(['queued', 'failed']);
  });
});
