// The console: pages for people, at /console. Its data is the API's, under /console/api, asked with the cookie of a session instead of a
// token; and what only people look at, beside it.

import { registerAppWideRoutes } from '../api/app-wide-routes.ts';
import { registerCallRoutes } from '../api/call-routes.ts';
import { registerDeadLetters } from '../api/dead-letter-routes.ts';
import { registerDialout } from '../api/dialout/dialout-route.ts';
import { registerEventRoutes } from '../api/event-routes.ts';
import type { RegisterRoutes } from '../api/server.ts';
import { createCaller } from '../http/http.ts';
import { ProblemError } from '../http/problem.ts';
import { type Assets, loadAssets } from './assets.ts';
import { type CaptureSources, registerCaptures } from './capture-routes.ts';
import type { Asked } from './guard.ts';
import { type OperateSources, registerOperate } from './operate-routes.ts';
import { registerPage } from './page-routes.ts';
import type { SessionStore } from './session-store.ts';
import { createDoor, createSessionReader, registerLink, registerSessions } from './sessions.ts';

export type ConsoleOptions = CaptureSources &
  OperateSources & {
    readonly sessions: SessionStore;
    readonly publicUrl: string | undefined;
  };

export function consoleRoutes(options: ConsoleOptions): RegisterRoutes {
  const { sessions, publicUrl } = options;
  // Read when the first page is asked for: a gateway whose console is not opened does not compress it.
  let loading: Promise<Assets> | undefined;
  const assets = (): Promise<Assets> => {
    loading ??= loadAssets();
    return loading;
  };

  return (server, tokens, { services, streams }) => {
    const { apps, bots } = services;
    const reader = createSessionReader({ sessions, apps, publicUrl });
    registerPage(server, assets, publicUrl);
    registerSessions(server, { sessions, apps, publicUrl }, reader);
    registerLink(server, { sessions, apps, publicUrl }, tokens);

    const authenticate = {
      jwt: (headers: Asked['headers'], method = 'GET') => reader.appOf({ headers, method }),
      apiKey: () =>
        Promise.reject(new ProblemError('not-found', 'There is nothing at this address.')),
    };
    const caller = createCaller(authenticate, bots);
    void server.register(
      (scope, _options, done) => {
        // The document is of what programs may ask.
        scope.addHook('onRoute', (route) => {
          route.schema = { ...route.schema, hide: true };
        });
        scope.addHook('onRequest', createDoor({ publicUrl }));
        registerDialout(scope, { services, caller, metrics: undefined });
        registerCallRoutes(scope, { services, caller });
        registerDeadLetters(scope, { services, caller });
        registerAppWideRoutes(scope, { services, caller });
        registerEventRoutes(scope, { services, streams, caller });
        registerCaptures(scope, { services, caller, sources: options });
        registerOperate(scope, { caller, sources: options });
        done();
      },
      { prefix: '/console' },
    );
  };
}
