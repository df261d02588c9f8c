// Checks that a drachtio-server accepts a connection with its secret.

import type { DrachtioServer } from '../../config.ts';
import { silentLogger } from '../../lib/logger.ts';
import { EngineLink } from './engine-link.ts';
import { defaultSipLimits } from './sip-limits.ts';

/**
 * Connects to the server and disconnects again.
 * @returns a description of the problem, or undefined if the server accepted the connection
 */
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
