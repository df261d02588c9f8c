// The schema of a URL that receives notifications.

import { z } from 'zod';
import { maxNotifyUrlLength, notifyUrlProblem } from '../../notifier/notify-url.ts';

export const notifyUrlMember = z
  .string()
  .max(maxNotifyUrlLength)
  // A URL parser would silently drop control characters and replace half a surrogate pair.
  .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'must not contain control characters')
  .transform((text, context) => {
    const problem = notifyUrlProblem(text);
    if (problem !== undefined) {
      context.addIssue({ code: 'custom', message: problem });
      return z.NEVER;
    }
    const url = new URL(text);
    // HTTP clients never send a fragment.
    url.hash = '';
    return url.href;
  });
