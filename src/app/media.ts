// Media: the RTP workers, and the speech-to-text providers that detection in them may ask.

import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { loadProviders, type SpeechToTextProviders } from '../amd/stt/providers.ts';
import type { SpeechToText } from '../amd/stt/transcribed-detector.ts';
import { type Config, readSecrets } from '../config.ts';
import type { MediaStatistics } from '../media/media-messages.ts';
import { createMediaPort, type MediaGateway } from '../media/media-port.ts';
import { addressProblem } from '../media/rtp/rtp-sockets.ts';
import type { Environment } from './environment.ts';
import { networksOpenTo } from './networks.ts';

export type MediaParts = {
  readonly port: MediaGateway;
  readonly statistics: () => Promise<MediaStatistics>;
  /** In strict mode the names that a request may say; undefined: any. */
  readonly speechToTextProviders: ReadonlySet<string> | undefined;
};

/** @throws Error when the address is not ours, the workers do not start, or the providers' file has mistakes. */
export async function openMedia(
  { config, logger, closers }: Environment,
  beyondLaptop: readonly string[],
): Promise<MediaParts> {
  const { onlyNames, ...speechToText } = await readSpeechToText(config, (names) =>
    readSecrets(names),
  );
  const problem = await addressProblem(config.media.host);
  if (problem !== undefined) throw new Error(`MEDIA_HOST cannot be used: ${problem}`);
  const { allowedNetworks, bufferBytes } = config.streams;
  const streams = { bufferBytes, allowedNetworks: networksOpenTo(allowedNetworks, beyondLaptop) };
  const port = createMediaPort({ ...config.media, streams, detectorData: speechToText, logger });
  closers.add('media', () => port[Symbol.asyncDispose]());
  if (!(await port.ready())) throw new Error('the media workers did not start');
  return {
    port,
    statistics: () => port.statistics(),
    speechToTextProviders: onlyNames,
  };
}

type Secrets = Parameters<typeof loadProviders>[1];

/** @throws Error when the file cannot be read or has mistakes, or lacks the default. */
export async function readSpeechToText(
  { sttProvidersFile, sttDefaultProvider, isSttStrict }: Config,
  secrets: Secrets,
): Promise<SpeechToText & { readonly onlyNames: ReadonlySet<string> | undefined }> {
  const providers = await readProviders(sttProvidersFile, secrets);
  if (sttDefaultProvider !== undefined && !providers.has(sttDefaultProvider)) {
    throw new Error(
      `STT_DEFAULT_PROVIDER: STT_PROVIDERS_FILE has no provider of the name ${sttDefaultProvider}`,
    );
  }
  const onlyNames = isSttStrict ? new Set(providers.keys()) : undefined;
  return { providers, defaultProvider: sttDefaultProvider, onlyNames };
}

async function readProviders(
  path: string | undefined,
  secrets: Secrets,
): Promise<SpeechToTextProviders> {
  if (path === undefined) return new Map();
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new Error(`STT_PROVIDERS_FILE cannot be read: ${path}`, { cause: error });
  });
  return loadProviders({ name: basename(path), text }, secrets);
}
