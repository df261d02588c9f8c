// Checks requests with zod schemas. If a request contains several mistakes, one problem lists all
// of them.

import type { FastifySchemaCompiler } from 'fastify';
import { z } from 'zod';
import { describeIssues } from '../lib/issues.ts';
import { invalidRequest, type MemberError } from './problem.ts';

/**
 * Nobody reads more errors than this, and a body full of mistakes must not cause a far larger
 * response.
 */
export const maxErrors = 100;

export const validatorCompiler: FastifySchemaCompiler<unknown> = ({ schema, httpPart }) => {
  if (!(schema instanceof z.ZodType)) throw new TypeError('route schemas must be zod schemas');
  return (value: unknown) => {
    const parsed = schema.safeParse(value, { error: describeIssues });
    if (parsed.success) return { value: parsed.data };
    const errors = memberErrors(parsed.error, []);
    return { error: invalidRequest(errors.map((error) => withPlace(error, httpPart))) };
  };
};

/** Checks everything except the body, for routes that parse the body in their handler. */
export const exceptBody: FastifySchemaCompiler<unknown> = (part) =>
  part.httpPart === 'body' ? (value: unknown) => ({ value }) : validatorCompiler(part);

/**
 * Adds the location to an error that would be ambiguous without it. For example, a header may have
 * the same name as a parameter, and the body as a whole doesn't have a name.
 */
export function withPlace(
  { path, message }: MemberError,
  httpPart: string | undefined,
): MemberError {
  if (httpPart === 'headers') return { path, message: `${message} (header)` };
  return { path, message: path === '' ? `${message} (${httpPart})` : message };
}

/** Returns the first `maxErrors` errors, each with its dotted path below `parent`. */
export function memberErrors(error: z.ZodError, parent: readonly PropertyKey[]): MemberError[] {
  return error.issues
    .flatMap(({ path, message, ...issue }) =>
      issue.code === 'unrecognized_keys'
        ? issue.keys.slice(0, maxErrors).map((key) => ({
            path: [...parent, ...path, key].join('.'),
            message: 'is not known',
          }))
        : [{ path: [...parent, ...path].join('.'), message }],
    )
    .slice(0, maxErrors);
}

/**
 * An array that checks its length before its items. `z.array().max()` would first check every item,
 * even if there are a million.
 */
export function boundedArray<Item extends z.ZodType>(item: Item, maxItems: number) {
  return z.preprocess((value, context) => {
    if (!Array.isArray(value) || value.length <= maxItems) return value;
    context.addIssue({ code: 'custom', message: `must be at most ${maxItems} items long` });
    return z.NEVER;
  }, z.array(item).meta({ maxItems }));
}
