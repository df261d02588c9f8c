// Declares the `offhook records` command and its options.

import { type Command, Option } from 'commander';
import type { CliContext } from '../cli-context.ts';
import type { ExportOptions } from './records-commands.ts';

const recordsCommands = () => import('./records-commands.ts');

export function addRecordCommands(program: Command, createContext: () => CliContext): void {
  const records = program
    .command('records')
    .description('export the records of calls, as evidence, and check exported files');
  records
    .command('export')
    .description('print the records; the last line counts them and has their SHA-256')
    .option('--from <time>', 'calls accepted at this time or later, e.g. 2026-11-01T00:00:00Z')
    .option('--to <time>', 'calls accepted before this time (default: now)')
    .option('--campaign <name>', 'calls of this campaign')
    .addOption(
      new Option('--format <format>', 'format of the file')
        .choices(['ndjson', 'csv'])
        .default('ndjson'),
    )
    .addOption(
      new Option('--account <id>', 'account whose records to export, as one of its apps').conflicts(
        'app',
      ),
    )
    .option('--app <id>', 'app to act as (default: the dev app)')
    .action(async (options: ExportOptions) => {
      await (await recordsCommands()).exportRecords(createContext(), options);
    });
  records
    .command('verify <file>')
    .description('check that an exported file is whole and unchanged')
    .action(async (file: string) => {
      await (await recordsCommands()).verifyRecords(createContext(), file);
    });
}
