// The form of an OpenAPI 3.1 document as a JSON Schema, as far as the gateway's document needs it:
// the objects of the OpenAPI Specification 3.1.1, section 4.8, with their required fields, closed
// except for `x-` extensions. Schema Objects are JSON Schema 2020-12 and are checked as such.

const text = { type: 'string', minLength: 1 } as const;
const flag = { type: 'boolean' } as const;
const texts = { type: 'array', items: text, uniqueItems: true } as const;
const schema = { type: ['object', 'boolean'] } as const;
const ref = (name: string) => ({ $ref: `#/$defs/${name}` });
const mapOf = (value: object) => ({ type: 'object', additionalProperties: value });

function object(
  required: Record<string, object>,
  optional: Record<string, object | true> = {},
): object {
  return {
    type: 'object',
    required: Object.keys(required),
    properties: { ...required, ...optional },
    patternProperties: { '^x-': true },
    additionalProperties: false,
  };
}

const operation = object(
  {
    operationId: { type: 'string', pattern: '^[A-Za-z]\\w*$' },
    summary: text,
    responses: ref('responses'),
  },
  {
    description: text,
    tags: texts,
    parameters: { type: 'array', items: ref('parameter') },
    requestBody: ref('requestBody'),
    security: { type: 'array', items: mapOf(texts) },
    deprecated: flag,
  },
);

export const openApiShape = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  ...object(
    {
      openapi: { const: '3.1.0' },
      info: ref('info'),
      paths: {
        type: 'object',
        patternProperties: { '^/': ref('pathItem') },
        additionalProperties: false,
      },
    },
    {
      webhooks: mapOf(ref('pathItem')),
      components: object(
        {},
        { schemas: mapOf(schema), securitySchemes: mapOf(ref('securityScheme')) },
      ),
      servers: { type: 'array', items: object({ url: text }, { description: text }) },
      tags: {
        type: 'array',
        items: object({ name: text }, { description: text }),
        uniqueItems: true,
      },
    },
  ),
  $defs: {
    info: object(
      {
        title: text,
        version: text,
        license: object({ name: text }, { identifier: text, url: text }),
      },
      { description: text, summary: text },
    ),
    pathItem: object(
      {},
      {
        get: operation,
        put: operation,
        post: operation,
        delete: operation,
        patch: operation,
        head: operation,
        options: operation,
      },
    ),
    parameter: {
      ...object(
        { name: text, in: { enum: ['query', 'header', 'path'] }, schema },
        {
          description: text,
          required: flag,
          deprecated: flag,
          style: text,
          explode: flag,
          example: true,
          examples: mapOf(object({}, { value: true, summary: text })),
        },
      ),
      if: { properties: { in: { const: 'path' } } },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { required: ['required'], properties: { required: { const: true } } },
    },
    requestBody: object({ content: ref('content') }, { description: text, required: flag }),
    responses: {
      type: 'object',
      minProperties: 1,
      patternProperties: { '^([1-5](?:\\d\\d|XX)|default)$': ref('response') },
      additionalProperties: false,
    },
    response: object(
      { description: text },
      { headers: mapOf(ref('header')), content: ref('content') },
    ),
    header: object({ schema }, { description: text, required: flag }),
    content: {
      type: 'object',
      minProperties: 1,
      propertyNames: { pattern: '^[a-z]+/[a-z0-9.+-]+$' },
      additionalProperties: object(
        { schema },
        { example: true, examples: mapOf(object({}, { value: true, summary: text })) },
      ),
    },
    securityScheme: {
      oneOf: [
        object(
          { type: { const: 'apiKey' }, name: text, in: { enum: ['header', 'query', 'cookie'] } },
          { description: text },
        ),
        object({ type: { const: 'http' }, scheme: { const: 'basic' } }, { description: text }),
      ],
    },
  },
};
