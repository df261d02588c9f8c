// The files that the configuration names: do they exist, and are they without mistakes? These
// checks need neither a port nor the network, so a start makes them first.

import { readSpeechToText } from '../amd/stt/provider-file.ts';
import { type Config, readSecrets } from '../config.ts';
import { errorForPeople } from '../lib/error-for-log.ts';
import { readTrunkFile, sandboxIsOn, trunksOf } from '../sip/trunks/trunk-file.ts';
import { type Check, type Finding, failed, ok, skipped } from './check.ts';

export function trunksCheck(
  config: Pick<Config, 'trunksFile' | 'sandbox' | 'drachtioServers'>,
): Check {
  return {
    name: 'trunks',
    run: () =>
      unlessThrown(async () => {
        const file = await readTrunkFile(config);
        if (file === undefined) return skipped('there is no TRUNKS_FILE: no carrier is configured');
        // Its name alone matters here: no trunk of the file may have the same.
        const sandbox = sandboxIsOn(config, file) ? { host: '127.0.0.1', port: 5_060 } : undefined;
        const trunks = trunksOf(config, { file, sandbox, secrets: readSecrets });
        return ok(`${file.name}: ${trunks.all.map(({ name }) => name).join(', ')}`);
      }),
  };
}

export function speechToTextCheck(
  config: Pick<Config, 'sttProvidersFile' | 'sttDefaultProvider' | 'isSttStrict'>,
): Check {
  return {
    name: 'speech-to-text',
    run: () =>
      unlessThrown(async () => {
        const { providers } = await readSpeechToText(config, readSecrets);
        return providers.size === 0
          ? skipped('there is no STT_PROVIDERS_FILE: words are counted by ear')
          : ok([...providers.keys()].join(', '));
      }),
  };
}

/** A line for each mistake, and what the system said, e.g. ENOENT. */
async function unlessThrown(run: () => Promise<Finding>): Promise<Finding> {
  try {
    return await run();
  } catch (error) {
    return failed(errorForPeople(error).replaceAll(/\n */g, '\n  '));
  }
}
