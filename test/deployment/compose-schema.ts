// The schema of docker-compose.yml. It allows only the members of the Compose Specification that
// the file uses, each in one form. A misspelt member, which Compose would refuse on the server,
// fails the tests.

import { z } from 'zod';

const duration = z.string().regex(/^(\d+(us|ms|s|m|h))+$/, 'must be a duration, e.g. 90s');
const bytes = z.string().regex(/^\d+(b|k|m|g|kb|mb|gb)$/, 'must be a size, e.g. 512m');
const name = z.string().regex(/^[a-zA-Z0-9._-]+$/);
const environment = z.record(z.string().regex(/^[A-Z][A-Z0-9_]*$/), z.string());

const healthcheck = z.strictObject({
  test: z.tuple([z.enum(['CMD', 'CMD-SHELL'])], z.string()),
  interval: duration,
  timeout: duration,
  retries: z.int().min(1),
  start_period: duration.optional(),
});

export const serviceSchema = z.strictObject({
  image: z.string().regex(/^[a-z0-9./-]+:[\w][\w.-]*$/, 'must be a name and a tag'),
  profiles: z.array(name).optional(),
  pull_policy: z.enum(['always', 'never', 'missing', 'build']).optional(),
  build: z.strictObject({ context: z.string(), dockerfile: z.string() }).optional(),
  entrypoint: z.array(z.string()).min(1).optional(),
  command: z.array(z.string()).min(1).optional(),
  network_mode: z.union([z.literal('host'), z.string().regex(/^service:[a-z-]+$/)]).optional(),
  ports: z
    .array(z.string().regex(/^(\d+\.\d+\.\d+\.\d+:)?\d+:\d+$/, 'must be [address:]port:port'))
    .optional(),
  restart: z.enum(['always', 'unless-stopped']),
  stop_grace_period: duration.optional(),
  depends_on: z
    .record(name, z.strictObject({ condition: z.enum(['service_started', 'service_healthy']) }))
    .optional(),
  env_file: z.array(z.strictObject({ path: z.string(), required: z.boolean() })).optional(),
  environment: environment.optional(),
  configs: z.array(z.strictObject({ source: name, target: z.string().startsWith('/') })).optional(),
  volumes: z
    .array(z.string().regex(/^[^:]+:\/[^:]+(:ro)?$/, 'must be source:target or source:target:ro'))
    .optional(),
  tmpfs: z
    .array(z.string().regex(/^\/[^:]*(:(uid|gid|mode)=\d+(,(uid|gid|mode)=\d+)*)?$/))
    .optional(),
  shm_size: bytes.optional(),
  healthcheck,
  read_only: z.boolean().optional(),
  user: z
    .string()
    .regex(/^\d+:\d+$/)
    .optional(),
  cap_drop: z.array(z.literal('ALL')).optional(),
  cap_add: z.array(z.string().regex(/^[A-Z_]+$/)).optional(),
  security_opt: z.array(z.literal('no-new-privileges:true')),
  ulimits: z.strictObject({ nofile: z.int().min(1_024) }).optional(),
  deploy: z.strictObject({
    resources: z.strictObject({
      limits: z.strictObject({
        cpus: z.string().regex(/^\d+(\.\d+)?$/),
        memory: bytes,
        pids: z.int().min(1),
      }),
    }),
  }),
  logging: z.strictObject({
    driver: z.literal('local'),
    options: z.strictObject({ 'max-size': bytes, 'max-file': z.string().regex(/^\d+$/) }),
  }),
});

export const composeSchema = z
  .object({
    name,
    services: z.record(name, serviceSchema),
    configs: z.record(name, z.strictObject({ file: z.string() })),
    volumes: z.record(name, z.null()),
  })
  .catchall(z.unknown())
  // Extensions (`x-…`) may have any form.
  .refine((document) => Object.keys(document).every((key) => isKnown(key)), 'has unknown members');

const isKnown = (key: string): boolean =>
  key.startsWith('x-') || ['name', 'services', 'configs', 'volumes'].includes(key);
