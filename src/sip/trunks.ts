// Reads trunks.yaml. A mistake is told with the file's line and the field; a password is named by the environment
// variable that holds it and never stands in the file.

import { isIP } from 'node:net';
import { type Document, isNode, LineCounter, parseDocument } from 'yaml';
import { z } from 'zod';
import type { VoiceCodec } from '../calls/ports.ts';
import { describeIssues } from '../lib/issues.ts';

export type Gateway = {
  readonly host: string;
  /** Absent: the transport's default, 5060 or 5061. */
  readonly port?: number;
  readonly transport: 'udp' | 'tcp' | 'tls';
};

/** Held across all nodes; a field that is absent sets no bound. */
export type TrunkLimits = {
  /** INVITEs with a new Call-ID in a second. May be a fraction: 0.5 is one call in two seconds. */
  readonly callsPerSecond?: number;
  /** Calls that hold a channel of the carrier, from their INVITE until nothing of them is on the wire. */
  readonly maxConcurrentCalls?: number;
};

export type Trunk = {
  readonly name: string;
  readonly isDefault: boolean;
  readonly gateways: readonly [Gateway, ...Gateway[]];
  readonly auth?: { readonly username: string; readonly password: string };
  /** How a telephone number is written for the carrier: `+15551234567`, `15551234567` or `0015551234567`. */
  readonly numberFormat: 'e164' | 'digits' | 'double-zero';
  /** Put before the number as the carrier wants it, e.g. a technical prefix. */
  readonly numberPrefix: string;
  /** Host of the From header; absent: the engine's own address. */
  readonly fromDomain?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly codecs: readonly VoiceCodec[];
  /** Absent: unlimited. */
  readonly limits?: TrunkLimits;
};

export type TrunkDirectory = {
  readonly all: readonly Trunk[];
  readonly default: Trunk | undefined;
  get(name: string): Trunk | undefined;
};

/** What the engine or the dialog decides; a carrier's own headers go beside them. */
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

const gatewaySchema = z.strictObject({
  host,
  port: z.int().min(1).max(65_535).optional(),
  transport: z.enum(['udp', 'tcp', 'tls']).default('udp'),
});

