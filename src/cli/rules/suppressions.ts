// Declares the `offhook suppressions` command and its options.

import { type Command, Option } from 'commander';
import { suppressionReasons } from '../../calls/rules/suppression.ts';
import type { AppOptions } from '../app-session.ts';
import type { CliContext } from '../cli-context.ts';
import type { AddOptions, PrintOptions } from './suppressions-commands.ts';

const suppressionsCommands = () => import('./suppressions-commands.ts');

export function addSuppressionCommands(program: Command, createContext: () => CliContext): void {
  const suppressions = program
    .command('suppressions')
    .description("manage the numbers that no call of the app's account may reach");
  withAppOption(suppressions.command('add <number>'))
    .description('suppress a number or a sip: URI; cancels unanswered calls to it')
    .addOption(
      new Option('--reason <reason>', 'why it may not be called')
        .choices(suppressionReasons)
        .default('opt-out'),
    )
    .option('--source <text>', 'where the suppression comes from', 'offhook suppressions add')
    .option('--until <time>', 'when it ends, e.g. 2030-01-01T00:00:00Z (default: it does not end)')
    .action(async (number: string, options: AddOptions) => {
      await (await suppressionsCommands()).addSuppression(createContext(), number, options);
    });
  withAppOption(suppressions.command('remove <number>'))
    .description('allow calls to a number again')
    .action(async (number: string, options: AppOptions) => {
      await (await suppressionsCommands()).removeSuppression(createContext(), number, options);
    });
  withPrintOptions(suppressions.command('list', { isDefault: true }))
    .description('list all suppressed numbers')
    .action(async (options: PrintOptions) => {
      await (await suppressionsCommands()).listSuppressions(createContext(), options);
    });
  withPrintOptions(suppressions.command('check <numbers...>'))
    .description('say which of these numbers are suppressed')
    .action(async (numbers: readonly string[], options: PrintOptions) => {
      await (await suppressionsCommands()).checkSuppressions(createContext(), numbers, options);
    });
  withPrintOptions(suppressions.command('import <file>'))
    .description('suppress the numbers of a CSV or NDJSON file, or of standard input if it is -')
    .addHelpText('after', importHelp)
    .action(async (file: string, options: PrintOptions) => {
      await (await suppressionsCommands()).importSuppressions(createContext(), file, options);
    });
}

const importHelp = `
A CSV file begins with the header number,reason,source,until. A line of an NDJSON file is a JSON
object with the same members. Wrong lines are listed, and the others stored; the exit code is then 1.`;

function withAppOption(command: Command): Command {
  return command.option('--app <id>', 'app to act as (default: the dev app)');
}

function withPrintOptions(command: Command): Command {
  return withAppOption(command).option('--json', 'print JSON');
}
