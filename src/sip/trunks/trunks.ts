// Parses trunks.yaml, and reports each mistake with its line and field. The file never contains
// passwords, only the names of the environment variables that contain them.

import { LineCounter, parseDocument } from 'yaml';
import type { TrunkLimits } from '../../calls/dialout-ports.ts';
import type { KeyTransport } from '../../calls/keys/keys.ts';
import type { MediaEncryption, VoiceCodec } from '../../calls/media.ts';
import { describeIssues } from '../../lib/issues.ts';
import { lineOf, messageOf } from '../../lib/yaml-issues.ts';
import type { GatewayAddress } from './gateway-name.ts';
import type { RewriteRules } from './rewrite.ts';
import {
  crossFieldProblems,
  type SipEngineKind,
  type TrunkEntry,
  trunkFileSchema,
} from './trunk-schema.ts';
import { type ReadTrunkFile, readTrunkTls, type TrunkTls } from './trunk-tls.ts';

export type Gateway = GatewayAddress & {
  /** Gateways with lower numbers are tried first. */
  readonly priority: number;
  /** Share of the calls among the gateways of the same priority (RFC 2782). */
  readonly weight: number;
  /** The file names no transport, so DNS may choose one (RFC 3263, section 4.1). */
  readonly findsTransport?: true;
};

/**
 * How to probe each gateway with OPTIONS: the interval, and how many results in a row change the
 * gateway's state.
 */
export type HealthSettings = {
  readonly intervalMs: number;
  readonly failThreshold: number;
  readonly recoverThreshold: number;
};

/**
 * The time after which a session ends unless it's refreshed, and the shortest such time that we
 * agree to.
 */
export type SessionTimer = { readonly expiresS: number; readonly minS: number };

export type Trunk = {
  readonly name: string;
  readonly isDefault: boolean;
  /** Accounts that use this trunk as their default, in place of the general default. */
  readonly defaultFor: readonly string[];
  /** Accounts that may use this trunk. Default: every account. */
  readonly accounts?: readonly string[];
  readonly gateways: readonly Gateway[];
  /** Where requests go in place of the gateways' hosts, which remain the domain of their URIs. */
  readonly outboundProxy?: { readonly host: string; readonly port?: number };
  /** Host that the carrier sees in Contact. Default: the engine's own address. */
  readonly publicSipHost?: { readonly host: string; readonly port?: number };
  /** Address of this host that SIP to the carrier leaves from. Default: the engine's own. */
  readonly localAddress?: string;
  /** How to keep NAT bindings open. Default: not at all. */
  readonly keepalive?: 'crlf' | 'options';
  /**
   * SIP user of the account: in From of calls and in the registration. Default: the caller in From,
   * and the username in `auth` in the registration.
   */
  readonly user?: string;
  /** Undefined if we don't probe the gateways. */
  readonly health?: HealthSettings;
  /** Settings for REGISTER, to each gateway from each engine. Undefined if we don't register. */
  readonly register?: { readonly expiresS: number };
  readonly auth?: { readonly username: string; readonly password: string };
  /**
   * Settings for the TLS gateways. Undefined if the trunk has no such gateway, or if the SIP engine
   * is drachtio-server, which has its own settings.
   */
  readonly tls?: TrunkTls;
  /**
   * How the carrier expects telephone numbers: `+15551234567`, `15551234567` or `0015551234567`.
   */
  readonly numberFormat: 'e164' | 'digits' | 'double-zero';
  /** Prepended to the formatted number, e.g. the carrier's technical prefix. */
  readonly numberPrefix: string;
  /** Rules that take the place of `numberFormat` and `numberPrefix` where they match. */
  readonly rewrite?: RewriteRules;
  /** Session timer to request (RFC 4028), in seconds. Undefined if we request none. */
  readonly sessionTimer?: SessionTimer;
  /** Host in the From header. Default: the engine's own address. */
  readonly fromDomain?: string;
  /** P-Asserted-Identity (RFC 3325): `caller`, or one URI for all calls. */
  readonly assertedIdentity?: string;
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Headers, in lower case, that an application may set on its calls and transfers. A transfer may
   * also set harmless ones that aren't listed.
   */
  readonly passHeaders: readonly string[];
  readonly codecs: readonly VoiceCodec[];
  readonly media: MediaEncryption;
  /** How keys are sent. */
  readonly dtmf: KeyTransport;
  /** Default: unlimited. */
  readonly limits?: TrunkLimits;
};

