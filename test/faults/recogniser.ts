// A speech-to-text provider for the storm. It hears a call screener in every voice that lasts a
// second.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type EngineSession, startEngine } from '../amd-stt/support/scripted-engine.ts';

/** The name by which requests select the provider. */
export const recogniserName = 'storm';

export type Recogniser = AsyncDisposable & { readonly providersFile: string };

export async function startRecogniser(): Promise<Recogniser> {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-recogniser-'));
  const engine = await startEngine({ script: hearScreener });
  const providersFile = join(folder, 'stt-providers.yaml');
  const provider = `{ kind: websocket, url: "${engine.url}" }`;
  await writeFile(providersFile, `providers:\n  ${recogniserName}: ${provider}\n`);
  return {
    providersFile,
    [Symbol.asyncDispose]: async () => {
      await engine[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const screening =
  'Hi. The person you are calling uses a call screening service. Please say your name, and why you are calling.';
const heardAfterMs = 1_000;
/** 8,000 samples a second, of 16 bits each. */
const bytesPerMs = 16;
/** The amplitude above which a sample counts as voice. */
const quiet = 1_000;

function hearScreener(session: EngineSession): void {
  let voiceMs = 0;
  session.socket.on('message', (audio: Buffer, isBinary) => {
    if (!isBinary || voiceMs >= heardAfterMs) return;
    if (isVoice(audio)) voiceMs += audio.length / bytesPerMs;
    if (voiceMs >= heardAfterMs) session.say(screening, { final: true });
  });
}

function isVoice(audio: Buffer): boolean {
  for (let at = 0; at + 1 < audio.length; at += 2) {
    if (Math.abs(audio.readInt16LE(at)) > quiet) return true;
  }
  return false;
}
