// Implements `offhook keys` and `offhook recording`.

import { createWriteStream } from 'node:fs';
import { readFile, rename, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { decryptRecordingFile } from '../../recording/formats/decrypt-file.ts';
import { readPrivateKey } from '../../recording/formats/key-wrapping.ts';
import { openAdminAccess, openTokens } from '../app-session.ts';
import { findCallId } from '../calls/named-call.ts';
import { type CliContext, requireGateway } from '../cli-context.ts';
import { CliError } from '../cli-error.ts';
import { createGatewayClient } from '../gateway-client.ts';

export type AddKeyOptions = { readonly account: string; readonly publicKey: string };
export type GetOptions = { readonly app?: string; readonly out: string };
export type DecryptOptions = { readonly privateKey: string; readonly out: string };

export async function addKey(
  context: CliContext,
  name: string,
  { account: accountId, publicKey: path }: AddKeyOptions,
): Promise<void> {
  const publicKey = await textOf(path);
  await using access = await openAdminAccess(context);
  context.print(JSON.stringify(await access.run('keys.add', { accountId, name, publicKey })));
}

export async function listKeys(context: CliContext): Promise<void> {
  await using access = await openAdminAccess(context);
  for (const key of (await access.run('keys.list', {})).keys) context.print(JSON.stringify(key));
}

export async function removeKey(
  context: CliContext,
  name: string,
  accountId: string,
): Promise<void> {
  await using access = await openAdminAccess(context);
  await access.run('keys.remove', { accountId, name });
  context.print(`removed ${name}`);
}

export async function getRecording(
  context: CliContext,
  text: string,
  { app, out }: GetOptions,
): Promise<void> {
  const response = await requestRecording(context, text, app, 'GET');
  if (response.body === null) throw new CliError('the gateway sent no recording');
  const part = `${out}.part`;
  try {
    const file = createWriteStream(part, { mode: 0o600 });
    await pipeline(Readable.fromWeb(response.body as never), file);
    await rename(part, out);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
  const key = response.headers.get('offhook-key');
  context.print(key === null ? out : `${out} (encrypted for ${key})`);
}

export async function deleteRecording(
  context: CliContext,
  text: string,
  app: string | undefined,
): Promise<void> {
  await requestRecording(context, text, app, 'DELETE');
  context.print(`deleted the recording of ${text}`);
}

/** @throws CliError with the gateway's reason, unless the response is a success */
async function requestRecording(
  context: CliContext,
  text: string,
  named: string | undefined,
  method: 'GET' | 'DELETE',
): Promise<Response> {
  await using app = await openTokens(context, named);
  const { httpUrl } = await requireGateway(context);
  const overview = createGatewayClient(httpUrl, app.tokens).overview();
  const { botId, callId } = await overview.call(await findCallId(overview, text));
  const url = `${httpUrl}/api/public/bot/${botId}/calls/${callId}/recording`;
  const response = await fetch(url, { method, headers: { auth: await app.tokens(60) } });
  if (response.ok) return response;
  const { detail } = (await response.json()) as { readonly detail?: string };
  throw new CliError(detail ?? `the gateway responded with ${response.status}`);
}

export async function decryptRecording(
  context: CliContext,
  file: string,
  { privateKey: path, out }: DecryptOptions,
): Promise<void> {
  const privateKey = readPrivateKey(await textOf(path));
  if (!privateKey.ok) throw new CliError(`${path}: ${privateKey.problem}`);
  const decrypted = await decryptRecordingFile(file, out, privateKey.key);
  if (!decrypted.ok) throw new CliError(`${file}: ${decrypted.problem}`);
  context.print(out);
}

async function textOf(path: string): Promise<string> {
  return await readFile(path, 'utf8').catch((error: unknown) => {
    throw new CliError(`${path} cannot be read`, { cause: error });
  });
}
