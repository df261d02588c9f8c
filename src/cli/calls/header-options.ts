// Headers as they are typed: `Name: value`.

import { CliError } from '../cli-error.ts';

export function readHeaders(texts: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf(':');
      if (at < 1) throw new CliError(`--header ${text}: must be 'Name: value'`);
      return [text.slice(0, at).trim(), text.slice(at + 1).trim()];
    }),
  );
}
