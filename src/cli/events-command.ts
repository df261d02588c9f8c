// Implements `offhook events repair`, which publishes events that NATS has lost.

import { connectEvents, type EventConnection } from '../events/connection.ts';
import { type RepairResult, repairEvents as repair } from '../events/repair.ts';
import { parseDurationS } from '../lib/durations.ts';
import { silentLogger } from '../lib/logger.ts';
import { openAdminAccess } from './admin-access.ts';
import type { CliContext } from './cli-context.ts';
import { CliError } from './cli-error.ts';

export async function repairEvents(
  context: CliContext,
  { since, dryRun: isDryRun = false }: { readonly since: string; readonly dryRun?: boolean },
): Promise<void> {
  const sinceS = parseDurationS(since);
  if (sinceS === undefined) {
    throw new CliError(`--since: ${since} is not a duration such as 30m, 2h or 7d`);
  }
  await using access = await openAdminAccess(context);
  const connection = await connectToNats(context);
  try {
    const result = await repair(
      {
        connection,
        page: async (query) => (await access.run('published.page', query)).calls,
        eventsOf: async (callIds) =>
          (await access.run('published.events', { callIds: [...callIds] })).events,
        logger: silentLogger,
      },
      {
        since: new Date(Date.now() - sinceS * 1_000),
        maxCallMs: context.config.calls.maxLifeMs,
        isDryRun,
        stopped: context.interrupted,
      },
    );
    for (const line of linesOf(result, isDryRun)) context.print(line);
  } finally {
    await connection.close();
  }
}

async function connectToNats(context: CliContext): Promise<EventConnection> {
  const { nats } = context.config;
  const url = nats.url ?? (await context.gateway())?.natsUrl;
  if (url === undefined) {
    throw new CliError(
      'Set NATS_URL, or start the gateway: its private NATS server runs only while it does.',
    );
  }
  return await connectEvents({
    ...{ url, access: nats.access, prefix: nats.prefix },
    ...{ name: 'offhook events repair', logger: silentLogger, firstConnectTimeoutMs: 0 },
  });
}

function linesOf(
  { calls, events, missing, published, refused, tooOld }: RepairResult,
  isDryRun: boolean,
): readonly string[] {
  const what = isDryRun ? `${missing} are missing` : `${missing} were missing`;
  return [
    `${events} published events of ${calls} calls compared; ${what}${isDryRun ? '' : `, ${published} published again`}`,
    ...(refused === 0 ? [] : [`${refused} refused by NATS, e.g. because they are too large`]),
    ...(tooOld === 0 ? [] : [`${tooOld} skipped: older than what the stream's limits keep`]),
  ];
}
