// Checks URL text for mistakes that `new URL` hides.

/**
 * Returns true if a host follows the scheme. With http, https, ws and wss, `new URL` doesn't notice
 * a missing host, because it skips extra slashes and adds missing slashes. As a result, the host is
 * `x` for both `http:///x` and `http:x`.
 */
export function namesHost(text: string): boolean {
  // `new URL` ignores leading spaces.
  return /^ *[a-z][a-z\d+.-]*:\/\/[^/\\?#]/i.test(text);
}

export const hostMissing = 'must name a host after `//`';
