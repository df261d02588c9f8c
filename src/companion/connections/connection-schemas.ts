// Schemas for connections in requests and responses. Fields are required if the specification says
// so. We reject unknown fields by name, because otherwise we might silently drop a setting or store
// a secret unencrypted.

import { z } from 'zod';
import { timestamp } from '../../calls/contract/timestamp.ts';
import { jsonProblem } from '../../http/stored-json.ts';
import { boundedArray } from '../../http/validation.ts';
import { identifier } from '../../lib/ids.ts';
import { apiFormProblems } from './api-forms.ts';
import { newConnectionExamples } from './connection-examples.ts';
import { isMask } from './connection-secrets.ts';

export const statuses = ['ACTIVE', 'INACTIVE'] as const;
const providers = ['API', 'VendorA AI', 'HostedVendorA AI', 'VendorB'] as const;
export type Provider = (typeof providers)[number];

// ── Values ──────────────────────────────────────────────────────────────────────────────────

const line = (maxLength: number) =>
  z
    .string()
    .min(1)
    .max(maxLength)
    .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'must be text without control characters');

/** Secrets are sent in HTTP headers, so only visible ASCII is allowed. */
const secret = z
  .string()
  .min(1)
  .max(4_096)
  .regex(/^[\x21-\x7e]*$/, 'must be visible ASCII characters')
  // If a client sends a response's contents back to us, don't store the mask as the key.
  .refine((text) => !isMask(text), 'must be the secret itself, not its mask')
  .meta({ examples: ['sk-0123456789'] });

const url = z
  .string()
  .max(2_048)
  .refine(isPlainHttpUrl, 'must be an http or https URL without user, password or white space')
  .meta({ examples: ['https://models.example.com/v1'] });

