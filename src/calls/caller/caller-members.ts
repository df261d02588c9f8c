// The fields that describe the caller, apart from `caller` itself. The dial-out request and
// transfers use them.

import { z } from 'zod';
import { maxAddedBytes } from './added-headers.ts';

/**
 * Long enough for a name with a company. The bound keeps the name from filling the control frame
 * that carries the INVITE: it may take 320 bytes in From, and again in P-Asserted-Identity.
 */
const maxNameLength = 80;

const callerName = z
  .string()
  .regex(
    new RegExp(`^[^\\p{Cc}\\p{Cs}]{1,${maxNameLength}}$`, 'u'),
    `must be 1 to ${maxNameLength} characters without control characters`,
  );

/**
 * RFC 8224, section 4: `digest;info=<URI>` and parameters. Section 4.1 asks only for the order of
 * `info`, and signers don't agree on it, so we accept the parameters in any order. The alternatives
 * within a parameter begin with different characters, so the pattern runs in linear time.
 */
const identityForm =
  /^[A-Za-z0-9+/=_.-]+(?:[ \t]*;[ \t]*[A-Za-z0-9-]+[ \t]*=[ \t]*(?:<[!#-;=?-~]+>|"[\t !#-[\]-~]*"|[A-Za-z0-9\-.!%*_+`'~]+))+$/;

const identity = z
  .string()
  .max(maxAddedBytes)
  .refine(
    (text) => identityForm.test(text) && /;[ \t]*info[ \t]*=[ \t]*</i.test(text),
    'must be one value of an Identity header (RFC 8224): a signed token, then ;info=<URI> and other parameters',
  );

export const callerMembers = {
  callerName: callerName
    .optional()
    .describe(
      'display name of the caller, which the carrier may show on the phone. At most 80 characters. Sent in From, and in P-Asserted-Identity if the trunk sends the caller there',
    ),
  identity: identity
    .optional()
    .describe(
      'value of the `Identity` header (RFC 8224), e.g. a SHAKEN token that your signing service has issued for this call. The gateway carries it and does not sign. It replaces an `Identity` header of the trunk. At most 2,048 bytes, together with `headers` and twice `callerName`',
    ),
};

/** The caller, apart from the number. */
export type CallerDetails = {
  /** Display name. May contain any characters except control characters. */
  readonly callerName?: string;
  /** Value of the Identity header. */
  readonly identity?: string;
};

/** Copies the fields that are set. */
export function callerDetailsOf({
  callerName: name,
  identity: token,
}: {
  readonly callerName?: string | undefined;
  readonly identity?: string | undefined;
}): CallerDetails {
  return {
    ...(name === undefined ? {} : { callerName: name }),
    ...(token === undefined ? {} : { identity: token }),
  };
}
