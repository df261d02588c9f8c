// Whom to call, in a request: what a dial-out and a transfer take alike.

import { z } from 'zod';
import { parseTarget } from '../../calls/parse-target.ts';

export const targetSchema = z
  .string()
  .max(512)
  .transform((text, context) => {
    const result = parseTarget(text);
    if (result.ok) return result.target;
    context.addIssue({ code: 'custom', message: result.message });
    return z.NEVER;
  });
