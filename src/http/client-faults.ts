// Handles requests that fail because of the client, e.g. because the body arrives too slowly or
// breaks off, or because the bytes aren't HTTP. The client gets a 4xx response, and the metrics
// count it as one. We log at debug level because the gateway isn't at fault.

import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';
import type { Logger } from '../lib/logger.ts';
import type { ApiInstance } from './http.ts';
import { invalidBody } from './json-body.ts';
import { ProblemError, problemBody, problemHeaders } from './problem.ts';

/** A rejected client has this long to read the response before we cut its connection. */
const lingerMs = 1_000;

export type ClientFaults = {
  /**
   * The `clientErrorHandler`. It responds to input that Node's parser has rejected, and then closes
   * the connection.
   */
  readonly refuse: (error: NodeJS.ErrnoException, socket: Socket) => void;
  /** Tracks which bodies are still arriving. Call this before registering any route. */
  readonly watch: (server: ApiInstance) => void;
  /**
   * Returns the problem for the response if the client caused the error.
   *
   * @returns undefined if the client isn't at fault
   */
  readonly problemFor: (request: FastifyRequest, error: unknown) => ProblemError | undefined;
};

export function createClientFaults(logger: Logger): ClientFaults {
  const refused = new WeakMap<Socket, ProblemError>();
  const arriving = new WeakSet<FastifyRequest>();
  return {
    refuse(error, socket) {
      if (error.code === 'ECONNRESET' || socket.destroyed || !socket.writable) {
        socket.destroy();
        return;
      }
      const problem = problemForCode(error.code);
      refused.set(socket, problem);
      logger.debug({ code: error.code, status: problem.status }, 'refused what a client sent');
      socket.end(responseTo(problem));
      // Without this time-out, a client that keeps sending would leave its request waiting for the
      // end of the body.
      const cut = setTimeout(() => socket.destroy(), lingerMs).unref();
      socket.once('close', () => clearTimeout(cut));
    },
    watch(server) {
      server.addHook('preParsing', async (request) => {
        arriving.add(request);
      });
      server.addHook('preValidation', async (request) => {
        arriving.delete(request);
        // The rest of the body arrived after we had rejected the request. Since the client already
        // has a failure response, the route must not run.
        const problem = refused.get(request.raw.socket);
        if (problem !== undefined) throw problem;
      });
    },
    problemFor(request, error) {
      if (!arriving.has(request)) return undefined;
      // Make the metric count the response that the client actually received.
      const answered = refused.get(request.raw.socket);
      if (answered !== undefined) return answered;
      switch (errorCode(error)) {
        case 'FST_ERR_HANDLER_TIMEOUT':
          return tooSlow();
        case 'ECONNRESET':
          return invalidBody('The body did not arrive.', error);
        default:
          return undefined;
      }
    },
  };
}

function errorCode(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

function tooSlow(): ProblemError {
  return new ProblemError('request-timeout', 'The request did not arrive in time.');
}

function problemForCode(code: string | undefined): ProblemError {
  switch (code ?? '') {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return tooSlow();
    case 'HPE_HEADER_OVERFLOW':
      return new ProblemError('headers-too-large', 'The headers are larger than 16 KiB.');
    default:
      return new ProblemError('invalid-request', 'The request is not valid HTTP/1.1.');
  }
}

function responseTo(problem: ProblemError): string {
  const requestId = randomUUID();
  const body = problemBody(problem, requestId);
  const headers = {
    ...problemHeaders(problem),
    'x-request-id': requestId,
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${lines.join('')}\r\n${body}`;
}
