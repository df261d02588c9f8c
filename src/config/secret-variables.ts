// Variables that contain secrets. Each has a companion NAME_FILE.

import { z } from 'zod';

export const secretVariables = [
  'DATABASE_URL',
  'NATS_URL',
  'NATS_NKEY',
  'DRACHTIO_URL',
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
  'SECRETS_KEY',
  'SECRETS_KEY_PREVIOUS',
] as const;

export function fileFor(name: (typeof secretVariables)[number]) {
  return z.string().optional().describe(`Path of a file that contains ${name}, in its place.`);
}
