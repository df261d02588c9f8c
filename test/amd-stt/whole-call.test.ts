// A gateway with a speech-to-text provider and a sandbox voicemail: what the dialer and the bot
// receive.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readSpeechToText } from '../../src/amd/stt/provider-file.ts';
import { loadConfig } from '../../src/config.ts';
import { taskCoversOnAny } from '../specification/covers.ts';
import { makeSeededDataDir } from '../support/databases.ts';
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts';
import { glance, type Receiver, startReceiver } from '../support/receiver.ts';
import { ticksLateOf, undisturbed } from '../support/undisturbed.ts';
import { type EngineSession, type ScriptedEngine, startEngine } from './support/scripted-engine.ts';

const voicemail = 'tel:+12025550110';
const personHangsUp = 'tel:+12025550101';
const apiKey = 'a-key-that-no-log-shows';
/** The results of a recogniser, each after this much audio. */
const results = [
  { afterMs: 1_200, transcript: 'Hi you have', final: false },
  { afterMs: 2_400, transcript: 'Hi, you have reached Jane and Robert.', final: true },
  { afterMs: 3_600, transcript: 'please leave your', final: false },
  { afterMs: 4_200, transcript: 'Please leave your message after the tone,', final: true },
  { afterMs: 5_600, transcript: 'and we will call you back.', final: true },
] as const;

let dataDir: Awaited<ReturnType<typeof makeSeededDataDir>>;
let receiver: Receiver;
let speaking: ScriptedEngine;
let stalling: ScriptedEngine;
let refusing: ScriptedEngine;
let gateway: GatewayProcess;

function recite(session: EngineSession): void {
  let next = 0;
  session.socket.on('message', () => {
    for (; session.audioMs >= (results[next]?.afterMs ?? Infinity); next += 1) {
      const result = results[next];
      if (result !== undefined) session.say(result.transcript, result);
    }
  });
}

beforeAll(async () => {
  dataDir = await makeSeededDataDir();
  receiver = await startReceiver();
  speaking = await startEngine({ kind: 'deepgram', script: recite });
  stalling = await startEngine();
  refusing = await startEngine({ kind: 'deepgram', refusal: 401 });
  const file = join(dataDir.path, 'stt-providers.yaml');
  await writeFile(
    file,
    `providers:
  speaking: { kind: deepgram, url: "${speaking.url}", apiKeyEnv: ENGINE_KEY }
  stalling: { kind: websocket, url: "${stalling.url}" }
  refusing: { kind: deepgram, url: "${refusing.url}", apiKeyEnv: ENGINE_KEY }
`,
  );
  gateway = await startGateway(dataDir.path, {
    STT_PROVIDERS_FILE: file,
    ENGINE_KEY: apiKey,
    LOG_LEVEL: 'debug',
  });
});

afterAll(async () => {
  await gateway.terminate();
  await Promise.all([speaking, stalling, refusing].map((engine) => engine[Symbol.asyncDispose]()));
  await receiver.close();
  await dataDir.remove();
});

async function dial(target: string, sttProvider?: string) {
  const { callId } = await gateway.dialer.dial({
    target,
    notifyurl: receiver.url,
    machineDetection: 'detect',
    ...(sttProvider === undefined
      ? {}
      : { callControlParameter: { sttProvider, sttLanguage: 'en-US', sttLabel: 'trial' } }),
  });
  return { callId, notified: await receiver.untilEnded(callId, 40_000) };
}

const ticksLate = (): Promise<number> => ticksLateOf(gateway.runtime);

