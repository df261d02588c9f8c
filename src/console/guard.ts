// Checks where a browser's requests come from. It uses the session cookie, the `Host` and `Origin`
// headers, and a token that only the console's own page knows.

import { createHmac, timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { ProblemError } from '../http/problem.ts';

/** The URL at which clients reach the gateway. Undefined if only local clients can reach it. */
export type PublicUrl = string | undefined;

/** The parts of a request that authenticate its session. */
export type RequestHead = {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly method: string;
};

const loopbackNames = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * Prevents DNS rebinding: if a foreign name resolved to the gateway, the browser would let pages
 * served under that name read the console.
 *
 * @throws ProblemError if `Host` isn't one of this gateway's names
 */
export function assertHost(request: FastifyRequest, publicUrl: PublicUrl): void {
  const { host = '' } = request.headers;
  if (isOwn(host, publicUrl)) return;
  throw new ProblemError(
    'forbidden',
    'The console is served only at PUBLIC_URL and on loopback addresses of this machine.',
  );
}

/**
 * Checks the origin of a request that would change something.
 *
 * @throws ProblemError if the request came from another site's page
 */
export function assertOrigin(request: FastifyRequest, publicUrl: PublicUrl): void {
  const { origin } = request.headers;
  const from = origin === undefined ? undefined : URL.parse(origin);
  const isSame = from?.host === request.headers.host && isOwn(from?.host ?? '', publicUrl);
  if (!isSame) throw new ProblemError('forbidden', 'The request comes from another page.');
}

/**
 * Rejects a data request from a page with a different origin. `SameSite` isn't enough, because all
 * of a host's ports count as the same site and share cookies. Browsers report the origin in Fetch
 * Metadata: `same-origin` for the page itself, `none` for an address that the user typed.
 *
 * @throws ProblemError if the request came from another origin
 */
export function assertSite({ headers }: Pick<RequestHead, 'headers'>): void {
  const site = headers['sec-fetch-site'];
  if (site === undefined || site === 'same-origin' || site === 'none') return;
  throw new ProblemError('forbidden', 'The request comes from another page.');
}

/** @throws ProblemError if the page's token is missing or wrong */
export function assertPageToken(request: Pick<RequestHead, 'headers'>, secret: string): void {
  const given = request.headers['x-console-token'];
  const wanted = Buffer.from(pageTokenOf(secret));
  const sent = Buffer.from(typeof given === 'string' ? given : '');
  if (sent.length === wanted.length && timingSafeEqual(sent, wanted)) return;
  throw new ProblemError('forbidden', 'The request does not come from the page of the console.');
}

/**
 * Returns the token that the page sends in `x-console-token`. Other pages don't know the token, and
 * browsers don't let them send this header.
 */
export function pageTokenOf(secret: string): string {
  return createHmac('sha256', secret).update('page').digest('base64url');
}

function isOwn(host: string, publicUrl: PublicUrl): boolean {
  if (publicUrl !== undefined && host === new URL(publicUrl).host) return true;
  return isThisMachine(host.replace(/:\d{1,5}$/, ''));
}

/** Returns whether a host (without a port) is a loopback name. */
export function isThisMachine(host: string): boolean {
  const name = host.toLowerCase();
  return loopbackNames.has(name) || (isIP(name) === 4 && name.startsWith('127.'));
}

// ── Cookie ────────────────────────────────────────────────────────────────────────────────────

type Header = string | readonly string[] | undefined;

export type Cookie = { readonly name: string; readonly isSecure: boolean };

/**
 * Returns the cookie to use. With the `__Host-` prefix, browsers limit the cookie to TLS, to this
 * exact host, and to the path `/` (RFC 6265bis section 4.1.3.2).
 */
export function cookieFor(publicUrl: PublicUrl, host: Header): Cookie {
  const isSecure = publicUrl?.startsWith('https:') === true && host === new URL(publicUrl).host;
  return { name: isSecure ? '__Host-offhook' : 'offhook-console', isSecure };
}

export function writeCookie({ name, isSecure }: Cookie, secret: string, maxAgeS: number): string {
  const attributes = ['Path=/', `Max-Age=${maxAgeS}`, 'HttpOnly', 'SameSite=Strict'];
  return [`${name}=${secret}`, ...attributes, ...(isSecure ? ['Secure'] : [])].join('; ');
}

export function readCookie({ name }: Cookie, header: Header): string | undefined {
  for (const part of (typeof header === 'string' ? header : '').split(';')) {
    const [key, value] = part.trim().split('=', 2);
    if (key === name && value !== undefined && /^[\w-]{43}$/.test(value)) return value;
  }
  return undefined;
}
