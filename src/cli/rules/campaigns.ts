// Declares the `offhook campaigns` command and its options.

import type { Command } from 'commander';
import type { CliContext } from '../cli-context.ts';
import type { CampaignOptions } from './campaigns-commands.ts';

export function addCampaignCommands(program: Command, createContext: () => CliContext): void {
  program
    .command('campaigns [name]')
    .description("show the campaigns' shares of abandoned calls; of one, in each of its windows")
    .option('--json', 'print one JSON object per line')
    .option('--app <id>', 'app to act as (default: the dev app)')
    .action(async (name: string | undefined, options: CampaignOptions) => {
      const { listCampaigns, showCampaign } = await import('./campaigns-commands.ts');
      if (name === undefined) await listCampaigns(createContext(), options);
      else await showCampaign(createContext(), name, options);
    });
}