describe('a call with speech-to-text', { concurrent: true, timeout: 180_000 }, () => {
  test('has the greeting of a voicemail in the evidence and in the context', async ({ task }) => {
    taskCoversOnAny(task, 'dialout.context.rule.amdGreeting');
    await undisturbed(ticksLate, async () => {
      const { callId, notified } = await dial(voicemail, 'speaking');

      expect(glance(notified)).toEqual([
        'Answered',
        'amd_machine_detected',
        'amd_machine_stopped_speaking',
        'amd_tone_detected',
        'amd_stopped',
        'completed',
      ]);
      expect(notified[1]?.['amd']).toMatchObject({
        reason: 'voicemail-phrase',
        transcript:
          'Hi, you have reached Jane and Robert. Please leave your message after the tone,',
        transcription: 'used',
        words: 14,
      });
      const context = await gateway.dialer.context(callId);
      expect(context.body).toMatchObject({
        session: {
          UserSession: {
            amdInfo: {
              amdReason: 'voicemail-phrase',
              amdGreeting:
                'Hi, you have reached Jane and Robert. Please leave your message after the tone, and we will call you back.',
            },
          },
        },
      });
      const session = await speaking.session(speaking.sessions.length - 1);
      expect(session.request.headers.authorization).toBe(`Token ${apiKey}`);
      expect(session.query).toMatchObject({ language: 'en-US', tag: 'trial' });
      expect(session.messages.at(-1)).toEqual({ type: 'CloseStream' });
      expect(gateway.output()).not.toContain(apiKey);
      expect(gateway.output()).not.toContain('Jane and Robert');
    });
  });

  test('has the same events if the provider stalls, and their reason says so', async () => {
    await undisturbed(ticksLate, async () => {
      const [stalled, without] = await Promise.all([dial(voicemail, 'stalling'), dial(voicemail)]);

      expect(glance(stalled.notified)).toEqual(glance(without.notified));
      expect(stalled.notified[1]?.['amd']).toMatchObject({
        reason: expect.stringMatching(/-transcription-late$/) as string,
        transcription: 'late',
      });
      expect(without.notified[1]?.['amd']).not.toHaveProperty('transcription');
    });
  });

  test('reports in the event and in the log that a provider rejected it', async () => {
    await undisturbed(ticksLate, async () => {
      const { notified } = await dial(personHangsUp, 'refusing');

      expect(notified[1]).toMatchObject({
        machineDetection: 'amd_human_detected',
        amd: {
          reason: expect.stringMatching(/-transcription-failed$/) as string,
          transcription: 'failed',
        },
      });
      expect(gateway.output()).toContain(
        'speech-to-text failed, so words are estimated from the audio',
      );
      expect(gateway.output()).toContain('refused-401');
    });
  });

  test('ends normally with a stalled provider when the person hangs up', async () => {
    await undisturbed(ticksLate, async () => {
      const { notified } = await dial(personHangsUp, 'stalling');

      expect(glance(notified)).toContain('amd_human_detected');
      expect(notified.at(-1)).toMatchObject({ reasonCode: 'Caller-disconnected' });
    });
  });

  test('is accepted with an unconfigured provider; detection works by sound, and its reason says so', async () => {
    await undisturbed(ticksLate, async () => {
      const [unknown, again, without] = await Promise.all([
        dial(voicemail, 'sttVendor'),
        dial(personHangsUp, 'sttVendor'),
        dial(voicemail),
      ]);

      expect(glance(unknown.notified)).toEqual(glance(without.notified));
      expect(unknown.notified[1]?.['amd']).toMatchObject({
        reason: expect.stringMatching(/-transcription-unconfigured$/) as string,
        transcription: 'unconfigured',
      });
      expect(again.notified[1]?.['amd']).toMatchObject({ transcription: 'unconfigured' });
      // Logged once per provider name, however many calls use it.
      const warnings =
        gateway.output().split('speech-to-text provider is not configured').length - 1;
      expect(warnings).toBe(1);
    });
  });
});

describe('STT_DEFAULT_PROVIDER and STT_STRICT', () => {
  const file = () => join(dataDir.path, 'stt-providers.yaml');

  test('a default provider that the file lacks stops the start with a clear error', async () => {
    const variables = {
      STT_PROVIDERS_FILE: file(),
      STT_DEFAULT_PROVIDER: 'nobody',
      ENGINE_KEY: 'k',
    };
    const config = loadConfig({ ...variables, MEDIA_HOST: '127.0.0.1' });

    await expect(readSpeechToText(config, () => variables)).rejects.toThrow(
      'STT_DEFAULT_PROVIDER: STT_PROVIDERS_FILE has no provider named nobody',
    );
  });

  test('strict mode accepts only names of the file; otherwise every name is accepted', async () => {
    const secrets = () => ({ ENGINE_KEY: 'k' });
    const read = async (variables: Record<string, string>) =>
      await readSpeechToText(loadConfig({ STT_PROVIDERS_FILE: file(), ...variables }), secrets);

    expect((await read({ STT_STRICT: 'true' })).onlyNames).toEqual(
      new Set(['speaking', 'stalling', 'refusing']),
    );
    expect((await read({ STT_STRICT: 'false' })).onlyNames).toBeUndefined();
    expect((await read({ STT_DEFAULT_PROVIDER: 'speaking' })).onlyNames).toBeUndefined();
  });
});
