// Schemas for individual environment variables.

import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { z } from 'zod';

export const port = z.coerce.number().int().min(0).max(65_535);

/** Node timers with a longer delay fire immediately. */
const maxTimerMs = 2_147_483_647;
export const timerMs = z.coerce.number().int().max(maxTimerMs);

/**
 * A list of networks. We treat an empty variable as unset, so an empty list is written as `none`.
 */
export const networks = z
  .string()
  .transform((text) =>
    text.trim() === 'none'
      ? []
      : text
          .split(',')
          .map((part) => part.trim())
          .filter((part) => part !== ''),
  )
  .pipe(
    z.array(
      z
        .string()
        .refine(
          (cidr) => ipaddr.isValidCIDR(cidr),
          'must be `none`, or CIDR networks separated by commas, e.g. 10.0.0.0/8',
        ),
    ),
  );

/** If the list could include every address, any client could pretend to have any address. */
export const trustedNetworks = networks.refine(
  (cidrs) => cidrs.every((cidr) => !cidr.endsWith('/0')),
  'must not be every address',
);

/** More servers than anybody has. c-ares asks one after the other, within one time-out. */
const maxDnsServers = 8;

/** A list of addresses, each with an optional port. */
export const dnsServers = z
  .string()
  .transform((text) => text.split(',').map((part) => part.trim()))
  .pipe(
    z
      .array(
        z
          .string()
          .refine(
            isAddressAndPort,
            'must be addresses separated by commas, each with an optional port, e.g. 10.0.0.2 or [2001:db8::2]:5353',
          ),
      )
      .min(1)
      .max(maxDnsServers),
  );

function isAddressAndPort(text: string): boolean {
  if (isIP(text) !== 0) return true;
  const [, six = '', four = '', port = ''] = /^(?:\[(.*)\]|(.*)):(\d{1,5})$/.exec(text) ?? [];
  const number = Number(port);
  return (isIP(six) === 6 || isIP(four) === 4) && number >= 1 && number <= 65_535;
}

export const drachtioUrl = z.string().transform((text, context) => {
  const servers: { host: string; port: number; secret: string }[] = [];
  for (const part of text.split(',').map((item) => item.trim())) {
    const url = URL.canParse(part) ? new URL(part) : undefined;
    if (url?.protocol !== 'tcp:' || url.hostname === '') {
      context.addIssue({
        code: 'custom',
        message: 'must be tcp://:secret@host:9022, several separated by commas',
      });
      return z.NEVER;
    }
    if (!isDecodable(url)) {
      context.addIssue({ code: 'custom', message: percentForm });
      return z.NEVER;
    }
    servers.push({
      host: url.hostname.replace(/^\[|\]$/g, ''),
      port: url.port === '' ? 9022 : Number(url.port),
      secret: decodeURIComponent(url.password),
    });
  }
  return servers;
});

const percentForm = 'must have % in its user and password written as %25';

function isDecodable({ username, password }: URL): boolean {
  try {
    decodeURIComponent(`${username} ${password}`);
    return true;
  } catch {
    return false;
  }
}

/**
 * Checks little more than the scheme. A server that is unreachable now may be started later, but
 * text that isn't an address will never work.
 */
function isAddressOf(schemes: readonly string[], text: string): boolean {
  const [, scheme = '', rest = ''] = /^([a-z]+):\/\/(.*)$/i.exec(text.trim()) ?? [];
  return schemes.includes(scheme.toLowerCase()) && rest !== '';
}

/** The modes of TLS. libpq's other modes would connect without TLS to a server that lacks it. */
const sslModes = ['disable', 'no-verify', 'require', 'verify-ca', 'verify-full'];
const hasComma = (text: string): boolean => /,|%2c/i.test(text);

/**
 * We don't parse this as a URL, because pg also accepts forms that aren't URLs, e.g.
 * `postgres://user@/database?host=/run/postgresql`.
 *
 * @returns undefined if the text can be used
 */
function postgresProblem(text: string): string | undefined {
  if (!isAddressOf(['postgres', 'postgresql'], text)) {
    return 'must be postgres://user:password@host:5432/database';
  }
  const [, authority = '', query = ''] = /^\w+:\/\/([^/?]*)[^?]*\??(.*)$/.exec(text.trim()) ?? [];
  const parameters = new URLSearchParams(query);
  const has = (name: string): boolean => parameters.has(name);
  const hosts = authority.slice(authority.lastIndexOf('@') + 1);
  // pg would take the list for a single name.
  if ([hosts, ...parameters.getAll('host'), ...parameters.getAll('port')].some(hasComma)) {
    return 'names several hosts. Name one that always leads to the primary: a single host name, the service of Patroni or CloudNativePG, or HAProxy with a check for the primary (sip-config/haproxy-postgres.cfg)';
  }
  if (has('sslmode') && !sslModes.includes(parameters.get('sslmode') ?? '')) {
    return `sslmode must be ${sslModes.slice(0, -1).join(', ')} or ${sslModes.at(-1) ?? ''}`;
  }
  if (has('uselibpqcompat')) return 'uselibpqcompat has no effect: see sslmode';
  if (has('sslcert') !== has('sslkey')) return 'sslcert and sslkey need each other';
  return undefined;
}

export const postgresUrl = z.string().superRefine((text, context) => {
  const message = postgresProblem(text);
  if (message !== undefined) context.addIssue({ code: 'custom', message });
});

export const natsUrl = z
  .string()
  .refine(
    (text) =>
      text
        .split(',')
        .every((part) => isAddressOf(['nats', 'tls'], part) && URL.canParse(part.trim())),
    'must be nats://user:password@host:4222, several separated by commas',
  )
  .refine(
    (text) =>
      text
        .split(',')
        .every((part) => !URL.canParse(part.trim()) || isDecodable(new URL(part.trim()))),
    percentForm,
  );
