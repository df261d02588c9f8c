// Whose a stream identifier is: the bot's that is registered under it, or else the one's whose run was published with it. Only
// within the account of who asks, and only among the bots that it may see: any client may write any stream into a run.

import { authorizeBot } from '../../http/auth.ts';
import { ProblemError } from '../../http/problem.ts';
import type { App } from '../../store/apps/app-directory.ts';
import type { Bot } from '../../store/apps/bot-directory.ts';
import type { CompanionDependencies } from '../dependencies.ts';
import { grantedBotIds } from '../granted-bots.ts';
import { botsOfRun, type StreamQuery } from './stored-test-runs.ts';

/** @throws ProblemError where there is none, or one of another account. */
export async function botOfStream(
  { database, bots }: Pick<CompanionDependencies, 'database' | 'bots'>,
  app: App,
  asked: Pick<StreamQuery, 'streamId' | 'suiteName' | 'runId'>,
): Promise<Bot> {
  const { streamId } = asked;
  const registered = await bots.find(streamId);
  if (registered !== undefined) return authorizeBot(app, streamId, registered);
  const botIds = await grantedBotIds(bots, app);
  const query = { ...asked, accountId: app.accountId, botIds };
  const [first, second] = await botsOfRun(database, query);
  if (first === undefined) throw noSuchRun();
  // A producer may write the stream of another bot into its runs: of two bots none is believed more than the other.
  if (second !== undefined && first !== streamId) {
    const detail = 'Runs of more than one bot are of this stream: name the bot instead.';
    throw new ProblemError('not-found', detail);
  }
  return authorizeBot(app, first, await bots.find(first));
}

export function noSuchRun(): ProblemError {
  return new ProblemError('not-found', 'There is no such test run.');
}
