// Reads the options of a bench from the command line. Each value gets the type of its default.

import { parseArgs } from 'node:util';

type Value = number | string | readonly number[];
type Widened<Of> = Of extends number ? number : Of extends string ? string : readonly number[];

/** Accepts `--name value` for each default. Commas separate the numbers of a list. */
export function optionsOf<Defaults extends Readonly<Record<string, Value>>>(
  args: readonly string[],
  defaults: Defaults,
): { readonly [Name in keyof Defaults]: Widened<Defaults[Name]> } {
  const names = Object.keys(defaults).map((name) => [name, { type: 'string' }] as const);
  const { values } = parseArgs({ args: [...args], options: Object.fromEntries(names) });
  const read = (value: string, kind: Value): Value => {
    if (typeof kind === 'string') return value;
    return typeof kind === 'number' ? Number(value) : value.split(',').map(Number);
  };
  const entries = Object.entries(defaults).map(([name, value]) => [
    name,
    typeof values[name] === 'string' ? read(values[name], value) : value,
  ]);
  return Object.fromEntries(entries) as ReturnType<typeof optionsOf<Defaults>>;
}
