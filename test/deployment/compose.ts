// docker-compose.yml as Compose would read it: YAML with merges, then variables put in.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { composeSchema } from './compose-schema.ts';

export const repository = fileURLToPath(new URL('../../', import.meta.url));

export function textOf(path: string): string {
  return readFileSync(`${repository}${path}`, 'utf8');
}

/** What `.env` would have, as the README says. Digits alone: what else a program might read in them must not matter. */
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

const reference = /\$\$|\$\{(?<name>[A-Z_]+)(?:(?<how>:\?|:-)(?<word>[^}]*))?\}|\$/g;

/** @throws Error for a form that is not known here, or a variable that could be left out and would then be nothing. */
export function variablesOf(text: string): readonly Variable[] {
  return [...text.matchAll(reference)].flatMap((match) => {
    const { name, how } = match.groups ?? {};
    if (match[0] === '$$') return [];
    if (name === undefined || how === undefined) throw new Error(`not understood: ${match[0]}`);
    return [{ name, use: how === ':?' ? ('required' as const) : ('optional' as const) }];
  });
}

/** @throws Error with the message of a required variable that is missing. */
function putIn(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replace(reference, (all, name?: string, how?: string, word?: string) => {
    if (all === '$$') return '$';
    if (name === undefined || how === undefined) throw new Error(`not understood: ${all}`);
    const value = variables[name] ?? '';
    if (value !== '') return value;
    if (how === ':?') throw new Error(`${name}: ${word ?? ''}`);
    return word ?? '';
  });
}

/** @throws Error that says what is not as the schema says, or which variable is missing. */
export function readCompose(variables: Readonly<Record<string, string>> = someVariables) {
  const document: unknown = parse(textOf('docker-compose.yml'), { merge: true });
  return composeSchema.parse(walk(document, (text) => putIn(text, variables)));
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