const headersSchema = z.record(
  z
    .string()
    .regex(/^[A-Za-z0-9!%*_+`'~.-]{1,64}$/, 'must be a header name')
    .refine((name) => !reservedHeaders.has(name.toLowerCase()), 'is set by the gateway itself'),
  z
    .string()
    .max(512)
    .regex(/^[\t\x20-\x7e]*$/, 'must be printable ASCII'),
);

const trunkSchema = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, 'up to 64 letters, digits, . _ -'),
  default: z.boolean().default(false),
  // A list, so that fail-over over several can come without a change of the file's shape.
  gateways: z.tuple([gatewaySchema], 'must have exactly one gateway'),
  auth: z
    .strictObject({
      username: z.string().min(1).max(128),
      passwordEnv: z
        .string()
        .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of an environment variable'),
    })
    .optional(),
  numberFormat: z.enum(['e164', 'digits', 'double-zero']).default('e164'),
  numberPrefix: z
    .string()
    .regex(/^[0-9*#]{0,16}$/, 'digits, * and # only')
    .default(''),
  fromDomain: host.optional(),
  headers: headersSchema.default({}),
  codecs: z
    .array(z.enum(['PCMU', 'PCMA']))
    .min(1)
    .default(['PCMU', 'PCMA']),
  callsPerSecond: z.number().min(0.01).max(10_000).optional(),
  maxConcurrentCalls: z.int().min(1).max(1_000_000).optional(),
});

const fileSchema = z.strictObject({ trunks: z.array(trunkSchema).min(1).max(1_000) });

type TrunkEntry = z.infer<typeof trunkSchema>;

export type TrunkFile = {
  /** For messages. */
  readonly name: string;
  readonly text: string;
};

/**
 * @param file absent: only the built-in trunks.
 * @param secrets reads the named environment variables; called once.
 * @throws Error that lists every mistake as `trunks.yaml:12: trunks[0].gateways[0].port: …`.
 */
export function loadTrunks(options: {
  readonly file?: TrunkFile;
  readonly secrets: (names: readonly string[]) => Readonly<Record<string, string | undefined>>;
  readonly builtIn?: readonly Trunk[];
}): TrunkDirectory {
  const builtIn = options.builtIn ?? [];
  if (options.file === undefined) return directoryOf(builtIn);
  const { name, text } = options.file;
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const yamlProblems = document.errors.map(
    (error) => `${name}:${lines.linePos(error.pos[0]).line}: ${error.message.split('\n', 1)[0]}`,
  );
  if (yamlProblems.length > 0) throw new Error(yamlProblems.join('\n'));
  const parsed = fileSchema.safeParse(document.toJS({ maxAliasCount: 100 }), {
    error: describeIssues,
  });
  const problem = (path: readonly PropertyKey[], message: string) =>
    `${name}:${lineOf(document, lines, path)}: ${fieldOf(path)}: ${message}`;
  if (!parsed.success) {
    throw new Error(
      parsed.error.issues.map((issue) => problem(issue.path, messageOf(issue))).join('\n'),
    );
  }
  const entries = parsed.data.trunks;
  const problems = checkTogether(entries, builtIn, problem);
  const secrets = options.secrets(entries.flatMap((entry) => entry.auth?.passwordEnv ?? []));
  entries.forEach((entry, index) => {
    const variable = entry.auth?.passwordEnv;
    if (variable !== undefined && !secrets[variable]) {
      problems.push(
        problem(['trunks', index, 'auth', 'passwordEnv'], `the variable ${variable} is not set`),
      );
    }
  });
  if (problems.length > 0) throw new Error(problems.join('\n'));
  const isOnly = entries.length === 1;
  const trunks = entries.map((entry) => trunkOf(entry, secrets, isOnly));
  return directoryOf([...trunks, ...builtIn.map((trunk) => ({ ...trunk, isDefault: false }))]);
}

/** A trunk without a file: the sandbox. It is the default where there is no other. */
export function builtInTrunk(name: string, gateway: Gateway): Trunk {
  return {
    name,
    isDefault: true,
    gateways: [gateway],
    numberFormat: 'digits',
    numberPrefix: '',
    headers: {},
    codecs: ['PCMU', 'PCMA'],
  };
}

function directoryOf(trunks: readonly Trunk[]): TrunkDirectory {
  const byName = new Map(trunks.map((trunk) => [trunk.name, trunk]));
  return Object.freeze({
    all: trunks,
    default: trunks.find((trunk) => trunk.isDefault),
    get: (name: string) => byName.get(name),
  });
}

function checkTogether(
  entries: readonly TrunkEntry[],
  builtIn: readonly Trunk[],
  problem: (path: readonly PropertyKey[], message: string) => string,
): string[] {
  const problems: string[] = [];
  const names = new Set(builtIn.map((trunk) => trunk.name));
  entries.forEach((entry, index) => {
    if (names.has(entry.name)) {
      problems.push(
        problem(['trunks', index, 'name'], `there is another trunk named ${entry.name}`),
      );
    }
    names.add(entry.name);
  });
  const defaults = entries.flatMap((entry, index) => (entry.default ? [index] : []));
  if (entries.length > 1 && defaults.length === 0) {
    problems.push(problem(['trunks'], 'one trunk must have default: true'));
  }
  for (const index of defaults.slice(1)) {
    problems.push(problem(['trunks', index, 'default'], 'only one trunk may be the default'));
  }
  return problems;
}

function trunkOf(
  entry: TrunkEntry,
  secrets: Readonly<Record<string, string | undefined>>,
  isOnly: boolean,
): Trunk {
  const { port, ...gateway } = entry.gateways[0];
  const password = entry.auth && secrets[entry.auth.passwordEnv];
  return {
    name: entry.name,
    isDefault: entry.default || isOnly,
    gateways: [{ ...gateway, ...(port !== undefined && { port }) }],
    ...(entry.auth !== undefined &&
      password !== undefined && { auth: { username: entry.auth.username, password } }),
    numberFormat: entry.numberFormat,
    numberPrefix: entry.numberPrefix,
    ...(entry.fromDomain !== undefined && { fromDomain: entry.fromDomain }),
    headers: entry.headers,
    codecs: entry.codecs,
    ...limitsOf(entry),
  };
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

/** For a bad key zod keeps what is wrong with it one level down. */
function messageOf(issue: z.core.$ZodIssue): string {
  const [inner] = issue.code === 'invalid_key' ? issue.issues : [];
  return inner?.message ?? issue.message;
}

/** Line of the field, or of the nearest thing around it that is there. */
function lineOf(document: Document, lines: LineCounter, path: readonly PropertyKey[]): number {
  for (let length = path.length; length >= 0; length -= 1) {
    const node = document.getIn(path.slice(0, length), true);
    if (isNode(node) && node.range) return lines.linePos(node.range[0]).line;
  }
  return 1;
}

function fieldOf(path: readonly PropertyKey[]): string {
  const text = path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('')
    .replace(/^\./, '');
  return text === '' ? 'file' : text;
}