export type TrunkDirectory = {
  readonly all: readonly Trunk[];
  readonly default: Trunk | undefined;
  get(name: string): Trunk | undefined;
  /** Returns the trunk for this account's calls that don't name a trunk. */
  defaultOf(accountId: string): Trunk | undefined;
};

/**
 * A directory whose trunks can all be replaced in one step. Note that two reads may return
 * different trunks if a replacement happens in between.
 */
export type LiveTrunks = TrunkDirectory & { replace(next: TrunkDirectory): void };

export type TrunkFile = {
  /** File name to show in messages. */
  readonly name: string;
  readonly text: string;
  /** The folder that paths in the file are relative to. Default: the current one. */
  readonly folder?: string;
};

export type TrunkSources = {
  /** Default: only the built-in trunks. */
  readonly file?: TrunkFile;
  /** Reads the named environment variables. Called once. */
  readonly secrets: (names: readonly string[]) => Readonly<Record<string, string | undefined>>;
  readonly builtIn?: readonly Trunk[];
  /** Default: `drachtio`. */
  readonly engine?: SipEngineKind;
  /** Reads a file that the trunks name, e.g. a CA's. Default: there are no such files. */
  readonly readFile?: ReadTrunkFile;
};

/** @throws Error that lists every mistake as `trunks.yaml:12: trunks[0].gateways[0].port: …` */
export function loadTrunks({
  file,
  secrets: readSecrets,
  builtIn = [],
  engine = 'drachtio',
  readFile = noFiles,
}: TrunkSources): TrunkDirectory {
  if (file === undefined) return directoryOf(builtIn);
  const { entries, problem } = parseFile(file);
  const builtInNames = builtIn.map((trunk) => trunk.name);
  const problems = crossFieldProblems(entries, { builtInNames, engine }).map(({ path, message }) =>
    problem(path, message),
  );
  const secrets = readSecrets(entries.flatMap((entry) => entry.auth?.passwordEnv ?? []));
  entries.forEach((entry, index) => {
    const variable = entry.auth?.passwordEnv;
    if (variable !== undefined && !secrets[variable]) {
      problems.push(
        problem(['trunks', index, 'auth', 'passwordEnv'], `the variable ${variable} is not set`),
      );
    }
  });
  const tls =
    engine === 'drachtio'
      ? []
      : entries.map((entry, index) => readTrunkTls(entry, index, readFile));
  for (const found of tls) {
    problems.push(...found.problems.map(({ path, message }) => problem(path, message)));
  }
  if (problems.length > 0) throw new Error(problems.join('\n'));
  const isOnly = entries.length === 1;
  const trunks = entries.map((entry, index) => ({
    ...trunkOf(entry, secrets, isOnly),
    ...(tls[index]?.tls !== undefined && { tls: tls[index].tls }),
  }));
  return directoryOf([...trunks, ...builtIn.map((trunk) => ({ ...trunk, isDefault: false }))]);
}

/**
 * Creates a trunk that isn't defined in a file, i.e. the sandbox. It's the default trunk if there
 * is no other.
 */
export function builtInTrunk(name: string, gateway: GatewayAddress): Trunk {
  return {
    name,
    isDefault: true,
    defaultFor: [],
    gateways: [{ ...gateway, priority: 1, weight: 1 }],
    numberFormat: 'digits',
    numberPrefix: '',
    headers: {},
    passHeaders: [],
    codecs: ['PCMU', 'PCMA'],
    media: 'rtp',
    dtmf: 'rtp',
  };
}

export function liveTrunks(first: TrunkDirectory): LiveTrunks {
  let current = first;
  return {
    get all() {
      return current.all;
    },
    get default() {
      return current.default;
    },
    get: (name) => current.get(name),
    defaultOf: (accountId) => current.defaultOf(accountId),
    replace: (next) => {
      current = next;
    },
  };
}

export function isOpenTo(trunk: Trunk, accountId: string): boolean {
  return trunk.accounts?.includes(accountId) ?? true;
}

function directoryOf(trunks: readonly Trunk[]): TrunkDirectory {
  const byName = new Map(trunks.map((trunk) => [trunk.name, trunk]));
  const byAccount = new Map(
    trunks.flatMap((trunk) => trunk.defaultFor.map((account) => [account, trunk] as const)),
  );
  const generalDefault = trunks.find((trunk) => trunk.isDefault);
  return Object.freeze({
    all: trunks,
    default: generalDefault,
    get: (name: string) => byName.get(name),
    defaultOf: (accountId: string) =>
      byAccount.get(accountId) ??
      (generalDefault !== undefined && isOpenTo(generalDefault, accountId)
        ? generalDefault
        : undefined),
  });
}

