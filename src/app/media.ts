// Media: the RTP workers, and the speech-to-text providers that detection in them may ask.

import { readSpeechToText } from '../amd/stt/provider-file.ts';
import { readSecrets } from '../config.ts';
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
  const { onlyNames, ...speechToText } = await readSpeechToText(config, readSecrets);
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
