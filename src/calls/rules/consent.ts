// The `consent` field of a dial-out request: what the person agreed to, according to the account.

import { z } from 'zod';
import { identifierUpTo } from '../../lib/ids.ts';
import { timestamp } from '../contract/timestamp.ts';

export const consentMember = z.object({
  basis: z
    .enum(['written', 'verbal', 'existing-relationship', 'other'])
    .describe('what the consent is based on'),
  at: timestamp.describe('when the person gave the consent, or the relationship began'),
  reference: identifierUpTo(256)
    .exactOptional()
    .describe('where the account keeps the proof, e.g. the id of a form'),
});

export type Consent = z.output<typeof consentMember>;
