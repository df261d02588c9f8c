// Media: the RTP workers, and the speech-to-text providers that detection in them may ask.

import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { loadProviders, type SpeechToTextProviders } from './amd/stt/providers.ts';
import type { Environment } from './app.ts';
import { type Config, readSecrets } from './config.ts';
import { createMediaPort, type MediaGateway } from './media/media-port.ts';
import { addressProblem } from './media/rtp-sockets.ts';

export type MediaParts = {
  readonly port: MediaGateway;
  /** Names that a request may say. */
  readonly speechToTextProviders: ReadonlySet<string>;
};

/** @throws Error when the address is not ours, the workers do not start, or the providers' file has mistakes. */
export async function openMedia({ config, logger, closers }: Environment): Promise<MediaParts> {
  const providers = await readProviders(config);
  const problem = await addressProblem(config.media.host);
  if (problem !== undefined) throw new Error(`MEDIA_HOST cannot be used: ${problem}`);
  const port = createMediaPort({ ...config.media, detectorData: providers, logger });
  closers.add('media', () => port[Symbol.asyncDispose]());
  if (!(await port.ready())) throw new Error('the media workers did not start');
  return { port, speechToTextProviders: new Set(providers.keys()) };
}

async function readProviders({ sttProvidersFile }: Config): Promise<SpeechToTextProviders> {
  if (sttProvidersFile === undefined) return new Map();
  const text = await readFile(sttProvidersFile, 'utf8').catch((error: unknown) => {
    throw new Error(`STT_PROVIDERS_FILE cannot be read: ${sttProvidersFile}`, { cause: error });
  });
  return loadProviders({ name: basename(sttProvidersFile), text }, (names) => readSecrets(names));
}
