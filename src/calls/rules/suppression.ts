// Suppressions: numbers and sip: URIs that no call of an account may reach. The types, and the
// address under which a target is suppressed.

import type { DialTarget } from '../target/dial-target.ts';

export const suppressionReasons = [
  'opt-out',
  'do-not-call',
  'invalid',
  'complaint',
  'other',
] as const;
export type SuppressionReason = (typeof suppressionReasons)[number];

export const maxSuppressionSourceLength = 64;

export type Suppression = {
  readonly reason: SuppressionReason;
  /** Where the suppression came from, in the app's words. */
  readonly source: string;
  /** The suppression ends at this time. Omitted if it doesn't end. */
  readonly until?: Date;
};

/** The app that stores suppressions, and its account. */
export type SuppressingApp = { readonly accountId: string; readonly appId: string };

/**
 * Returns the address under which a target is suppressed: `+` and the digits of its number, or
 * `sip:user@host`. The port is left out, because it does not tell people apart. So is an extension,
 * because whoever answers the number first hears it ring.
 *
 * A user part that begins with `+` and digits is that number, whatever the host, because a trunk or
 * a PBX may dial it. Escapes, separators and parameters (RFC 3966) must not hide the number.
 *
 * @returns undefined for a number that is only valid within a context (`phone-context`), which no
 *   suppression can name
 */
export function suppressedAddressOf(target: DialTarget): string | undefined {
  switch (target.kind) {
    case 'tel':
      return `+${target.number}`;
    case 'local':
      return undefined;
    case 'sip': {
      const { host } = target;
      const user = unescaped(target.user);
      return numberIn(user) ?? `sip:${user}@${host.includes(':') ? `[${host}]` : host}`;
    }
  }
}

/**
 * Returns the number that a target calls, which is also the number that its suppression names.
 *
 * @returns E.164 digits without `+`, or undefined if the target isn't a number
 */
export function calledNumberOf(target: DialTarget): string | undefined {
  const address = suppressedAddressOf(target);
  return address?.startsWith('+') === true ? address.slice(1) : undefined;
}

function numberIn(user: string): string | undefined {
  const [number = ''] = user.split(';');
  return /^\+[1-9][0-9]{2,14}$/.exec(number.replaceAll(/[-.()]/g, ''))?.[0];
}

/** RFC 3261, section 19.1.4: an escaped character equals the character itself. */
function unescaped(user: string): string {
  try {
    return decodeURIComponent(user);
  } catch {
    // The escapes are not UTF-8. Each byte then stays as it was written.
    return user;
  }
}
