// Implements `offhook sounds`, which manages the sounds for the account's calls.

import { readFile } from 'node:fs/promises';
import { type AppOptions, withGateway } from './app-session.ts';
import type { CliContext } from './cli-context.ts';
import { CliError } from './cli-error.ts';
import type { SoundView } from './gateway-client.ts';

export type ListSoundsOptions = AppOptions & { readonly json?: boolean };

export async function addSound(
  context: CliContext,
  name: string,
  path: string,
  options: AppOptions,
): Promise<void> {
  const file = await readFile(path).catch((error: unknown) => {
    throw new CliError(`${path} cannot be read`, { cause: error });
  });
  await withGateway(context, options, async ({ sounds }) => {
    context.print(formatSound(await sounds.put(name, file)));
  });
}

export async function listSounds(context: CliContext, options: ListSoundsOptions): Promise<void> {
  await withGateway(context, options, async (client) => {
    const { sounds } = await client.sounds.list();
    for (const sound of sounds) {
      context.print(options.json === true ? JSON.stringify(sound) : formatSound(sound));
    }
    if (sounds.length === 0) context.note('No sounds.');
  });
}

export async function removeSound(
  context: CliContext,
  name: string,
  options: AppOptions,
): Promise<void> {
  await withGateway(context, options, async ({ sounds }) => {
    await sounds.remove(name);
    context.print(`removed sound:${name}`);
  });
}

function formatSound({ name, durationMs, updatedAt }: SoundView): string {
  return `sound:${name}  ${(durationMs / 1_000).toFixed(1)} s  ${updatedAt}`;
}
