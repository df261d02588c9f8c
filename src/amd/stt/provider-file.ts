// Reads the speech-to-text configuration, which consists of the providers file, the default
// provider, and whether requests may name providers that aren't in the file.

import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Config } from '../../config.ts';
import { loadProviders, type SpeechToTextProviders } from './providers.ts';
import type { SpeechToText } from './transcribed-detector.ts';

type Secrets = Parameters<typeof loadProviders>[1];

/**
 * @throws Error if the file can't be read, contains mistakes, or doesn't define the default
 * provider
 */
export async function readSpeechToText(
  {
    sttProvidersFile,
    sttDefaultProvider,
    isSttStrict,
  }: Pick<Config, 'sttProvidersFile' | 'sttDefaultProvider' | 'isSttStrict'>,
  secrets: Secrets,
): Promise<SpeechToText & { readonly onlyNames: ReadonlySet<string> | undefined }> {
  const providers = await readProviders(sttProvidersFile, secrets);
  if (sttDefaultProvider !== undefined && !providers.has(sttDefaultProvider)) {
    throw new Error(
      `STT_DEFAULT_PROVIDER: STT_PROVIDERS_FILE has no provider named ${sttDefaultProvider}`,
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