function isPlainHttpUrl(text: string): boolean {
  if (!/^https?:\/\/[^\p{C}\p{Z}]+$/iu.test(text) || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username === '' && password === '';
}

const storable = (maxBytes: number) => (value: unknown, context: z.RefinementCtx) => {
  const problem = jsonProblem(value, maxBytes);
  if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
};

const header = z.strictObject({
  key: z.string().regex(/^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/, 'must be a header name'),
  value: z
    .string()
    .max(4_096)
    .regex(/^[\t\x20-\x7e]*$/, 'must be printable ASCII'),
});

const promptVariable = z.strictObject({
  name: line(128),
  displayName: line(256),
  status: z.boolean(),
  dataType: line(64),
  elementType: line(64).describe('for example a text box'),
  defaultValue: z.string().max(8_192).superRefine(storable(32_768)),
  required: z.boolean(),
  examples: z.boolean().exactOptional(),
});

const mappings = z.enum(['textToText', 'textToImage', 'imageToText', 'audioToText']);
const mappedProvider = z.enum(['vendorBModel', 'vendorCModel', 'vendorAModel']);

// ── Bodies ──────────────────────────────────────────────────────────────────────────────────

const connectionName = line(256).describe('display name');
const model = line(256);
const easyIntegration = z.literal('EASY_INTEGRATION');

const vendorA = z.strictObject({
  provider: z.literal('VendorA AI'),
  connectionName,
  model,
  modelType: easyIntegration.exactOptional(),
  fields: z.strictObject({ API_KEY: secret }),
});

const vendorB = vendorA.extend({ provider: z.literal('VendorB'), modelType: easyIntegration });

const hostedVendorA = vendorB.extend({
  provider: z.literal('HostedVendorA AI'),
  fields: z.strictObject({
    API_KEY: secret,
    api_version: line(64),
    your_resource_name: line(256),
    deployment_id: line(256),
  }),
});

const custom = 'custom-provider form only';
const existing = 'existing-provider form only';
const eitherPlace = 'required, either here or in `fields`';

const api = z
  .strictObject({
    provider: z.literal('API'),
    connectionName,
    model: model.exactOptional().describe('default: `fields.MODEL_NAME`'),
    modelType: easyIntegration.exactOptional(),
    fields: z.strictObject({
      BASE_URL: url,
      API_KEY: secret,
      MODEL_NAME: line(256),
      IOMapping: mappings
        .exactOptional()
        .describe(
          `${existing}; required there, either here or as \`IOMappings\` beside \`fields\``,
        ),
      mapProvider: mappedProvider
        .exactOptional()
        .describe(`${existing}; required there, either here or beside \`fields\``),
      LLM_API_URL: url.exactOptional(),
      LLM_API_KEY: secret.exactOptional(),
    }),
    LLM_API_URL: url.exactOptional().describe(eitherPlace),
    LLM_API_KEY: secret.exactOptional().describe(eitherPlace),
    endpointUrl: url.exactOptional().describe('model endpoint'),
    headers: boundedArray(header, 32)
      .exactOptional()
      .describe('sent to the model endpoint; their values are protected like keys'),
    status: z.literal('FINALIZED').exactOptional(),
    isEnable: z
      .boolean()
      .exactOptional()
      .describe('if false, the connection is `INACTIVE`; default: true'),
    promptVars: boundedArray(promptVariable, 100).exactOptional().describe(custom),
    customVars: boundedArray(z.unknown(), 100)
      .superRefine(storable(16_384))
      .exactOptional()
      .describe(custom),
    payload: z
      .record(z.string(), z.unknown())
      .superRefine(storable(65_536))
      .exactOptional()
      .describe(`template of the request body; ${custom}`),
    outputPath: line(512).exactOptional().describe(`path to the answer; ${custom}`),
    inputTokensPath: line(512).exactOptional().describe(`path to the input token count; ${custom}`),
    outputTokensPath: line(512)
      .exactOptional()
      .describe(`path to the output token count; ${custom}`),
    idp: z.literal('none').exactOptional().describe(existing),
    bodyTab: z.literal('providerReferences').exactOptional().describe(existing),
    mapProvider: mappedProvider
      .exactOptional()
      .describe(`must equal the one in \`fields\`, if that is present; ${existing}`),
    llmFeatures: z
      .strictObject({
        toolCalling: z.boolean().exactOptional(),
        supportTools: z.boolean().exactOptional(),
        parallelToolCalling: z.boolean().exactOptional(),
        structuredResponse: z.boolean().exactOptional(),
        dataGeneration: z.boolean().exactOptional(),
        streaming: z.boolean().exactOptional(),
      })
      .exactOptional()
      .describe(existing),
    IOMappings: boundedArray(mappings, 4)
      .exactOptional()
      .describe(`must include the one in \`fields\`, if that is present; ${existing}`),
  })
  .superRefine((body, context) => {
    for (const { path, message } of apiFormProblems(body)) {
      context.addIssue({ code: 'custom', path: [...path], message });
    }
  });

export const newConnection = z
  .discriminatedUnion('provider', [vendorA, hostedVendorA, vendorB, api], {
    error: ({ code }) =>
      code === 'invalid_union' ? `must be one of ${providers.join(', ')}` : undefined,
  })
  .meta({ id: 'NewConnection', examples: newConnectionExamples });
export type NewConnection = z.output<typeof newConnection>;

export const connectionUpdate = z
  .strictObject({ fields: z.strictObject({ API_KEY: secret }) })
  .meta({ id: 'ConnectionUpdate', examples: [{ fields: { API_KEY: 'sk-9876543210' } }] });

/** Strict, because an unknown filter would silently list everything. */
export const connectionFilter = z.strictObject({
  provider: z.enum(providers).exactOptional(),
  status: z.enum(statuses).exactOptional(),
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(1_000)
    .default(100)
    .describe('maximum number of connections'),
});
export type ConnectionFilter = z.output<typeof connectionFilter>;

export const connectionIdPattern = /^cn-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const connectionId = z
  .string()
  .describe('`cn-<uuid>`')
  .meta({ examples: ['cn-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10'] });
export const connectionParams = z.object({ connectionId: identifier.describe('`cn-<uuid>`') });

// ── Responses ──────────────────────────────────────────────────────────────────────────────────

const example = {
  connectionId: 'cn-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10',
  connectionName: 'Summaries',
  provider: 'VendorA AI' as const,
  model: 'large-2',
  status: 'ACTIVE' as const,
  fields: { API_KEY: 's************9' },
};
const examples = {
  created: { ...example, createdOn: '2026-11-20T09:30:00.000Z' },
  updated: { ...example, modifiedOn: '2026-11-20T09:30:00.000Z' },
};

const { fields: _, ...listed } = { ...examples.created, ...examples.updated };

const whole = z.object({
  connectionId,
  connectionName: z.string(),
  provider: z.enum(providers),
  model: z.string(),
  status: z.enum(statuses),
  fields: z
    .record(z.string(), z.string())
    .describe(
      'as they were sent; secrets are masked except for the first and last character, and short secrets are masked completely',
    ),
  createdOn: timestamp,
  modifiedOn: timestamp,
});

export const connection = whole.meta({
  id: 'Connection',
  examples: [{ ...examples.created, ...examples.updated }],
});
export type Connection = z.output<typeof connection>;

export const createdConnection = whole
  .omit({ modifiedOn: true })
  .meta({ id: 'CreatedConnection', examples: [examples.created] });

export const updatedConnection = whole
  .omit({ createdOn: true })
  .meta({ id: 'UpdatedConnection', examples: [examples.updated] });

export const deletedConnection = z
  .object({ connectionId })
  .meta({ id: 'DeletedConnection', examples: [{ connectionId: example.connectionId }] });

export const connectionList = z
  .object({
    connections: z.array(whole.omit({ fields: true })).describe('newest first'),
    total: z.int().describe('number of matching connections, regardless of `limit`'),
  })
  .meta({ id: 'ConnectionList', examples: [{ connections: [listed], total: 1 }] });
export type ConnectionList = z.output<typeof connectionList>;
