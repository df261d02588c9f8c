// Declares the `offhook sounds` command and its options.

import type { Command } from 'commander';
import type { AppOptions } from './app-session.ts';
import type { CliContext } from './cli-context.ts';
import type { ListSoundsOptions } from './sounds-commands.ts';

const soundsCommands = () => import('./sounds-commands.ts');

export function addSoundCommands(program: Command, createContext: () => CliContext): void {
  const sounds = program
    .command('sounds')
    .description("manage the sounds that calls of the app's account can play");
  withAppOption(sounds.command('add <name> <file>'))
    .description('upload a WAV file; replaces a sound with the same name')
    .action(async (name: string, file: string, options: AppOptions) => {
      await (await soundsCommands()).addSound(createContext(), name, file, options);
    });
  withAppOption(sounds.command('list', { isDefault: true }))
    .description('list sounds by name')
    .option('--json', 'print one JSON object per line')
    .action(async (options: ListSoundsOptions) => {
      await (await soundsCommands()).listSounds(createContext(), options);
    });
  withAppOption(sounds.command('remove <name>'))
    .description('delete a sound')
    .action(async (name: string, options: AppOptions) => {
      await (await soundsCommands()).removeSound(createContext(), name, options);
    });
}

function withAppOption(command: Command): Command {
  return command.option('--app <id>', 'app to act as (default: the dev app)');
}
