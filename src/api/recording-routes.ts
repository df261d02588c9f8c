// Serves and deletes the recordings of calls. For a recording of another account or bot, the
// response is 404.

import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { type ApiInstance, botRoute, type Clients, type ContentType } from '../http/http.ts';
import { invalidRequest, ProblemError } from '../http/problem.ts';
import { readRange } from '../http/ranges.ts';
import { authenticated, type ProblemStatus, responses } from '../http/route-schema.ts';
import type { FoundRecording, StoredRecordings } from '../recording/recordings.ts';
import type { StoreFault } from '../recording/store/recording-store.ts';
import { botScopeOf } from './app-scope.ts';
import { callIdOf } from './call-routes.ts';
import { callParams } from './call-schemas.ts';
import {
  recordingLinkSchema,
  recordingQuery,
  recordingRemovalSchema,
} from './recording-schemas.ts';

export type RecordingDependencies = {
  readonly services: { readonly recordings: StoredRecordings };
  readonly clients: Clients;
};

type Stored = Extract<FoundRecording, { readonly kind: 'stored' }>;

const url = '/api/public/bot/:botId/calls/:callId/recording';
const tags = ['calls'];
/** Enough for two hours of audio over a slow line. The client that stops reading is cut off. */
const maxReadMs = 3_600_000;
const contentTypes = [
  'audio/wav',
  'application/octet-stream',
  'application/json',
] as const satisfies ContentType[];

const description =
  'The WAV file: two channels of 8 kHz µ-law, left what was heard, right what was said. `Range` selects a part of it. If the recording is encrypted, the bytes are (`offhook recording decrypt` opens them), and the header `Offhook-Key` names the key. While the recording isn’t stored yet, the response is 409.';

export function registerRecordings(
  server: ApiInstance,
  { services: { recordings }, clients }: RecordingDependencies,
): void {
  const access = botRoute('Recordings');
  const problems: readonly ProblemStatus[] = [400, 401, 403, 404, 406, 409, 416];
  const { 200: linked, ...others } = responses('The recording', recordingLinkSchema, problems);
  const binary = { schema: z.unknown().meta({ type: 'string', format: 'binary' }) };
  const content = { 'audio/wav': binary, 'application/octet-stream': binary };
  server.route({
    method: 'GET',
    url,
    onRequest: clients.require({ ...access, contentTypes }),
    config: { responseTimeoutMs: maxReadMs },
    schema: {
      operationId: 'getRecording',
      summary: 'Read the recording of a call',
      description,
      tags,
      params: callParams,
      querystring: recordingQuery,
      headers: z.object({ range: z.string().max(256).optional() }),
      response: {
        200: { ...linked, content: { ...content, ...linked.content } },
        206: { description: 'The part of the recording that `Range` selects', content },
        ...others,
      },
      ...authenticated,
    },
    handler: async (request, reply) => {
      const stored = await requireStored(recordings, clients, request);
      const { link } = request.query;
      if (link !== undefined) return await linkTo(recordings, stored, link);
      return await send(recordings, stored, request, reply);
    },
  });

  server.route({
    method: 'DELETE',
    url,
    onRequest: clients.require(access),
    schema: {
      operationId: 'deleteRecording',
      summary: 'Delete the recording of a call',
      description:
        'Deletes it from the store. The call then says when it was deleted, and by which app. A recording that is on its way to the store is discarded. While the call isn’t over, the response is 409.',
      tags,
      params: callParams,
      response: responses(
        'The recording is deleted',
        recordingRemovalSchema,
        [400, 401, 403, 404, 406, 409, 413, 415],
      ),
      ...authenticated,
    },
    handler: async (request) => {
      const callId = callIdOf(request.params.callId);
      const scope = botScopeOf(clients, request);
      const removed = await recordings.remove(scope, callId, clients.appOf(request).appId);
      if (removed === 'unknown') throw noRecording();
      if (removed === 'under-way') throw notStored();
      if (!removed.ok) throw storeAway(removed.fault);
      return { callId, removed: true as const };
    },
  });
}

/** @throws ProblemError if there is nothing to read */
async function requireStored(
  recordings: StoredRecordings,
  clients: Clients,
  request: FastifyRequest<{ Params: { readonly callId: string } }>,
): Promise<Stored> {
  const found = await recordings.find(
    botScopeOf(clients, request),
    callIdOf(request.params.callId),
  );
  switch (found.kind) {
    case 'stored':
      return found;
    case 'not-stored':
      throw notStored();
    case 'failed':
      throw new ProblemError('not-found', `The recording was not stored: ${found.reason}.`);
    case 'deleted':
      throw new ProblemError(
        'not-found',
        `The recording was deleted at ${found.at.toISOString()}.`,
      );
    case 'unknown':
      throw noRecording();
  }
}

async function linkTo(recordings: StoredRecordings, { row }: Stored, seconds: number) {
  if (recordings.link === undefined) {
    throw invalidRequest([{ path: 'link', message: 'is only possible if the store is a bucket' }]);
  }
  const expiresAt = new Date(Date.now() + seconds * 1_000).toISOString();
  return { url: await recordings.link(row, seconds), expiresAt };
}

async function send(
  recordings: StoredRecordings,
  stored: Stored,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { row, bytes, sha256, keyName } = stored;
  const range = readRange(request.headers.range, bytes);
  if (range === 'unsatisfiable') {
    void reply.header('content-range', `bytes */${bytes}`);
    throw new ProblemError('range-not-satisfiable', `The recording has ${bytes} bytes.`);
  }
  const name = `${row.callId}.wav${keyName === undefined ? '' : '.enc'}`;
  void reply.code(range === undefined ? 200 : 206).headers({
    'content-type': keyName === undefined ? 'audio/wav' : 'application/octet-stream',
    'content-length': range === undefined ? bytes : range.end - range.start + 1,
    'content-disposition': `attachment; filename="${name}"`,
    'accept-ranges': 'bytes',
    etag: `"${sha256}"`,
    ...(range === undefined
      ? {}
      : { 'content-range': `bytes ${range.start}-${range.end}/${bytes}` }),
    ...(keyName === undefined ? {} : { 'offhook-key': keyName }),
  });
  // An empty stream keeps the header with the length, which an empty text would replace.
  if (request.method === 'HEAD') return await reply.send(Readable.from([]));
  const read = await recordings.read(row, range);
  if (read.kind === 'found') return await reply.send(read.content);
  for (const header of ['content-length', 'content-range', 'etag', 'content-disposition'])
    void reply.removeHeader(header);
  if (read.kind === 'failed') throw storeAway(read.fault);
  throw new ProblemError('not-found', 'The file is missing in the store.');
}

function noRecording(): ProblemError {
  return new ProblemError('not-found', 'The call has no recording.');
}

function notStored(): ProblemError {
  return new ProblemError('conflict', 'The recording is not stored yet.');
}

/** The fault's words are for operators, so the response doesn't have them. */
function storeAway({ detail }: StoreFault): ProblemError {
  return new ProblemError('unavailable', 'The store of recordings does not respond as it should.', {
    retryAfterS: 30,
    cause: new Error(detail),
  });
}
