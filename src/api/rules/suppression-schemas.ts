// The schemas for suppressions, and how their numbers are read.

import { z } from 'zod';
import { timestamp } from '../../calls/contract/timestamp.ts';
import {
  maxSuppressionSourceLength,
  type Suppression,
  suppressedAddressOf,
  suppressionReasons,
} from '../../calls/rules/suppression.ts';
import type { NumberReading } from '../../calls/target/number-reading.ts';
import { parseTarget } from '../../calls/target/parse-target.ts';
import { boundedArray } from '../../http/validation.ts';
import { identifierUpTo } from '../../lib/ids.ts';
import { filterInstant } from '../call-schemas.ts';

/** As long as a target of a dial-out request may be. */
const maxNumberLength = 512;
const maxChecked = 10_000;

const reason = z.enum(suppressionReasons);
const source = identifierUpTo(maxSuppressionSourceLength).describe(
  'where the suppression comes from, e.g. `web form`',
);
/** A time that has passed is refused, because the suppression would silently do nothing. */
const until = filterInstant
  .refine((text) => Date.parse(text) > Date.now(), 'must lie in the future')
  .describe('the suppression ends at this time; default: it does not end');

const numberText = z.string().min(1).max(maxNumberLength);

/** A number as responses show it. */
const address = z
  .string()
  .describe('`+` and the digits of the number, or a `sip:` URI without its port');

export const suppressionParams = z.object({
  number: numberText.describe(
    'a number with or without `+` (`defaultCountry` and `bareNumbers` of the app say how a number without `+` is read), or a percent-encoded `sip:` URI, whose port is ignored',
  ),
});

const suppressionMembers = { reason, source, until: until.exactOptional() };

export const suppressionBody = z
  .strictObject(suppressionMembers)
  .meta({ id: 'SuppressionRequest', examples: [{ reason: 'opt-out', source: 'web form' }] });

/** One line of an import. */
export const importedSuppression = z.strictObject({ number: numberText, ...suppressionMembers });

const suppressionExample = {
  number: '+12025550110',
  reason: 'opt-out' as const,
  source: 'web form',
  createdAt: '2026-11-20T09:00:00.000Z',
  appId: 'crm',
};

const suppressionSchema = z
  .object({
    number: address,
    reason,
    source: z.string(),
    until: timestamp.exactOptional().describe('absent if it does not end'),
    createdAt: timestamp.describe('when the number was first suppressed'),
    appId: z.string().describe('the app that stored the suppression last'),
  })
  .meta({ id: 'Suppression', examples: [suppressionExample] });
export type SuppressionBody = z.output<typeof suppressionSchema>;
export { suppressionSchema };

export const putSuppressionSchema = suppressionSchema
  .extend({
    left: z
      .array(z.string())
      .exactOptional()
      .describe('calls to the number that may still ring; absent if there are no such calls'),
  })
  .meta({ id: 'StoredSuppression', examples: [suppressionExample] });

export const suppressionQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(200).default(50).describe('suppressions in one page'),
  cursor: z.string().min(1).max(1_024).optional().describe('`nextCursor` of the previous page'),
});

export const suppressionPageSchema = z
  .object({
    suppressions: z.array(suppressionSchema).describe('sorted by number'),
    nextCursor: z.string().exactOptional().describe('absent on the last page'),
  })
  .meta({
    id: 'SuppressionPage',
    examples: [{ suppressions: [suppressionExample], nextCursor: 'KzEyMDI1NTUwMTEw' }],
  });

export const suppressionRemovalSchema = z
  .object({ number: address, removed: z.literal(true) })
  .meta({ id: 'SuppressionRemoval', examples: [{ number: '+12025550110', removed: true }] });

export const checkBody = z
  .strictObject({ numbers: boundedArray(numberText, maxChecked) })
  .meta({ id: 'SuppressionCheck', examples: [{ numbers: ['+12025550110', '+12025550111'] }] });

export const checkResultSchema = z
  .object({
    results: z
      .array(
        z.object({
          number: address,
          suppressed: z.boolean(),
          reason: reason.exactOptional(),
          until: timestamp.exactOptional(),
        }),
      )
      .describe('in the order of the request'),
  })
  .meta({
    id: 'SuppressionCheckResult',
    examples: [
      {
        results: [
          { number: '+12025550110', suppressed: true, reason: 'opt-out' },
          { number: '+12025550111', suppressed: false },
        ],
      },
    ],
  });

export type ReadNumber =
  | { readonly ok: true; readonly address: string }
  | { readonly ok: false; readonly message: string };

/** Reads a number as targets of dial-out requests are read. `tel:` may be left out. */
export function readSuppressedNumber(text: string, reading: NumberReading): ReadNumber {
  const hasScheme = /^[A-Za-z][A-Za-z0-9+.-]*:/.test(text);
  const result = parseTarget(hasScheme ? text : `tel:${text}`, reading);
  if (!result.ok) return result;
  const suppressed = suppressedAddressOf(result.target);
  return suppressed === undefined
    ? { ok: false, message: 'a number with phone-context cannot be suppressed' }
    : { ok: true, address: suppressed };
}

export function toSuppression({
  reason: why,
  source: from,
  until: end,
}: Omit<z.output<typeof suppressionBody>, 'number'>): Suppression {
  return { reason: why, source: from, ...(end === undefined ? {} : { until: new Date(end) }) };
}
