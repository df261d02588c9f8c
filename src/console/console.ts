// Serves the console's pages at /console. Under /console/api it serves API routes, which accept a
// session cookie instead of a token, and data that only these pages use.

import { registerAppWideRoutes } from '../api/app-wide-routes.ts';
import { registerCallLists } from '../api/call-lists.ts';
import { registerCallRoutes } from '../api/call-routes.ts';
import { registerDeadLetters } from '../api/dead-letter-routes.ts';
import { registerDialout } from '../api/dialout/dialout-route.ts';
import { registerEventRoutes } from '../api/event-routes.ts';
import { registerRecordings } from '../api/recording-routes.ts';
import { registerCampaigns } from '../api/rules/campaign-routes.ts';
import { registerRuleSets } from '../api/rules/rule-routes.ts';
import { registerSuppressions } from '../api/rules/suppression-routes.ts';
import type { RegisterRoutes } from '../api/server.ts';
import { createClients } from '../http/http.ts';
import { ProblemError } from '../http/problem.ts';
import { type AccountSources, registerAccount } from './account-routes.ts';
import { type Assets, loadAssets } from './assets.ts';
import { type CaptureSources, registerCaptures } from './capture-routes.ts';
import type { ListeningAddress } from './console-address.ts';
import type { RequestHead } from './guard.ts';
import { type OperateSources, registerOperate } from './operate-routes.ts';
import { registerPage } from './page-routes.ts';
import { registerRecordingMetadata } from './recording-routes.ts';
import { registerServers, type ServerSources } from './server-routes.ts';
import type { SessionStore } from './session-store.ts';
import { endingWithSession } from './session-streams.ts';
import {
  createDataGuard,
  createSessionReader,
  registerLink,
  registerSessions,
  type SessionDependencies,
} from './sessions.ts';

export type ConsoleOptions = AccountSources &
  CaptureSources &
  OperateSources &
  ServerSources & {
    readonly sessions: SessionStore;
    readonly appNow: SessionDependencies['appNow'];
    readonly address: ListeningAddress;
    readonly isDatabaseAway: SessionDependencies['isDatabaseAway'];
    /** How often an open event stream checks its session. Default: 2,000. */
    readonly streamCheckEveryMs?: number;
  };

export function consoleRoutes(options: ConsoleOptions): RegisterRoutes {
  const { publicUrl } = options.address;
  // We don't load the files until the first request, because nobody may ever open the console, and
  // compressing them would be wasted work.
  let loading: Promise<Assets> | undefined;
  const assets = (): Promise<Assets> => {
    loading ??= loadAssets();
    return loading;
  };

  return (server, apiClients, { services, streams }) => {
    const { bots } = services;
    const reader = createSessionReader(options);
    registerPage(server, assets, publicUrl);
    registerSessions(server, options, reader);
    registerLink(server, options, apiClients);

    const authenticate = {
      jwt: (headers: RequestHead['headers'], method = 'GET') => reader.read({ headers, method }),
      apiKey: () =>
        Promise.reject(new ProblemError('not-found', 'There is nothing at this address.')),
    };
    const clients = createClients(authenticate, bots);
    void server.register(
      (scope, _options, done) => {
        // Keep these routes out of the OpenAPI document, which is for programs.
        scope.addHook('onRoute', (route) => {
          route.schema = { ...route.schema, hide: true };
        });
        scope.addHook('onRequest', createDataGuard(publicUrl));
        registerDialout(scope, { services, clients, metrics: undefined });
        registerCallLists(scope, { services, clients });
        registerCallRoutes(scope, { services, clients });
        registerDeadLetters(scope, { services, clients });
        registerAppWideRoutes(scope, { services, clients });
        registerRuleSets(scope, { services, clients });
        registerSuppressions(scope, { services, clients });
        registerCampaigns(scope, { services, clients });
        registerEventRoutes(scope, {
          services,
          clients,
          streams: endingWithSession(streams, reader, options.streamCheckEveryMs),
        });
        registerRecordings(scope, { services, clients });
        registerRecordingMetadata(scope, { services, clients });
        registerCaptures(scope, { services, clients, sources: options });
        registerAccount(scope, { services, clients, sources: options });
        registerOperate(scope, { clients, sources: options });
        registerServers(scope, { reader, sources: options });
        done();
      },
      { prefix: '/console' },
    );
  };
}
