// Checks requests with zod schemas. All mistakes of a request become one problem.

import type { FastifySchemaCompiler } from 'fastify';
import { z } from 'zod';
import { describeIssues } from '../lib/issues.ts';
import { invalidRequest, type MemberError } from './problem.ts';

/** Nobody reads more, and a body full of mistakes must not cause a far larger answer. */
export const mostErrors = 100;

export const validatorCompiler: FastifySchemaCompiler<unknown> = ({ schema, httpPart }) => {
  if (!(schema instanceof z.ZodType)) throw new TypeError('routes are described by zod schemas');
  return (value: unknown) => {
    const parsed = schema.safeParse(value, { error: describeIssues });
    if (parsed.success) return { value: parsed.data };
    const errors = memberErrors(parsed.error, []);
    return { error: invalidRequest(errors.map((error) => withPlace(error, httpPart))) };
  };
};

/** Checks everything but the body. For routes that parse the body in their handler. */
export const exceptBody: FastifySchemaCompiler<unknown> = (part) =>
  part.httpPart === 'body' ? (value: unknown) => ({ value }) : validatorCompiler(part);

/**
 * Adds the place to an error that would be ambiguous without it: a header may have the name of a
 * parameter, and the whole body has no name.
 */
export function withPlace(
  { path, message }: MemberError,
  httpPart: string | undefined,
): MemberError {
  if (httpPart === 'headers') return { path, message: `${message} (header)` };
  return { path, message: path === '' ? `${message} (${httpPart})` : message };
}

/** Returns the first `mostErrors` errors, each with its dotted path below `parent`. */
export function memberErrors(error: z.ZodError, parent: readonly PropertyKey[]): MemberError[] {
  return error.issues
    .flatMap(({ path, message, ...issue }) =>
      issue.code === 'unrecognized_keys'
        ? issue.keys.slice(0, mostErrors).map((key) => ({
            path: [...parent, ...path, key].join('.'),
            message: 'is not known',
          }))
        : [{ path: [...parent, ...path].join('.'), message }],
    )
    .slice(0, mostErrors);
}

/**
 * An array whose length is checked before its items. `z.array().max()` would check all of a million
 * items.
 */
export function boundedArray<Item extends z.ZodType>(item: Item, longest: number) {
  return z.preprocess(
    (value, context) => {
      if (!Array.isArray(value) || value.length <= longest) return value;
      context.addIssue({ code: 'custom', message: `must be at most ${longest} items long` });
      return z.NEVER;
    },
    z.array(item).meta({ maxItems: longest }),
  );
}
