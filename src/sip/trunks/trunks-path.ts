// Where the trunks are read from.

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Config } from '../../config.ts';

/** What TRUNKS_FILE says where there are to be no trunks, whatever file there is. */
export const noTrunksFile = 'none';

/** TRUNKS_FILE, or sip-config/trunks.yaml where it is there. Undefined: there are none. */
export function trunksPath({ trunksFile }: Pick<Config, 'trunksFile'>): string | undefined {
  if (trunksFile === noTrunksFile) return undefined;
  if (trunksFile !== undefined) return trunksFile;
  const path = fileURLToPath(new URL('../../../sip-config/trunks.yaml', import.meta.url));
  return existsSync(path) ? path : undefined;
}
