// Asks a drachtio-server whether it takes us.

import type { DrachtioServer } from '../../config.ts';
import { silentLogger } from '../../lib/logger.ts';
import { EngineLink } from './engine-link.ts';
import { defaultSipLimits } from './sip-limits.ts';

/** What is wrong; undefined where it took us. */
export function probeEngine(
  server: DrachtioServer,
  connectTimeoutMs: number,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    const link: EngineLink = new EngineLink({
      server,
      limits: { ...defaultSipLimits, connectTimeoutMs },
      logger: silentLogger,
      takesUnsolicited: false,
      onUp: () => {
        resolve(undefined);
        link.close('asked');
      },
      onDown: resolve,
    });
  });
}
