// Declares `offhook keys` and `offhook recording`.

import type { Command } from 'commander';
import type { CliContext } from '../cli-context.ts';
import type { AddKeyOptions, DecryptOptions, GetOptions } from './recording-commands.ts';

const commands = () => import('./recording-commands.ts');

export function addRecordingCommands(program: Command, createContext: () => CliContext): void {
  const keys = program
    .command('keys')
    .description('manage the public keys for which recordings are encrypted');
  keys
    .command('add <name>')
    .description('register a public key (RSA or X25519, PEM); requests name it in recording.key')
    .requiredOption('--account <id>', 'account of the key')
    .requiredOption('--public-key <file>', 'the public key; the private one stays with its owner')
    .action(async (name: string, options: AddKeyOptions) => {
      await (await commands()).addKey(createContext(), name, options);
    });
  keys
    .command('list', { isDefault: true })
    .description('list the keys, one JSON object per line')
    .action(async () => {
      await (await commands()).listKeys(createContext());
    });
  keys
    .command('remove <name>')
    .description('remove a key; what is encrypted for it can still be decrypted')
    .requiredOption('--account <id>', 'account of the key')
    .action(async (name: string, options: { readonly account: string }) => {
      await (await commands()).removeKey(createContext(), name, options.account);
    });
  const recording = program.command('recording').description('read and delete recordings of calls');
  recording
    .command('get <callId>')
    .description('write the recording of a call to a file')
    .requiredOption('--out <file>', 'file to write')
    .option('--app <id>', 'app to act as (default: the dev app)')
    .action(async (callId: string, options: GetOptions) => {
      await (await commands()).getRecording(createContext(), callId, options);
    });
  recording
    .command('delete <callId>')
    .description('remove the recording of a call from the store')
    .option('--app <id>', 'app to act as (default: the dev app)')
    .action(async (callId: string, { app }: { readonly app?: string }) => {
      await (await commands()).deleteRecording(createContext(), callId, app);
    });
  recording
    .command('decrypt <file>')
    .description('decrypt a recording with the private key; needs no gateway')
    .requiredOption('--private-key <file>', 'the private key, PEM')
    .requiredOption('--out <file>', 'WAV file to write')
    .action(async (file: string, options: DecryptOptions) => {
      await (await commands()).decryptRecording(createContext(), file, options);
    });
}
