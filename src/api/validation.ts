// Path and query parameters are checked by their zod schemas; what is wrong with them becomes one problem.

import type { FastifySchemaCompiler } from 'fastify';
import { z } from 'zod';
import { describeIssues } from '../lib/issues.ts';
import { invalidRequest } from './problem.ts';

export const validatorCompiler: FastifySchemaCompiler<unknown> = ({ schema }) => {
  if (!(schema instanceof z.ZodType)) throw new TypeError('routes are described by zod schemas');
  return (value: unknown) => {
    const parsed = schema.safeParse(value, { error: describeIssues });
    if (parsed.success) return { value: parsed.data };
    return {
      error: invalidRequest(
        parsed.error.issues.flatMap(({ path, message, ...issue }) =>
          issue.code === 'unrecognized_keys'
            ? issue.keys.map((key) => ({ path: [...path, key].join('.'), message: 'is not known' }))
            : [{ path: path.join('.'), message }],
        ),
      ),
    };
  };
};
