// Uploads, reads and deletes sounds in the client's account. If a sound belongs to another account,
// the client gets a 404, as if there were no such sound.

import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { timestamp } from '../calls/contract/timestamp.ts';
import { soundName } from '../calls/playback/sound-reference.ts';
import type { ApiInstance, Clients } from '../http/http.ts';
import { invalidBody } from '../http/json-body.ts';
import { invalidRequest, ProblemError } from '../http/problem.ts';
import { authenticated, responses } from '../http/route-schema.ts';
import { maxFileBytes } from '../sounds/conversion.ts';
import type { StoredSound } from '../sounds/sound-store.ts';
import type { ApiServices } from './services.ts';

const soundExample = {
  name: 'spring-offer',
  durationMs: 12_480,
  bytes: 99_840,
  sha256: '3f2b6e0c1d8a4957e6f01b2c3d4e5f60718293a4b5c6d7e8f9012a3b4c5d6e7f',
  createdAt: '2026-11-20T09:00:00.000Z',
  updatedAt: '2026-11-20T09:00:00.000Z',
};

const soundParams = z.object({
  soundName: soundName.describe(
    'letters, digits, "_" and "-"; requests name the sound `sound:<name>`',
  ),
});

/** Documents the body. `SoundLibrary.put` checks it. */
const wavFile = z.unknown().meta({
  type: 'string',
  format: 'binary',
  description:
    'a WAV file of at most 10 MiB and 10 minutes: PCM of 8 to 32 bits, float, µ-law or A-law; 8 to 48 kHz; one channel, or two, which are mixed',
});

const soundSchema = z
  .object({
    name: z.string(),
    durationMs: z.number(),
    bytes: z.number().int().describe('stored size, as 8 kHz µ-law'),
    sha256: z
      .string()
      .describe('SHA-256 of the stored audio; the records of calls name a sound by it'),
    createdAt: timestamp,
    updatedAt: timestamp.describe(
      'time of the last upload; calls dialled after it play this version',
    ),
  })
  .meta({ id: 'Sound', examples: [soundExample] });

const soundsSchema = z
  .object({ sounds: z.array(soundSchema).describe('all sounds, sorted by name; at most 1,000') })
  .meta({ id: 'Sounds', examples: [{ sounds: [soundExample] }] });

const soundRemovalSchema = z
  .object({ name: z.string(), removed: z.literal(true) })
  .meta({ id: 'SoundRemoval', examples: [{ name: 'spring-offer', removed: true }] });

export type SoundRoutesDependencies = {
  readonly services: Pick<ApiServices, 'sounds'>;
  readonly clients: Clients;
};

const prefix = '/api/public/sounds';
const tags = ['sounds'];
const access = { scope: 'Dialout' } as const;

/** Content types that programs send with a WAV file. Some programs don't know its type. */
const wavTypes = [
  'audio/wav',
  'audio/wave',
  'audio/x-wav',
  'audio/vnd.wave',
  'application/octet-stream',
];

/**
 * An upload may wait for ten others, whose conversions take about 3 s each, and its own conversion
 * may take 30 s on an overloaded machine (`src/sounds/converter.ts`).
 */
const maxUploadMs = 75_000;

export function registerSounds(server: ApiInstance, deps: SoundRoutesDependencies): void {
  registerReads(server, deps);
  registerRemoval(server, deps);
  // All other routes accept only JSON.
  void server.register((scoped: ApiInstance, _options, done) => {
    scoped.removeAllContentTypeParsers();
    scoped.addContentTypeParser<Buffer>(
      wavTypes,
      { parseAs: 'buffer', bodyLimit: maxFileBytes },
      async (_request: FastifyRequest, body: Buffer) => body,
    );
    registerUpload(scoped, deps);
    done();
  });
}

function registerReads(server: ApiInstance, { services, clients }: SoundRoutesDependencies): void {
  const { sounds } = services;

  server.route({
    method: 'GET',
    url: prefix,
    onRequest: clients.require(access),
    schema: {
      operationId: 'listSounds',
      summary: 'List the account’s sounds',
      tags,
      response: responses('The sounds', soundsSchema, [401, 403, 406]),
      ...authenticated,
    },
    handler: async (request) => ({
      sounds: (await sounds.list(clients.appOf(request).accountId)).map(bodyOf),
    }),
  });

  server.route({
    method: 'GET',
    url: `${prefix}/:soundName`,
    onRequest: clients.require(access),
    schema: {
      operationId: 'getSound',
      summary: 'Read one sound',
      tags,
      params: soundParams,
      response: responses('The sound', soundSchema, [400, 401, 403, 404, 406]),
      ...authenticated,
    },
    handler: async (request) => {
      const sound = await sounds.find(clients.appOf(request).accountId, request.params.soundName);
      if (sound === undefined) throw noSuchSound();
      return bodyOf(sound);
    },
  });
}

function registerRemoval(
  server: ApiInstance,
  { services, clients }: SoundRoutesDependencies,
): void {
  server.route({
    method: 'DELETE',
    url: `${prefix}/:soundName`,
    onRequest: clients.require(access),
    schema: {
      operationId: 'deleteSound',
      summary: 'Delete a sound',
      description: 'Calls dialled before the deletion still play the sound.',
      tags,
      params: soundParams,
      response: responses(
        'The sound is deleted',
        soundRemovalSchema,
        [400, 401, 403, 404, 406, 413, 415],
      ),
      ...authenticated,
    },
    handler: async (request) => {
      const { soundName: name } = request.params;
      const wasRemoved = await services.sounds.remove(clients.appOf(request).accountId, name);
      if (!wasRemoved) throw noSuchSound();
      return { name, removed: true as const };
    },
  });
}

function registerUpload(server: ApiInstance, { services, clients }: SoundRoutesDependencies): void {
  server.route({
    method: 'PUT',
    url: `${prefix}/:soundName`,
    onRequest: clients.require(access),
    bodyLimit: maxFileBytes,
    config: { responseTimeoutMs: maxUploadMs },
    schema: {
      operationId: 'putSound',
      summary: 'Upload a sound, or replace it',
      description:
        'The body is the file itself, as `audio/wav`. The gateway converts it to the format of telephone calls, 8 kHz mono µ-law, and stores it. An account can have up to 1,000 sounds with a total stored size of 500 MB.',
      tags,
      params: soundParams,
      body: wavFile,
      consumes: ['audio/wav'],
      response: responses(
        'The stored sound',
        soundSchema,
        [400, 401, 403, 404, 406, 409, 413, 415],
      ),
      ...authenticated,
    },
    handler: async (request) => {
      const { accountId } = clients.appOf(request);
      if (!Buffer.isBuffer(request.body))
        throw invalidBody('The body is empty; a WAV file is expected.');
      const stored = await services.sounds.put(accountId, request.params.soundName, request.body);
      switch (stored.kind) {
        case 'unreadable':
          throw invalidRequest([
            { path: 'body', message: `is not a usable sound: ${stored.problem}` },
          ]);
        case 'full':
          throw new ProblemError('conflict', stored.message);
        case 'created':
        case 'replaced':
          return bodyOf(stored.sound);
      }
    },
  });
}

function bodyOf({ createdAt, updatedAt, ...sound }: StoredSound) {
  return {
    ...sound,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}

function noSuchSound(): ProblemError {
  return new ProblemError('not-found', 'There is no such sound.');
}
