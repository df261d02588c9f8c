// The one kind of GET that has a body. fastify never reads the body of a GET, which is right for all others: what a client
// sends along there does no harm. A route that documents one reads it with this.

import type { SwaggerTransform } from '@fastify/swagger';
import type { FastifyRequest } from 'fastify';
import { jsonSchemaTransform } from 'fastify-type-provider-zod';
import type { z } from 'zod';
import { invalidBody, parseJsonBody } from './json-body.ts';
import { ProblemError } from './problem.ts';
import { validatorCompiler } from './validation.ts';

/** Such a body is a handful of filters. */
const longestBytes = 4_096;

/**
 * To be spread into a route: the body, where there is one, is checked and becomes `request.body`, and the OpenAPI
 * document says so.
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
    // To its end also where it is too large: the connection is good for the next request only then.
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