const noFiles: ReadTrunkFile = (path) => {
  throw new Error(`${path} does not exist`);
};

type ParsedFile = {
  readonly entries: readonly TrunkEntry[];
  readonly problem: (path: readonly PropertyKey[], message: string) => string;
};

function parseFile({ name, text }: TrunkFile): ParsedFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const yamlProblems = document.errors.map(
    (error) => `${name}:${lines.linePos(error.pos[0]).line}: ${error.message.split('\n', 1)[0]}`,
  );
  if (yamlProblems.length > 0) throw new Error(yamlProblems.join('\n'));
  const parsed = trunkFileSchema.safeParse(document.toJS({ maxAliasCount: 100 }), {
    error: describeIssues,
  });
  const problem = (path: readonly PropertyKey[], message: string) =>
    `${name}:${lineOf(document, lines, path)}: ${fieldOf(path)}: ${message}`;
  if (!parsed.success) {
    throw new Error(
      parsed.error.issues.map((issue) => problem(issue.path, messageOf(issue))).join('\n'),
    );
  }
  return { entries: parsed.data.trunks, problem };
}

function trunkOf(
  entry: TrunkEntry,
  secrets: Readonly<Record<string, string | undefined>>,
  isOnly: boolean,
): Trunk {
  const { name, auth, register, accounts, health, fromDomain, assertedIdentity } = entry;
  const { user } = entry;
  const password = auth && secrets[auth.passwordEnv];
  return {
    name,
    isDefault: entry.default || isOnly,
    defaultFor: entry.defaultFor,
    ...(accounts !== undefined && { accounts }),
    ...placesOf(entry),
    ...(user !== undefined && { user }),
    ...(health !== undefined && { health: healthOf(health) }),
    ...(auth !== undefined &&
      password !== undefined && { auth: { username: auth.username, password } }),
    ...(register !== undefined && { register }),
    numberFormat: entry.numberFormat,
    numberPrefix: entry.numberPrefix,
    ...(entry.rewrite !== undefined && { rewrite: entry.rewrite }),
    ...(entry.sessionTimer !== undefined && { sessionTimer: entry.sessionTimer }),
    ...(fromDomain !== undefined && { fromDomain }),
    ...(assertedIdentity !== undefined && { assertedIdentity }),
    headers: entry.headers,
    passHeaders: entry.passHeaders.map((name) => name.toLowerCase()),
    codecs: entry.codecs,
    media: entry.media,
    dtmf: entry.dtmf,
    ...limitsOf(entry),
  };
}

/** Returns where requests go, and where the carrier's requests come from. */
function placesOf({
  gateways,
  outboundProxy,
  publicSipHost,
  localAddress,
  keepalive,
}: TrunkEntry): Pick<
  Trunk,
  'gateways' | 'outboundProxy' | 'publicSipHost' | 'localAddress' | 'keepalive'
> {
  return {
    gateways: gateways.map(({ port, transport, ...gateway }) => ({
      ...gateway,
      ...(port !== undefined && { port }),
      transport: transport ?? 'udp',
      ...(transport === undefined && { findsTransport: true }),
    })),
    ...(outboundProxy !== undefined && { outboundProxy: placeIn(outboundProxy) }),
    ...(publicSipHost !== undefined && { publicSipHost: placeIn(publicSipHost) }),
    ...(localAddress !== undefined && { localAddress }),
    ...(keepalive !== undefined && { keepalive }),
  };
}

function placeIn({ host, port }: NonNullable<TrunkEntry['outboundProxy']>) {
  return port === undefined ? { host } : { host, port };
}

function healthOf({ intervalS, ...thresholds }: NonNullable<TrunkEntry['health']>): HealthSettings {
  return { intervalMs: intervalS * 1_000, ...thresholds };
}

function limitsOf({
  callsPerSecond,
  maxConcurrentCalls,
}: TrunkEntry): { readonly limits: TrunkLimits } | undefined {
  if (callsPerSecond === undefined && maxConcurrentCalls === undefined) return undefined;
  return {
    limits: {
      ...(callsPerSecond !== undefined && { callsPerSecond }),
      ...(maxConcurrentCalls !== undefined && { maxConcurrentCalls }),
    },
  };
}

function fieldOf(path: readonly PropertyKey[]): string {
  const text = path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('')
    .replace(/^\./, '');
  return text === '' ? 'file' : text;
}
