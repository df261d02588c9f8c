// Checks URL text for mistakes that `new URL` hides.

/**
 * Returns true if a host follows the scheme. With http, https, ws and wss, `new URL` doesn't notice
 * a missing host. It skips extra slashes and adds missing ones, so it reads both `http:///x` and
 * `http:x` as the host `x`.
 */
export function namesHost(text: string): boolean {
  // `new URL` ignores leading spaces.
  return /^ *[a-z][a-z\d+.-]*:\/\/[^/\\?#]/i.test(text);
}

export const hostMissing = 'must name a host after `//`';
