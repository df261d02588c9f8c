// `offhook keys` and `offhook recording decrypt`, with keys as OpenSSL makes them.

import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runAdminOperation } from '../../src/api/admin/admin-operations.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { unwrapContentKey } from '../../src/recording/formats/key-wrapping.ts';
import { createRecordingPort, openContentKey } from '../../src/recording/keeper/content-keys.ts';
import { createRecordingKeys } from '../../src/store/recordings/recording-keys.ts';
import { createSecretBox } from '../../src/store/secrets.ts';
import { acceptedCall } from '../support/call-records.ts';
import { openTestDatabase, type TestDatabase } from '../support/databases.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await openTestDatabase('pglite');
});
afterAll(() => database.remove());

test('a key is registered once, encrypts content keys for its owner, and can be removed', async () => {
  const recordingKeys = createRecordingKeys(database.pool, () => new Date());
  const run = (operation: string, input: object) =>
    runAdminOperation({ recordingKeys } as never, operation as never, input as never);
  const { publicKey, privateKey } = generateKeyPairSync('x25519');
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
  const key = { accountId: 'account-1', name: 'crm-2026' };
  const secret = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

  await expect(run('keys.add', { ...key, publicKey: secret })).rejects.toThrow();
  expect(await run('keys.add', { ...key, publicKey: pem })).toMatchObject({
    ...{ ...key, algorithm: 'X25519-HKDF-A256GCM' },
  });
  await expect(run('keys.add', { ...key, publicKey: pem })).rejects.toThrow();
  expect(await run('keys.list', {})).toMatchObject({ keys: [key] });

  const secrets = createSecretBox(Buffer.alloc(32, 7));
  const port = createRecordingPort(recordingKeys, secrets, silentLogger);
  const call = acceptedCall();
  expect(await port.prepare(call, undefined)).toEqual({ ok: true });
  expect(await port.prepare(call, 'other')).toMatchObject({ ok: false });
  const prepared = await port.prepare(call, 'crm-2026');
  const encryption = prepared.ok ? prepared.encryption : undefined;
  if (encryption === undefined) throw new Error('the recording is not encrypted');
  const contentKey = Buffer.from(encryption.contentKey);
  expect(unwrapContentKey(encryption.wrapped, privateKey)).toEqual({ ok: true, contentKey });
  // Another node opens it with the same SECRETS_KEY, also while the key is changed.
  const header = { callId: call.callId, encryption } as never;
  expect(openContentKey(secrets, header)).toEqual(contentKey);
  const changing = createSecretBox({
    ...{ current: Buffer.alloc(32, 8), previous: Buffer.alloc(32, 7) },
  });
  expect(openContentKey(changing, header)).toEqual(contentKey);
  expect(() => openContentKey(createSecretBox(Buffer.alloc(32, 9)), header)).toThrow('another key');

  await run('keys.remove', key);
  expect(await port.prepare(call, 'crm-2026')).toMatchObject({ ok: false });
});

test('a file that is no recording is not decrypted', async () => {
  const { decryptRecording } = await import('../../src/cli/recordings/recording-commands.ts');
  const folder = await mkdtemp(join(tmpdir(), 'offhook-decrypt-'));
  const { privateKey } = generateKeyPairSync('x25519');
  const file = join(folder, 'key.pem');
  await writeFile(file, privateKey.export({ type: 'pkcs8', format: 'pem' }));
  await writeFile(join(folder, 'a.wav.enc'), 'no recording');
  const options = { privateKey: file, out: join(folder, 'a.wav') };
  await expect(
    decryptRecording({ print: () => undefined } as never, join(folder, 'a.wav.enc'), options),
  ).rejects.toThrow('a.wav.enc');
  await rm(folder, { recursive: true });
});
