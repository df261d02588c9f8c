// Reads the speech-to-text providers file and reports each mistake with its line and field. The
// file never contains API keys. Instead, it contains the names of environment variables with the
// keys.

import { LineCounter, parseDocument } from 'yaml';
import { z } from 'zod';
import { lineOf, messageOf } from '../../lib/yaml-issues.ts';

export type SpeechToTextProvider = {
  /** The protocol that we use with this provider. */
  readonly kind: 'deepgram' | 'websocket' | 'vosk' | 'sherpa-onnx';
  readonly url: string;
  readonly apiKey?: string;
  /** Parameters that the person who runs the gateway has set, e.g. the model. */
  readonly parameters: Readonly<Record<string, string>>;
};

/** Providers by name, i.e. by the value of `sttProvider` in a request. */
export type SpeechToTextProviders = ReadonlyMap<string, SpeechToTextProvider>;

/** The gateway derives these parameters from the call and its audio, so the file can't set them. */
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
    // The server chooses its own settings, and its protocol doesn't include any parameters.
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
 * @param secrets reads the environment variables with these names; called once
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
