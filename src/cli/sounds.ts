// offhook sounds, as it is typed.

import type { Command } from 'commander';
import type { AppOptions } from './app-session.ts';
import type { CliContext } from './cli-context.ts';
import type { ListSoundsOptions } from './sounds-commands.ts';

const soundsCommands = () => import('./sounds-commands.ts');

export function addSoundCommands(program: Command, createContext: () => CliContext): void {
  const sounds = program.command('sounds').description("what calls of the app's account play");
  ofApp(sounds.command('add <name> <file>'))
    .description('upload a WAV file, or replace the sound of that name')
    .action(async (name: string, file: string, options: AppOptions) => {
      await (await soundsCommands()).addSound(createContext(), name, file, options);
    });
  ofApp(sounds.command('list', { isDefault: true }))
    .description('by name')
    .option('--json', 'one JSON object a line')
    .action(async (options: ListSoundsOptions) => {
      await (await soundsCommands()).listSounds(createContext(), options);
    });
  ofApp(sounds.command('remove <name>'))
    .description('delete a sound')
    .action(async (name: string, options: AppOptions) => {
      await (await soundsCommands()).removeSound(createContext(), name, options);
    });
}

function ofApp(command: Command): Command {
  return command.option('--app <id>', 'app that asks; left out: the dev app');
}
