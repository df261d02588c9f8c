// Writes the licences of everything in the corpus beside it. The corpus itself stays on the machine
// that made it.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export function licenceTable(cache: string): string {
  const folder = join(cache, 'packages');
  const names = existsSync(folder) ? readdirSync(folder).sort() : [];
  const parts = names.map((name) => {
    const path = join(folder, name, 'usr', 'share', 'doc', name, 'copyright');
    const text = existsSync(path) ? readFileSync(path, 'utf8').trim() : 'no copyright file';
    return `## ${name}\n\n${text.replaceAll(/^/gm, '    ')}\n`;
  });
  const head =
    '# Licences of the recordings\n\nMade on this machine from the Debian packages below, for measuring; not to be passed on without looking here first.\nVoices of speech synthesisers are those of the packages that are installed: espeak-ng, flite, festival and its voices; gnuspeech is GPL-3.0, its licence is in gnuspeech/node_modules.\n';
  return `${[head, ...parts].join('\n')}\n`;
}
