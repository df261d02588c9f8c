// Reads the speech-to-text providers file and reports each mistake with its line and field. The
// file never contains API keys, only the names of the environment variables that hold them.

import { LineCounter, parseDocument } from 'yaml';
import { z } from 'zod';
import { lineOf, messageOf } from '../../lib/yaml-issues.ts';

export type SpeechToTextProvider = {
  /** The protocol that the provider speaks. */
  readonly kind: 'deepgram' | 'websocket' | 'vosk' | 'sherpa-onnx';
  readonly url: string;
  readonly apiKey?: string;
  /** The operator's own parameters, e.g. the model. */
  readonly parameters: Readonly<Record<string, string>>;
};

/** Providers by name, i.e. a request's `sttProvider`. */
export type SpeechToTextProviders = ReadonlyMap<string, SpeechToTextProvider>;

/** The gateway sets these parameters from the call and its audio. */
const reservedParameters = [
  'encoding',
  'sample_rate',
  'channels',
  'multichannel',
  'language',
  'interim_results',
  'endpointing',
  'utterance_end_ms',
  'callback',
];

const parameters = z
  .record(
    z
      .string()
      .regex(/^[A-Za-z0-9_.-]{1,64}$/, 'must be a parameter name')
      .refine((name) => !reservedParameters.includes(name), 'is set by the gateway itself'),
    z.union([z.string().max(512), z.number(), z.boolean()]).transform(String),
  )
  .default({});

const url = z.string().transform((text, context) => {
  const parsed = URL.canParse(text) ? new URL(text) : undefined;
  if (parsed?.protocol !== 'wss:' && parsed?.protocol !== 'ws:') {
    context.addIssue({ code: 'custom', message: 'must be a ws or wss URL' });
    return z.NEVER;
  }
  if (parsed.username !== '' || parsed.password !== '' || parsed.hash !== '') {
    context.addIssue({ code: 'custom', message: 'must not hold a user, a password or a fragment' });
    return z.NEVER;
  }
  return parsed.href;
});

const apiKeyEnv = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of an environment variable')
  .optional();

const providerSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('deepgram'),
    url: url.default('wss://api.deepgram.com/v1/listen'),
    apiKeyEnv,
    parameters,
  }),
  z.strictObject({ kind: z.literal('websocket'), url, apiKeyEnv, parameters }),
  z.strictObject({ kind: z.literal('vosk'), url, apiKeyEnv, parameters }),
  z.strictObject({
    kind: z.literal('sherpa-onnx'),
    url,
    apiKeyEnv,
    // The server decides everything, and its protocol doesn't have a place for parameters.
    parameters: z.strictObject({}).default({}),
  }),
]);

const fileSchema = z.strictObject({
  providers: z.record(
    z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, 'up to 64 letters, digits, . _ -'),
    providerSchema,
  ),
});

/**
 * Parses and validates the file.
 * @param secrets reads the named environment variables; called once
 * @throws Error that lists every mistake as `stt-providers.yaml:3: providers.acme.url: …`
 */
export function loadProviders(
  file: { readonly name: string; readonly text: string },
  secrets: (names: readonly string[]) => Readonly<Record<string, string | undefined>>,
): SpeechToTextProviders {
  const lines = new LineCounter();
  const document = parseDocument(file.text, { lineCounter: lines });
  const at = (line: number, message: string) => `${file.name}:${line}: ${message}`;
  const problem = (path: readonly PropertyKey[], message: string) =>
    at(lineOf(document, lines, path), `${path.map(String).join('.') || 'file'}: ${message}`);
  refuse(
    document.errors.map((error) =>
      at(lines.linePos(error.pos[0]).line, error.message.split('\n', 1)[0] ?? 'cannot be read'),
    ),
  );
  const parsed = fileSchema.safeParse(document.toJS({ maxAliasCount: 100 }));
  if (!parsed.success) {
    return refuse(parsed.error.issues.map((issue) => problem(issue.path, messageOf(issue))));
  }
  const entries = Object.entries(parsed.data.providers);
  const keys = secrets(entries.flatMap(([, { apiKeyEnv: variable }]) => variable ?? []));
  refuse(
    entries.flatMap(([name, { apiKeyEnv: variable }]) =>
      variable === undefined || keys[variable]
        ? []
        : [problem(['providers', name, 'apiKeyEnv'], `the variable ${variable} is not set`)],
    ),
  );
  return new Map(
    entries.map(([name, { apiKeyEnv: variable, ...provider }]) => {
      const apiKey = variable === undefined ? undefined : keys[variable];
      return [name, { ...provider, ...(apiKey === undefined ? {} : { apiKey }) }];
    }),
  );
}

function refuse(problems: readonly string[]): SpeechToTextProviders {
  if (problems.length > 0) throw new Error(problems.join('\n'));
  return new Map();
}
