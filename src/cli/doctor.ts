// The options of offhook doctor.

import type { Command } from 'commander';
import type { Config } from '../config.ts';
import type { CliContext } from './cli-context.ts';
import type { DoctorOptions } from './doctor-command.ts';

export function addDoctorCommand(
  program: Command,
  createContext: () => CliContext,
  openNetworks: (config: Config) => readonly string[],
): void {
  program
    .command('doctor')
    .description('check what a gateway needs here; exits with 1 when something is missing')
    .option('--notify <url>', 'a receiver of notifications, to see whether it can be reached')
    .option('--json', 'one JSON object a line')
    .action(async (options: DoctorOptions) => {
      const context = createContext();
      // Loaded here, so that the other commands start without it.
      const { examine } = await import('./doctor-command.ts');
      await examine(context, openNetworks(context.config), options);
    });
}
