// Defines the fields in trunks.yaml, and the rules that involve several of them.

import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { z } from 'zod';
import { headerName, isReservedHeader, maxAddedBytes } from '../../calls/caller/added-headers.ts';
import { mediaEncryptions } from '../../calls/media.ts';
import { gatewayName } from './gateway-name.ts';
import { rewriteSchema } from './rewrite.ts';

/** Headers that the engine or the dialog sets. A trunk may add any other header. */
const reservedHeaders = new Set([
  'via',
  'from',
  'to',
  'call-id',
  'cseq',
  'contact',
  'max-forwards',
  'route',
  'record-route',
  'content-type',
  'content-length',
  'authorization',
  'proxy-authorization',
  'require',
  'supported',
  'allow',
]);

const host = z
  .string()
  .refine(
    (text) => isIP(text) !== 0 || /^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/.test(text),
    'must be a host name or an IP address',
  );

/** The longest path that Linux accepts. */
const filePath = z.string().min(1).max(4_096);

/** Parses `host[:port]`, with an IPv6 address in brackets if there is a port. */
const hostPort = z.string().transform((text, context) => {
  const [, bracketed, plain, port] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const parsed = z
    .object({ host, port: z.coerce.number().int().min(1).max(65_535).optional() })
    .safeParse({ host: isIP(text) === 6 ? text : (bracketed ?? plain), port });
  const isBracketedName = bracketed !== undefined && isIP(bracketed) !== 6;
  if (parsed.success && !isBracketedName) return parsed.data;
  context.addIssue({ code: 'custom', message: 'must be host or host:port' });
  return z.NEVER;
});

const accountId = z.string().min(1).max(128);

const gatewaySchema = z.strictObject({
  host,
  port: z.int().min(1).max(65_535).optional(),
  // Without a transport, DNS may choose one (NAPTR, SRV). Otherwise it's UDP.
  transport: z.enum(['udp', 'tcp', 'tls']).optional(),
  priority: z.int().min(0).max(65_535).default(1),
  weight: z.int().min(0).max(65_535).default(1),
});

