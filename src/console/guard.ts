// Who asks, as far as a browser can be believed: the session's cookie, where the request comes from, and the token that only the
// console's own page knows.

import { createHmac, timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { ProblemError } from '../http/problem.ts';

/** The gateway as callers know it; undefined: only on this machine. */
export type PublicUrl = string | undefined;

/** Of a request, as far as a session needs it. */
export type Asked = {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly method: string;
};

const loopbackNames = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * A name that leads here although it is not ours would make the browser believe another page to be this one (DNS rebinding).
 * @throws ProblemError
 */
export function assertHost(request: FastifyRequest, publicUrl: PublicUrl): void {
  const { host = '' } = request.headers;
  if (isOwn(host, publicUrl)) return;
  throw new ProblemError(
    'forbidden',
    'The console is served at PUBLIC_URL and on this machine, and under no other name.',
  );
}

/** Of a request that changes something. @throws ProblemError */
export function assertOrigin(request: FastifyRequest, publicUrl: PublicUrl): void {
  const { origin } = request.headers;
  const from = origin === undefined ? undefined : URL.parse(origin);
  const isSame = from?.host === request.headers.host && isOwn(from?.host ?? '', publicUrl);
  if (!isSame) throw new ProblemError('forbidden', 'The request comes from another page.');
}

/**
 * Refuses a request for data that a page of another origin makes. Ports of one host share cookies,
 * and for `SameSite` they are the same site. Browsers name the origin in Fetch Metadata: the page
 * itself is `same-origin`, an address that the user typed is `none`.
 * @throws ProblemError
 */
export function assertSite({ headers }: Pick<Asked, 'headers'>): void {
  const site = headers['sec-fetch-site'];
  if (site === undefined || site === 'same-origin' || site === 'none') return;
  throw new ProblemError('forbidden', 'The request comes from another page.');
}

/** @throws ProblemError */
export function assertPageToken(request: Pick<Asked, 'headers'>, secret: string): void {
  const given = request.headers['x-console-token'];
  const wanted = Buffer.from(pageTokenOf(secret));
  const sent = Buffer.from(typeof given === 'string' ? given : '');
  if (sent.length === wanted.length && timingSafeEqual(sent, wanted)) return;
  throw new ProblemError('forbidden', 'The request does not come from the page of the console.');
}

/** What the page sends in `x-console-token`: another page cannot know it, nor send such a header. */
export function pageTokenOf(secret: string): string {
  return createHmac('sha256', secret).update('page').digest('base64url');
}

function isOwn(host: string, publicUrl: PublicUrl): boolean {
  if (publicUrl !== undefined && host === new URL(publicUrl).host) return true;
  return isThisMachine(host.replace(/:\d{1,5}$/, ''));
}

/** `host`: without a port. */
export function isThisMachine(host: string): boolean {
  const name = host.toLowerCase();
  return loopbackNames.has(name) || (isIP(name) === 4 && name.startsWith('127.'));
}

// ── Cookie ───────────────────────────────────────────────────────────────────────────────────────────────────────────

type Header = string | readonly string[] | undefined;

export type Cookie = { readonly name: string; readonly isSecure: boolean };

/** `__Host-`: only over TLS, for this host and no other, for the whole of it (RFC 6265bis, section 4.1.3.2). */
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
