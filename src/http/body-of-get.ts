// Reads the body of a GET. Fastify never reads it, so that a body does no harm on routes that do
// not expect one. A route that documents a body of its GET reads it with `bodyOfGet`.

import type { SwaggerTransform } from '@fastify/swagger';
import type { FastifyRequest } from 'fastify';
import { jsonSchemaTransform } from 'fastify-type-provider-zod';
import type { z } from 'zod';
import { invalidBody, parseJsonBody } from './json-body.ts';
import { ProblemError } from './problem.ts';
import { validatorCompiler } from './validation.ts';

/** The body of a GET has only a few filters. */
const longestBytes = 4_096;

/**
 * Returns options to be spread into a route. A body, if there is one, is checked and becomes
 * `request.body`. The OpenAPI document describes it.
 */
export function bodyOfGet(schema: z.ZodType) {
  const check = validatorCompiler({ schema, method: 'GET', url: '', httpPart: 'body' });
  const swaggerTransform: SwaggerTransform = (document) =>
    jsonSchemaTransform({ ...document, schema: { ...document.schema, body: schema } });
  return {
    preValidation: async (request: FastifyRequest): Promise<void> => {
      const bytes = await bytesOf(request);
      if (bytes.length === 0) return;
      assertJson(request);
      const result = check(parseJsonBody(bytes)) as {
        readonly value?: unknown;
        readonly error?: Error;
      };
      if (result.error !== undefined) throw result.error;
      request.body = result.value;
    },
    config: { swaggerTransform },
  };
}

async function bytesOf({ raw }: FastifyRequest): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    // Reads even a body that is too large to its end. Otherwise the connection could not be used
    // for the next request.
    for await (const chunk of raw as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes <= longestBytes) chunks.push(chunk);
    }
  } catch (error) {
    throw invalidBody('The body did not arrive.', error);
  }
  if (bytes <= longestBytes) return Buffer.concat(chunks);
  throw new ProblemError('body-too-large', `The body of a GET is at most ${longestBytes} bytes.`);
}

function assertJson({ headers }: FastifyRequest): void {
  const isJson = /^application\/json *(;|$)/i.test(headers['content-type'] ?? '');
  if (isJson && (headers['content-encoding'] ?? 'identity').toLowerCase() === 'identity') return;
  throw new ProblemError('unsupported-media-type', 'Send application/json, not encoded.');
}
