// Checks the text of a URL for mistakes that `new URL` hides.

/**
 * Returns true if a host follows the scheme. For http, https, ws and wss, `new URL` hides a missing
 * host: it skips extra slashes and adds missing ones, and reads both `http:///x` and `http:x` as
 * the host `x`.
 */
export function namesHost(text: string): boolean {
  // `new URL` ignores leading spaces.
  return /^ *[a-z][a-z\d+.-]*:\/\/[^/\\?#]/i.test(text);
}

export const hostMissing = 'must name a host after `//`';
