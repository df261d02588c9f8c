// Serves the state of the servers for the operators' first page. This also works while the database
// is away, which is when people need the page.

import type { ApiInstance } from '../http/http.ts';
import { ProblemError } from '../http/problem.ts';
import type { ServerStatus } from '../servers/server-line.ts';
import type { SessionReader } from './sessions.ts';

export type ServerSources = {
  /** Returns a line for each server, from what this process knows, without asking any server. */
  readonly servers: () => readonly ServerStatus[];
};

export function registerServers(
  server: ApiInstance,
  { reader, sources }: { readonly reader: SessionReader; readonly sources: ServerSources },
): void {
  server.get('/api/operate/servers', async ({ headers, method }) => {
    const { app } = await reader.readOrRecall({ headers, method });
    if (!app.scopes.includes('Operate'))
      throw new ProblemError('not-found', 'There is nothing at this address.');
    return { servers: sources.servers() };
  });
}
