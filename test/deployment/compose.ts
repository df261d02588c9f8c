// Reads docker-compose.yml like Compose: parses YAML with merges, then replaces variables.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { composeSchema } from './compose-schema.ts';

export const repository = fileURLToPath(new URL('../../', import.meta.url));

export function textOf(path: string): string {
  return readFileSync(`${repository}${path}`, 'utf8');
}

/**
 * The variables of a `.env` that follows the README. The secrets contain only digits (and one `e`),
 * so that tests find programs that would read them as numbers.
 */
export const someVariables = {
  POSTGRES_PASSWORD: '111111111111111111111111',
  NATS_PASSWORD: '22222222222222e2222222222',
  DRACHTIO_SECRET: '333333333333333333333333',
  SECRETS_KEY: '4'.repeat(64),
  PUBLIC_IP: '203.0.113.4',
};

export type Variable = {
  readonly name: string;
  /** `required`: Compose refuses to start without it. */
  readonly use: 'required' | 'optional';
};

const reference = /\$\$|\$\{(?<name>[A-Z_][A-Z0-9_]*)(?:(?<how>:\?|:-)(?<word>[^}]*))?\}|\$/g;

/**
 * Returns the variables that the text uses.
 * @throws Error for an unknown form, or for a variable with neither a default nor a message
 */
export function variablesOf(text: string): readonly Variable[] {
  return [...text.matchAll(reference)].flatMap((match) => {
    const { name, how } = match.groups ?? {};
    if (match[0] === '$$') return [];
    if (name === undefined || how === undefined) throw new Error(`not understood: ${match[0]}`);
    return [{ name, use: how === ':?' ? ('required' as const) : ('optional' as const) }];
  });
}

/**
 * Replaces the variables in the text by their values.
 * @throws Error with the message of a required variable that is missing
 */
function replaceVariables(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replace(reference, (all, name?: string, how?: string, word?: string) => {
    if (all === '$$') return '$';
    if (name === undefined || how === undefined) throw new Error(`not understood: ${all}`);
    const value = variables[name] ?? '';
    if (value !== '') return value;
    if (how === ':?') throw new Error(`${name}: ${word ?? ''}`);
    return word ?? '';
  });
}

/**
 * Reads the file.
 * @throws Error that names the missing variable or the member that does not fit the schema
 */
export function readCompose(variables: Readonly<Record<string, string>> = someVariables) {
  const document: unknown = parse(textOf('docker-compose.yml'), { merge: true });
  return composeSchema.parse(walk(document, (text) => replaceVariables(text, variables)));
}

function walk(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value);
  if (Array.isArray(value)) return value.map((item) => walk(item, change));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, walk(item, change)]));
}

export function durationMs(text: string): number {
  const unitsMs: Readonly<Record<string, number>> = { us: 0.001, ms: 1, s: 1e3, m: 6e4, h: 3.6e6 };
  return [...text.matchAll(/(\d+)(us|ms|s|m|h)/g)]
    .map(([, count, unit = '']) => Number(count) * (unitsMs[unit] ?? Number.NaN))
    .reduce((sum, part) => sum + part, 0);
}
