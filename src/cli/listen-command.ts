// Implements `offhook listen`, a receiver that prints notifications.

import { type CliContext, readDevApp } from './cli-context.ts';
import { CliError } from './cli-error.ts';
import { createNotificationLines } from './notification-lines.ts';
import { startReceiver } from './receiver.ts';

export type ListenOptions = {
  readonly port: string;
  readonly host: string;
  readonly secret?: string;
  readonly json?: boolean;
};

export async function listen(context: CliContext, options: ListenOptions): Promise<void> {
  const port = portOf(options);
  const webhookSecret = options.secret ?? (await readDevApp(context)).webhookSecret;
  const lineOf = createNotificationLines();
  await using receiver = await startReceiver({
    host: options.host,
    port,
    webhookSecret,
    onNotification: (notification) =>
      context.print(
        options.json === true
          ? JSON.stringify({ type: 'notification', ...notification })
          : lineOf(notification),
      ),
  }).catch(cannotListen(options));
  context.note(`listening on ${receiver.url}; press Ctrl-C to stop`);
  await whenInterrupted(context.interrupted);
}

/** @throws CliError if the option is not a port number */
export function portOf({ port }: ListenOptions): number {
  const number = Number(port);
  if (Number.isInteger(number) && number >= 0 && number <= 65_535) return number;
  throw new CliError('--port must be 0 to 65535');
}

export function cannotListen({ port, host }: ListenOptions): (error: unknown) => never {
  return (error) => {
    throw new CliError(`Cannot listen on port ${Number(port)} of ${host}.`, { cause: error });
  };
}

export function whenInterrupted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
