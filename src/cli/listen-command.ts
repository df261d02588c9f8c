// offhook listen: a receiver for trying things out.

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
  const port = Number(options.port);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new CliError('--port must be 0 to 65535');
  }
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
  }).catch((error: unknown) => {
    throw new CliError(`Port ${port} of ${options.host} cannot be listened on.`, { cause: error });
  });
  context.note(`listening on ${receiver.url}; Ctrl-C ends`);
  await whenInterrupted(context.interrupted);
}

export function whenInterrupted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
