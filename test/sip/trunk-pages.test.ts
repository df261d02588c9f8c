import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { trunkFileSchema } from '../../src/sip/trunks/trunk-schema.ts';

const page = (name: string) =>
  readFile(new URL(`../../sip-config/${name}`, import.meta.url), 'utf8');

const trunk = trunkFileSchema.shape.trunks.element;

/**
 * Keys of an object and of the objects and lists of objects in it, e.g. `expiresS` of `register`.
 */
function keysOf(schema: unknown): readonly string[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) {
    return keysOf(schema.unwrap());
  }
  if (schema instanceof z.ZodArray) return keysOf(schema.element);
  if (!(schema instanceof z.ZodObject)) return [];
  return Object.entries(schema.shape).flatMap(([key, value]) => [key, ...keysOf(value)]);
}

const readme = await page('README.md');
const trunks = readme.slice(readme.indexOf('\n## Trunks\n'), readme.indexOf('\n## Secrets\n'));
const example = await page('trunks.example.yaml');

describe('the pages about trunks', () => {
  test.each(Object.keys(trunk.shape))('the README has a line for %s', (field) => {
    const rows = trunks.split('\n').filter((line) => line.startsWith(`| \`${field}\` |`));

    expect(rows[0]).toBeDefined();
  });

  test.each([...new Set(keysOf(trunk))])('the README names %s', (key) => {
    expect(trunks).toMatch(new RegExp(`\\b${key}\\b`));
  });

  test.each([...new Set(keysOf(trunk))])('the example file has %s', (key) => {
    expect(example).toMatch(new RegExp(`^[ #{-]*${key}: |^[ #-]*${key}:$|[{,] *${key}: `, 'm'));
  });
});
