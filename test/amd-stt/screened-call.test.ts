// The whole gateway with a recogniser and a call screener at the far end. The gateway answers the
// screener once. It then learns who comes, or that nobody does.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readMulawWav, recordingUrl } from '../../src/embedded/sandbox/wav-file.ts';
import { makeSeededDataDir } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts';
import { forSuite } from '../support/opened.ts';
import { startReceiver } from '../support/receiver.ts';
import { ticksLateOf, undisturbed } from '../support/undisturbed.ts';
import { makeWav } from '../support/wav.ts';
import { type EngineSession, startEngine } from './support/scripted-engine.ts';

const screener = 'tel:+12025550114';
const screenerRejects = 'tel:+12025550115';
/**
 * The words of `screener-question.wav`, each after this much voice. The voice that comes later says
 * one word.
 */
const question = [
  { afterMs: 2_000, said: 'Hi. The person you are calling uses a call screening service.' },
  { afterMs: 4_000, said: 'Please say your name, and why you are calling.' },
];
/** Short, so that the end of a greeting is stated early and the tests are fast. */
const timers = { greetingCompletionTimeoutMs: 800 };

let gateway: GatewayProcess;

/** Recites the question in each session. Every round of detection has its own connection. */
function recite(session: EngineSession): void {
  const left = [...question];
  let voiceMs = 0;
  session.socket.on('message', (audio: Buffer, isBinary) => {
    if (isBinary) voiceMs += voiceMsOf(audio);
    while (voiceMs >= (left[0]?.afterMs ?? Infinity)) {
      session.say(left.shift()?.said ?? '', { final: true, untilMs: session.audioMs });
    }
  });
}

/** Returns the duration of voice in 8 kHz, 16-bit audio, in steps of 20 ms. */
function voiceMsOf(audio: Buffer): number {
  const samples = new Int16Array(
    audio.buffer.slice(audio.byteOffset, audio.byteOffset + audio.length),
  );
  const pieces = Array.from({ length: samples.length / 160 }, (_, index) =>
    samples.subarray(index * 160, index * 160 + 160),
  );
  return pieces.filter((piece) => piece.some((sample) => Math.abs(sample) > 1_000)).length * 20;
}

const dataDir = forSuite(makeSeededDataDir);
const receiver = forSuite(startReceiver);
const engine = forSuite(() => startEngine({ script: recite }));
beforeAll(async () => {
  const file = join(dataDir.path, 'stt-providers.yaml');
  await writeFile(file, `providers:\n  scripted: { kind: websocket, url: "${engine.url}" }\n`);
  gateway = await startGateway(dataDir.path, { STT_PROVIDERS_FILE: file });
  const answer = readMulawWav(recordingUrl('bot-message')).subarray(0, 9_600);
  await gateway.dialer.addSound('who-is-calling', makeWav({ samples: [answer] }));
});
afterAll(() => gateway.terminate());

type Timeline = readonly {
  readonly type: string;
  readonly data: Readonly<Record<string, never>>;
}[];

async function callScreener(target: string) {
  const { callId } = await gateway.dialer.dial({
    ...{ target, timers, notifyurl: receiver.url, machineDetection: 'detect' },
    screening: { play: 'sound:who-is-calling' },
    callControlParameter: { sttProvider: 'scripted', sttLanguage: 'en-US' },
  });
  const timeline = async (): Promise<Timeline> => {
    const path = `/api/public/bot/${gateway.dialer.botId}/calls/${callId}`;
    const { body } = await gateway.dialer.request('GET', path);
    return (body as { readonly timeline: Timeline }).timeline;
  };
  return { callId, timeline };
}

const amdOf = (timeline: Timeline) =>
  timeline.flatMap(({ data }) => ('amd' in data ? [data['amd'] as object] : []));

const firstRound = [
  { event: 'amd_machine_detected', reason: 'call-screening', transcription: 'used' },
  { event: 'amd_machine_stopped_speaking' },
  { event: 'amd_stopped', reason: 'screened' },
];

const ticksLate = (): Promise<number> => ticksLateOf(gateway.runtime);

describe('a call that is screened', { concurrent: true, timeout: 180_000 }, () => {
  test('is answered once, and the person who comes gets the verdict human', async () => {
    await undisturbed(ticksLate, async () => {
      const { callId, timeline } = await callScreener(screener);
      const isThere = async () => JSON.stringify(await timeline()).includes('amd_human_detected');
      await eventually(isThere, 'a person comes', 40_000);
      expect(await gateway.dialer.command(callId, { command: 'hangup' })).toMatchObject({
        status: 202,
      });
      const notified = await receiver.untilEnded(callId);

      const events = await timeline();
      expect(amdOf(events)).toMatchObject([
        ...firstRound,
        { event: 'amd_human_detected', round: 2 },
        { event: 'amd_stopped', round: 2, reason: 'call-ended' },
      ]);
      const playback = { source: 'screening', sound: 'sound:who-is-calling' };
      expect(events.filter(({ type }) => type.startsWith('playback'))).toMatchObject([
        { type: 'playback-started', data: playback },
        { type: 'playback-finished', data: { ...playback, reason: 'done', playedMs: 1_200 } },
      ]);
      expect(notified.at(-1)).toMatchObject({
        ...{ status: 'completed', outcome: 'completed', reasonCode: 'Bot-disconnected' },
        ...{ machineDetection: 'amd_human_detected', playedMs: 1_200 },
      });
    });
  });

  test('has no voice in round 2 if the screener rejects it after the answer', async () => {
    await undisturbed(ticksLate, async () => {
      const { callId, timeline } = await callScreener(screenerRejects);
      const notified = await receiver.untilEnded(callId, 40_000);

      const events = await timeline();
      expect(amdOf(events)).toMatchObject([
        ...firstRound,
        { event: 'amd_stopped', round: 2, reason: 'call-ended' },
      ]);
      expect(events.filter(({ type }) => type === 'playback-finished')).toMatchObject([
        { data: { reason: 'done', playedMs: 1_200 } },
      ]);
      expect(notified.at(-1)).toMatchObject({
        ...{ status: 'completed', outcome: 'completed', reasonCode: 'Caller-disconnected' },
        machineDetection: 'amd_machine_detected',
      });
    });
  });
});
