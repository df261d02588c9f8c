// What a carrier says about the end of a call, besides the status line. The SIP side reads these
// facts from the far end's final response or BYE (`src/sip/end-facts.ts`). They travel unchanged
// into the terminal event. A fact that the carrier doesn't state is absent.

import { z } from 'zod';
import type { Immutable } from '../contract/schema.ts';

export const cause = z
  .object({
    q850: z.number().int().min(0).max(127).exactOptional().describe('Q.850 cause, e.g. 17'),
    sip: z.number().int().min(100).max(699).exactOptional().describe('SIP status of the cause'),
    text: z.string().exactOptional().describe('text of the cause, at most 200 characters'),
  })
  .describe(
    'the carrier’s Reason header (RFC 3326), from the response or BYE that ended the call, or from an earlier 18x response',
  );
export type Cause = Immutable<z.infer<typeof cause>>;

export const block = z
  .object({
    by: z
      .string()
      .exactOptional()
      .describe('who blocked the call: the host of `url`, or else of `email`'),
    url: z
      .string()
      .exactOptional()
      .describe('`http` or `https` address where the caller can object to the block'),
    tel: z.string().exactOptional().describe('number to call about the block'),
    email: z.string().exactOptional().describe('address to write to about the block'),
    id: z.string().exactOptional().describe('the blocking provider’s id for the block'),
    location: z
      .string()
      .exactOptional()
      .describe('network that blocked the call (RFC 8606), e.g. `RLN`: the callee’s'),
    raw: z
      .string()
      .describe(
        'the Reason or Call-Info header as received, at most 1,000 characters; the status line if there was none',
      ),
  })
  .describe('only if `outcome` is `blocked`. The carrier’s words; the gateway doesn’t verify them');
export type Block = Immutable<z.infer<typeof block>>;

const endFacts = z.object({
  cause: cause.exactOptional(),
  retryAfterS: z
    .number()
    .int()
    .min(0)
    .exactOptional()
    .describe('Retry-After of the final response, in seconds'),
  warning: z
    .string()
    .exactOptional()
    .describe('code and text of the final response’s first Warning (RFC 3261, section 20.43)'),
  block: block.exactOptional(),
});
export const endFactMembers = endFacts.shape;
export type EndFacts = Immutable<z.infer<typeof endFacts>>;

export const connectedIdentity = z
  .string()
  .describe(
    'who the carrier says was reached (P-Asserted-Identity, RFC 3325): a number such as `+12025550110`, or a SIP URI. Absent if the carrier doesn’t say, or the callee asked for privacy',
  );

/** Returns the facts for an event, in a fixed order and without absent members. */
export function endFactsIn({ cause, retryAfterS, warning, block }: EndFacts): EndFacts {
  return {
    ...(cause === undefined ? {} : { cause }),
    ...(retryAfterS === undefined ? {} : { retryAfterS }),
    ...(warning === undefined ? {} : { warning }),
    ...(block === undefined ? {} : { block }),
  };
}

/** Formats a cause for people, e.g. `Q.850 17 (User busy)`. */
export function causeText({ q850, sip, text }: Cause): string {
  const codes = [
    ...(q850 === undefined ? [] : [`Q.850 ${q850}`]),
    ...(sip === undefined ? [] : [`SIP ${sip}`]),
  ].join(', ');
  if (text === undefined) return codes;
  return codes === '' ? text : `${codes} (${text})`;
}
