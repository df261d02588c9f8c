// Declares the `offhook rules` command and its options.

import type { Command } from 'commander';
import type { AppOptions } from '../app-session.ts';
import { defaultBot } from '../calls/calls.ts';
import type { CliContext } from '../cli-context.ts';
import type { CheckOptions, ListRulesOptions } from './rules-commands.ts';

const rulesCommands = () => import('./rules-commands.ts');

export function addRuleCommands(program: Command, createContext: () => CliContext): void {
  const rules = program
    .command('rules')
    .description("manage the rule sets of the app's account: who may be called, when, how often");
  withAppOption(rules.command('set <name> <file>'))
    .description('store a rule set from a JSON file, or from standard input if the file is -')
    .action(async (name: string, file: string, options: AppOptions) => {
      await (await rulesCommands()).setRules(createContext(), name, file, options);
    });
  withAppOption(rules.command('list', { isDefault: true }))
    .description('list rule sets by name')
    .option('--json', 'print one JSON object per line')
    .action(async (options: ListRulesOptions) => {
      await (await rulesCommands()).listRules(createContext(), options);
    });
  withAppOption(rules.command('show <name> [version]'))
    .description("print a rule set's document (default: that of the current version)")
    .action(async (name: string, version: string | undefined, options: AppOptions) => {
      await (await rulesCommands()).showRules(createContext(), name, version, options);
    });
  withAppOption(rules.command('remove <name>'))
    .description('delete a rule set; its last version still applies to waiting calls that name it')
    .action(async (name: string, options: AppOptions) => {
      await (await rulesCommands()).removeRules(createContext(), name, options);
    });
  withAppOption(rules.command('check <number>'))
    .description('say what the rules would decide about a call to this number now; dials nothing')
    .option('--rules <name>', 'rule set (default: default)')
    .option('--time-zone <zone>', 'IANA time zone of the person')
    .option('--campaign <name>', 'campaign of the call')
    .option('--bot <id>', 'bot of the call', defaultBot)
    .option('--caller <number>', 'user part of the caller ID', '+12025550199')
    .option('--json', 'print the answer as JSON')
    .action(async (number: string, options: CheckOptions) => {
      await (await rulesCommands()).checkRules(createContext(), number, options);
    });
}

function withAppOption(command: Command): Command {
  return command.option('--app <id>', 'app to act as (default: the dev app)');
}
