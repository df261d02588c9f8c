// The OpenAPI document as the contract tests read it.

import type { ApiInstance } from '../../src/http/http.ts';

export type CredentialsHeader = 'auth' | 'x-api-key';

export type Schema = { readonly [keyword: string]: unknown };

export type Parameter = {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly schema: Schema;
};

type Content = Readonly<Record<string, { readonly schema: Schema; readonly example?: unknown }>>;

export type Operation = {
  readonly operationId: string;
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  readonly path: string;
  readonly tags?: readonly string[];
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Content };
  readonly responses: Readonly<
    Record<string, { readonly description: string; readonly content?: Content }>
  >;
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
};

export type OpenApiDocument = {
  readonly openapi: string;
  readonly info: { readonly license: { readonly identifier: string } };
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Omit<Operation, 'path'>>>>>;
  readonly webhooks: Readonly<Record<string, { readonly post: Operation }>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly securitySchemes: Readonly<Record<string, { readonly name: CredentialsHeader }>>;
  };
};

export async function readDocument(server: ApiInstance): Promise<OpenApiDocument> {
  return (await server.inject('/openapi.json')).json();
}

export function allOperationsOf(document: OpenApiDocument): readonly Operation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      parameters: operation.parameters ?? [],
      method: method as Operation['method'],
      path,
    })),
  );
}

/**
 * Returns the operations in the gateway's own form. An event stream does not end, and
 * test/api/events.test.ts tests it. test/api/twilio tests the routes in Twilio's form.
 */
export function operationsOf(document: OpenApiDocument): readonly Operation[] {
  return allOperationsOf(document).filter(
    ({ responses, tags = [] }) =>
      responses['200']?.content?.['text/event-stream'] === undefined && !tags.includes('twilio'),
  );
}

/** Follows `$ref` until the target has no `$ref`. */
export function resolve(document: OpenApiDocument, schema: Schema): Schema {
  const reference = schema['$ref'];
  if (typeof reference !== 'string') return schema;
  const name = reference.replace('#/components/schemas/', '');
  const found = document.components.schemas[name];
  if (found === undefined) throw new Error(`${reference} leads nowhere`);
  return resolve(document, found);
}

/**
 * Returns all examples of a body or of one member. For a choice, it returns the examples of each
 * alternative.
 */
export function examplesOf(document: OpenApiDocument, schema: Schema = {}): readonly unknown[] {
  const { examples, anyOf, oneOf } = resolve(document, schema);
  if (Array.isArray(examples)) return examples;
  const alternatives = (anyOf ?? oneOf ?? []) as readonly Schema[];
  return alternatives.flatMap((alternative) => examplesOf(document, alternative));
}

export function bodySchemaOf(operation: Operation): Schema | undefined {
  return operation.requestBody?.content['application/json']?.schema;
}

/** Returns the content type of the body. JSON if the operation has no body. */
export function bodyTypeOf({ requestBody }: Operation): string {
  return Object.keys(requestBody?.content ?? {})[0] ?? 'application/json';
}

/**
 * The header that carries an operation's credentials.
 *
 * @returns undefined if the operation needs no credentials
 */
export function credentialsHeader(
  document: OpenApiDocument,
  operation: Operation,
): CredentialsHeader | undefined {
  const [scheme = ''] = Object.keys(operation.security?.[0] ?? {});
  return document.components.securitySchemes[scheme]?.name;
}

/** Encodes a segment of a JSON pointer in a URI fragment. */
export function pointer(...segments: readonly string[]): string {
  return segments
    .map((segment) => `/${encodeURIComponent(segment.replaceAll('~', '~0').replaceAll('/', '~1'))}`)
    .join('');
}