const headersSchema = z.record(
  z
    .string()
    .regex(/^[A-Za-z0-9!%*_+`'~.-]{1,64}$/, 'must be a header name')
    .refine((name) => !reservedHeaders.has(name.toLowerCase()), 'is set by the gateway itself'),
  z
    .string()
    // Long enough for an Identity header, and far below the size of a control frame.
    .max(maxAddedBytes)
    .regex(/^[\t\x20-\x7e]*$/, 'must be printable ASCII'),
);

const healthSchema = z.strictObject({
  intervalS: z.int().min(1).max(3_600).default(30),
  failThreshold: z.int().min(1).max(100).default(3),
  recoverThreshold: z.int().min(1).max(100).default(2),
});

/** RFC 4028, section 5, requires at least 90 s. */
const sessionSeconds = z.int().min(90).max(86_400);

const sessionTimerSchema = z.strictObject({
  expiresS: sessionSeconds.default(1_800),
  minS: sessionSeconds.default(90),
});

const trunkSchema = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, 'up to 64 letters, digits, . _ -'),
  default: z.boolean().default(false),
  defaultFor: z.array(accountId).max(10_000).default([]),
  accounts: z.array(accountId).min(1).max(10_000).optional(),
  // A call tries each gateway once, within its ring time-out. In practice, it never gets past a
  // handful.
  gateways: z.array(gatewaySchema).min(1).max(16),
  health: healthSchema.optional(),
  auth: z
    .strictObject({
      username: z.string().min(1).max(128),
      passwordEnv: z
        .string()
        .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of an environment variable'),
    })
    .optional(),
  tls: z
    .strictObject({
      caFile: filePath.optional(),
      certFile: filePath.optional(),
      keyFile: filePath.optional(),
      serverName: host.optional(),
    })
    .optional(),
  outboundProxy: hostPort.optional(),
  publicSipHost: hostPort.optional(),
  localAddress: z
    .string()
    .refine((text) => isIP(text) !== 0, 'must be an IP address')
    .optional(),
  keepalive: z.enum(['crlf', 'options']).optional(),
  user: z
    .string()
    .min(1)
    .max(128)
    .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces')
    .optional(),
  register: z.strictObject({ expiresS: z.int().min(60).max(86_400).default(3_600) }).optional(),
  numberFormat: z.enum(['e164', 'digits', 'double-zero']).default('e164'),
  numberPrefix: z
    .string()
    .regex(/^[0-9*#]{0,16}$/, 'digits, * and # only')
    .default(''),
  rewrite: rewriteSchema.optional(),
  fromDomain: host.optional(),
  assertedIdentity: z
    .string()
    .max(256)
    .regex(
      /^(caller|tel:\+?[0-9]{1,20}|sip:[A-Za-z0-9\-_.!~*'()&=+$,;?/%]+@[A-Za-z0-9.:[\]-]+)$/,
      'must be `caller`, or a sip: or tel: URI',
    )
    .optional(),
  sessionTimer: sessionTimerSchema.optional(),
  headers: headersSchema.default({}),
  passHeaders: z
    .array(
      z
        .string()
        .regex(headerName, 'must be a header name')
        .refine((name) => !isReservedHeader(name), 'is set by the gateway itself'),
    )
    .max(64)
    .default([]),
  codecs: z
    .array(z.enum(['PCMU', 'PCMA']))
    .min(1)
    .default(['PCMU', 'PCMA']),
  media: z.enum(mediaEncryptions).default('rtp'),
  dtmf: z.enum(['rtp', 'info']).default('rtp'),
  callsPerSecond: z.number().min(0.01).max(10_000).optional(),
  maxConcurrentCalls: z.int().min(1).max(1_000_000).optional(),
});

export const trunkFileSchema = z.strictObject({ trunks: z.array(trunkSchema).min(1).max(1_000) });

export type TrunkEntry = z.output<typeof trunkSchema>;

export type Problem = { readonly path: readonly PropertyKey[]; readonly message: string };

/** Some options are for one kind of SIP engine only. */
export type SipEngineKind = 'embedded' | 'drachtio';

export type Surroundings = {
  /** Names of trunks that exist without a file. The file must not repeat them. */
  readonly builtInNames: readonly string[];
  readonly engine: SipEngineKind;
};

/** Returns all mistakes that involve several fields or trunks. */
export function crossFieldProblems(
  entries: readonly TrunkEntry[],
  surroundings: Surroundings,
): readonly Problem[] {
  return [
    ...nameProblems(entries, surroundings.builtInNames),
    ...defaultProblems(entries),
    ...entries.flatMap((entry, index) => [
      ...gatewayProblems(entry, index),
      ...tlsProblems(entry, index, surroundings.engine),
      ...keepAliveProblems(entry, index, surroundings.engine),
      ...localAddressProblems(entry, index, surroundings.engine),
      ...identityProblems(entry, index),
      ...registrationProblems(entry, index),
      ...mediaProblems(entry, index),
      ...sessionTimerProblems(entry, index),
    ]),
  ];
}

function nameProblems(
  entries: readonly TrunkEntry[],
  builtInNames: readonly string[],
): readonly Problem[] {
  const names = new Set(builtInNames);
  return entries.flatMap(({ name }, index) => {
    const isTaken = names.has(name);
    names.add(name);
    return isTaken
      ? [{ path: ['trunks', index, 'name'], message: `there is another trunk named ${name}` }]
      : [];
  });
}

function defaultProblems(entries: readonly TrunkEntry[]): readonly Problem[] {
  const problems: Problem[] = [];
  const defaults = entries.flatMap((entry, index) => (entry.default ? [index] : []));
  const hasNoDefault = entries.every((entry) => !entry.default && entry.defaultFor.length === 0);
  if (entries.length > 1 && hasNoDefault) {
    problems.push({ path: ['trunks'], message: 'one trunk must have default: true' });
  }
  for (const index of defaults.slice(1)) {
    const message = 'only one trunk may be the default';
    problems.push({ path: ['trunks', index, 'default'], message });
  }
  const taken = new Set<string>();
  entries.forEach((entry, index) => {
    entry.defaultFor.forEach((account, at) => {
      const path = ['trunks', index, 'defaultFor', at];
      if (taken.has(account)) {
        problems.push({ path, message: `the account ${account} already has a default trunk` });
      }
      taken.add(account);
      if (entry.accounts?.includes(account) === false) {
        problems.push({ path, message: `the account ${account} is not among its accounts` });
      }
    });
  });
  return problems;
}

function gatewayProblems({ gateways }: TrunkEntry, index: number): readonly Problem[] {
  const seen = new Set<string>();
  return gateways.flatMap((gateway, at) => {
    const path = ['trunks', index, 'gateways', at];
    const { transport = 'udp' } = gateway;
    const isRepeated = seen.has(gatewayName({ ...gateway, transport }));
    seen.add(gatewayName({ ...gateway, transport }));
    return isRepeated ? [{ path, message: 'the list contains this gateway twice' }] : [];
  });
}

function tlsProblems(
  { tls, gateways }: TrunkEntry,
  index: number,
  engine: SipEngineKind,
): readonly Problem[] {
  if (tls === undefined) return [];
  const path = ['trunks', index, 'tls'];
  if (engine === 'drachtio') {
    const message =
      'is for the embedded SIP engine. drachtio-server (DRACHTIO_URL) has its own settings: ' +
      '<tls> in drachtio.conf.xml, or --key-file, --cert-file and --chain-file';
    return [{ path, message }];
  }
  // Without a transport, DNS may choose TLS.
  if (gateways.every(({ transport }) => transport === 'udp' || transport === 'tcp')) {
    return [{ path, message: 'needs a gateway with transport: tls' }];
  }
  if (tls.certFile !== undefined && tls.keyFile === undefined) {
    return [{ path: [...path, 'certFile'], message: 'needs keyFile, its private key' }];
  }
  if (tls.keyFile !== undefined && tls.certFile === undefined) {
    return [{ path: [...path, 'keyFile'], message: 'needs certFile, the certificate of this key' }];
  }
  return [];
}

function localAddressProblems(
  { localAddress }: TrunkEntry,
  index: number,
  engine: SipEngineKind,
): readonly Problem[] {
  if (localAddress === undefined) return [];
  const path = ['trunks', index, 'localAddress'];
  if (engine === 'drachtio') {
    const message =
      'is for the embedded SIP engine. drachtio-server (DRACHTIO_URL) chooses among its own ' +
      "<contact> elements, by the carrier's address and their local-net";
    return [{ path, message }];
  }
  return isOwnAddress(localAddress)
    ? []
    : [{ path, message: `${localAddress} is not an address of this host` }];
}

/** All of 127.0.0.0/8 is loopback, although only one of its addresses is listed. */
function isOwnAddress(address: string): boolean {
  const own = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
  return address.startsWith('127.') || own.some((entry) => entry.address === address);
}

function keepAliveProblems(
  { keepalive, gateways }: TrunkEntry,
  index: number,
  engine: SipEngineKind,
): readonly Problem[] {
  if (keepalive !== 'crlf') return [];
  const path = ['trunks', index, 'keepalive'];
  if (engine === 'drachtio') {
    const message =
      'crlf is for the embedded SIP engine, because drachtio-server (DRACHTIO_URL) sends no CRLFs ' +
      'to carriers. Use options';
    return [{ path, message }];
  }
  return gateways.every(({ transport }) => transport === 'tcp' || transport === 'tls')
    ? []
    : [
        {
          path,
          message: 'crlf needs transport: tcp or tls at each gateway. Over UDP, use options',
        },
      ];
}

function registrationProblems({ register, auth }: TrunkEntry, index: number): readonly Problem[] {
  return register !== undefined && auth === undefined
    ? [
        {
          path: ['trunks', index, 'register'],
          message: 'needs auth: the gateway registers its username',
        },
      ]
    : [];
}

function sessionTimerProblems(
  { sessionTimer, headers }: TrunkEntry,
  index: number,
): readonly Problem[] {
  if (sessionTimer === undefined) return [];
  const path = ['trunks', index];
  const named = Object.keys(headers).filter((name) => /^(session-expires|min-se)$/i.test(name));
  return [
    ...(sessionTimer.minS > sessionTimer.expiresS
      ? [{ path: [...path, 'sessionTimer', 'minS'], message: 'must not be more than expiresS' }]
      : []),
    ...named.map((name) => ({
      path: [...path, 'headers', name],
      message: 'is set by sessionTimer',
    })),
  ];
}

/** The SDP contains the keys, so without TLS anybody on the path could read them. */
function mediaProblems({ media, gateways }: TrunkEntry, index: number): readonly Problem[] {
  const isSafe = media === 'rtp' || gateways.every(({ transport }) => transport === 'tls');
  return isSafe
    ? []
    : [
        {
          path: ['trunks', index, 'media'],
          message: `${media} needs transport: tls in every gateway, because the SIP messages contain the keys`,
        },
      ];
}

function identityProblems(
  { assertedIdentity, headers }: TrunkEntry,
  index: number,
): readonly Problem[] {
  if (assertedIdentity === undefined) return [];
  const name = Object.keys(headers).find((key) => key.toLowerCase() === 'p-asserted-identity');
  return name === undefined
    ? []
    : [{ path: ['trunks', index, 'headers', name], message: 'is set by assertedIdentity' }];
}
