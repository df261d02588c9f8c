// Reads a GET request's body. Fastify itself never does, so on other routes a body is simply
// ignored. Routes whose documentation includes a GET body use `bodyOfGet`.

import type { SwaggerTransform } from '@fastify/swagger';
import type { FastifyRequest } from 'fastify';
import { jsonSchemaTransform } from 'fastify-type-provider-zod';
import type { z } from 'zod';
import { invalidBody, parseJsonBody } from './json-body.ts';
import { ProblemError } from './problem.ts';
import { validatorCompiler } from './validation.ts';

/** The body of a GET only contains a few filters. */
const maxBytes = 4_096;

/**
 * Returns options to spread into a route. They validate the body if the request has one, set
 * `request.body`, and describe the body in the OpenAPI document.
 */
export function bodyOfGet(schema: z.ZodType) {
  const check = validatorCompiler({ schema, method: 'GET', url: '', httpPart: 'body' });
  const swaggerTransform: SwaggerTransform = (document) =>
    jsonSchemaTransform({ ...document, schema: { ...document.schema, body: schema } });
  return {
    preValidation: async (request: FastifyRequest): Promise<void> => {
      const bytes = await readBytes(request);
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

async function readBytes({ raw }: FastifyRequest): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    // Drain the body even if it's oversized. Otherwise the connection couldn't be reused for the
    // next request.
    for await (const chunk of raw as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes <= maxBytes) chunks.push(chunk);
    }
  } catch (error) {
    throw invalidBody('The body did not arrive.', error);
  }
  if (bytes <= maxBytes) return Buffer.concat(chunks);
  throw new ProblemError('body-too-large', `The body of a GET is at most ${maxBytes} bytes.`);
}

function assertJson({ headers }: FastifyRequest): void {
  const isJson = /^application\/json *(;|$)/i.test(headers['content-type'] ?? '');
  if (isJson && (headers['content-encoding'] ?? 'identity').toLowerCase() === 'identity') return;
  throw new ProblemError('unsupported-media-type', 'Send application/json, not encoded.');
}
