// The members of a request under which its call may be dialled. Each event of the call repeats
// them, so that readers of events need not look up the request.

import { z } from 'zod';
import { identifierUpTo } from '../../lib/ids.ts';
import { type Consent, consentMember } from './consent.ts';

export const callTerms = {
  campaign: identifierUpTo(64).exactOptional().describe('`campaign` of the request'),
  rules: identifierUpTo(64).exactOptional().describe('`rules` of the request'),
  consent: consentMember.exactOptional().describe('`consent` of the request'),
  timeZone: z.string().exactOptional().describe('`timeZone` of the request'),
};

export type CallTerms = {
  readonly campaign?: string;
  readonly rules?: string;
  readonly consent?: Consent;
  readonly timeZone?: string;
};

export function termsOf({ campaign, rules, consent, timeZone }: CallTerms): CallTerms {
  return {
    ...(campaign === undefined ? {} : { campaign }),
    ...(rules === undefined ? {} : { rules }),
    ...(consent === undefined ? {} : { consent }),
    ...(timeZone === undefined ? {} : { timeZone }),
  };
}
