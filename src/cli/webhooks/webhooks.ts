// The options of offhook webhooks.

import type { Command } from 'commander';
import type { Config } from '../../config.ts';
import type { CliContext } from '../cli-context.ts';
import type { WebhooksTestOptions } from './webhooks-command.ts';

export function addWebhooksCommand(
  program: Command,
  createContext: () => CliContext,
  openNetworks: (config: Config) => readonly string[],
): void {
  program
    .command('webhooks')
    .description('for those who build a receiver of notifications')
    .command('test <url>')
    .description(
      'send every status, repetitions, a swapped order and wrong signatures; say what to mend; score it',
    )
    .option('--secret <whsec>', "webhook secret of the receiver; left out: the dev app's")
    .option('--min-score <number>', 'exit with 1 below it', '100')
    .option('--strict', 'what its answers do not tell counts as failed')
    .option('--json', 'one JSON object a line')
    .action(async (url: string, options: WebhooksTestOptions) => {
      const context = createContext();
      // Loaded here, so that the other commands start without it.
      const { testReceiver } = await import('./webhooks-command.ts');
      await testReceiver(context, openNetworks(context.config), url, options);
    });
}
