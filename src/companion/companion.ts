// The companion consists of the platform's areas besides calls, each of which has its own folder.
// The areas share the gateway's HTTP server and database, and receive their data from HTTP clients
// and from producers on NATS.

import type { RegisterRoutes } from '../api/server.ts';
import type { Closers } from '../lib/closers.ts';
import type { Repetition } from '../lib/repeat.ts';
import { repeatHourly } from '../lib/repeat-hourly.ts';
import { forgetTraceIds, purgeHistory } from '../store/retention.ts';
import { registerConnections } from './connections/connection-routes.ts';
import { registerConversationRoutes } from './conversations/conversation-routes.ts';
import { followConversations } from './conversations/published-conversations.ts';
import type { CompanionDependencies } from './dependencies.ts';
import { registerHistoryRoutes } from './history/history-routes.ts';
import { traceIdDays } from './history/history-statements.ts';
import { followMessages } from './history/published-messages.ts';
import { registerImports } from './imports/import-route.ts';
import { registerTableRoutes } from './tables/table-routes.ts';
import { followTestRuns } from './test-runs/stored-test-runs.ts';
import { registerTestRunRoutes } from './test-runs/test-run-routes.ts';

export function companionRoutes(dependencies: CompanionDependencies): RegisterRoutes {
  return (server, clients) => {
    registerConnections(server, clients, dependencies);
    registerImports(server, clients, dependencies);
    registerConversationRoutes(server, clients, dependencies);
    registerHistoryRoutes(server, clients, dependencies);
    registerTableRoutes(server, clients, dependencies);
    registerTestRunRoutes(server, clients, dependencies);
  };
}

/** Starts consuming resources from producers, and the hourly deletion of old history. */
export async function openIngest(
  dependencies: CompanionDependencies,
  closers: Closers,
): Promise<void> {
  const messages = await followMessages(dependencies);
  closers.add('messages', () => messages.stop());
  const conversations = await followConversations(dependencies);
  closers.add('conversations', () => conversations.stop());
  const testRuns = await followTestRuns(dependencies);
  closers.add('test runs', () => testRuns.stop());
  const forgetting = forgetOld(dependencies);
  closers.add('old history', () => forgetting.stop());
}

const hourMs = 3_600_000;

function forgetOld({ config, database, clock, logger }: CompanionDependencies): Repetition {
  const daysAgo = (days: number) => new Date(clock.now().getTime() - days * 24 * hourMs);
  return repeatHourly({ name: 'old history', clock, logger }, async (stopped) => {
    await purgeHistory(database, daysAgo(config.retention.historyDays), stopped);
    await forgetTraceIds(database, daysAgo(traceIdDays), stopped);
  });
}
