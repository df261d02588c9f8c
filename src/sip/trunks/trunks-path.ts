// Decides which file to read the trunks from.

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Config } from '../../config.ts';

/**
 * With this value of TRUNKS_FILE, the gateway has no trunks, even if sip-config/trunks.yaml exists.
 */
export const noTrunksFile = 'none';

/**
 * Returns the path in TRUNKS_FILE, or sip-config/trunks.yaml if that file exists.
 * @returns undefined if there is no trunks file
 */
export function trunksPath({ trunksFile }: Pick<Config, 'trunksFile'>): string | undefined {
  if (trunksFile === noTrunksFile) return undefined;
  if (trunksFile !== undefined) return trunksFile;
  const path = fileURLToPath(new URL('../../../sip-config/trunks.yaml', import.meta.url));
  return existsSync(path) ? path : undefined;
}
