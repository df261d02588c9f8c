// Opens the console and connects it to its data.

import type { RegisterRoutes } from '../api/server.ts';
import type { Captures } from '../capture/captures.ts';
import { consoleRoutes } from '../console/console.ts';
import { consoleAddress, linkWith } from '../console/console-address.ts';
import type { TrunkView } from '../console/operate-routes.ts';
import { createSessionStore } from '../console/session-store.ts';
import { grantFor } from '../console/sessions.ts';
import { sandboxNumbers } from '../embedded/sandbox/sandbox-numbers.ts';
import { detectionSummary } from '../interactions/detection-summary.ts';
import { heldCalls } from '../interactions/held-calls.ts';
import { trunkTotals } from '../interactions/trunk-totals.ts';
import { failingReceivers, retryReceiver } from '../notifier/failing-receivers.ts';
import { devAppId } from '../store/apps/dev-app-file.ts';
import { trunkUse } from '../store/calls/trunk-use.ts';
import { listNodes } from '../store/nodes.ts';
import { openCaptureReader } from './captures.ts';
import type { Environment } from './environment.ts';
import type { Events } from './events.ts';
import { isServedLocally } from './networks.ts';
import type { Servers } from './servers.ts';
import type { SipParts } from './sip.ts';
import type { Storage } from './storage.ts';

type Parts = {
  readonly storage: Storage;
  readonly sip: SipParts;
  readonly captures: Captures;
  readonly events: Events;
  readonly servers: Servers;
};

export function openConsole(
  environment: Environment,
  { storage, sip, captures, events, servers }: Parts,
): RegisterRoutes {
  const { config, clock } = environment;
  const { reads } = storage.database;
  return consoleRoutes({
    sessions: createSessionStore(storage.database, clock),
    appNow: (appId) => storage.apps.findNow(appId),
    address: config.http,
    isDrachtio: sip.isDrachtio,
    captureOf: openCaptureReader(environment, { storage, captures, events }),
    sandboxNumbers:
      sip.sandbox === undefined ? [] : sandboxNumbers.map(({ number, name }) => ({ number, name })),
    receivers: (accountId) => failingReceivers(reads(accountId), accountId),
    retryReceiver: (accountId, origin) =>
      retryReceiver(storage.database.pool, { accountId, origin, now: clock.now() }),
    held: (scope) => heldCalls(reads(scope.accountId), scope),
    trunks: async (accountId) => trunksOf(sip, await trunkUse(reads(accountId))),
    trunkTotals: (accountId) => trunkTotals(reads(accountId), clock.now()),
    nodes: async (accountId) =>
      (await listNodes(reads(accountId))).map(({ ownerId, renewedAt, startedAt, ...node }) => ({
        ...node,
        startedAt: startedAt.toISOString(),
        isThis: ownerId === config.ownerId,
      })),
    servers: () => servers.watch.servers(),
    isDatabaseAway: () => servers.watch.facts().database.condition === 'away',
    detection: (accountId) => detectionSummary(reads(accountId), clock.now(), accountId),
  });
}

export type ConsoleAccess = {
  /** The console's URL. Undefined if the gateway doesn't serve a console on its address. */
  readonly address: string | undefined;
  /**
   * Creates a link that signs the user in as the dev app.
   * @returns undefined if there is no dev app, if other machines can reach the gateway, or if we
   *   couldn't create the link
   */
  link(): Promise<string | undefined>;
};

/** The link is valid for an hour, because a developer may want to read the documentation first. */
const startLinkLifetimeMs = 3_600_000;

export function createConsoleAccess(
  { config, clock, logger }: Environment,
  { database, apps }: Storage,
  httpUrl: string,
): ConsoleAccess {
  const address = consoleAddress(config.http, Number(new URL(httpUrl).port || 80));
  const makeLink = async (): Promise<string | undefined> => {
    if (address === undefined || config.databaseUrl !== undefined || !isServedLocally(config))
      return undefined;
    const app = await apps.findNow(devAppId);
    if (app === undefined) return undefined;
    const sessions = createSessionStore(database, clock);
    const { token } = await sessions.createLink(grantFor(app), startLinkLifetimeMs);
    return linkWith(address, token);
  };
  return {
    address,
    link: () =>
      makeLink().catch((error: unknown) => {
        logger.warn({ err: error }, 'a link to the console could not be created');
        return undefined;
      }),
  };
}

function trunksOf(sip: SipParts, use: Awaited<ReturnType<typeof trunkUse>>): readonly TrunkView[] {
  const gateways = sip.gateways();
  const names = [
    ...new Set([...gateways.map(({ trunk }) => trunk), ...use.map(({ trunk }) => trunk)]),
  ];
  return names.map((name) => {
    const { onIt = 0, waiting = 0 } = use.find(({ trunk }) => trunk === name) ?? {};
    return {
      name,
      gateways: gateways
        .filter(({ trunk }) => trunk === name)
        .map(({ gateway, isUp }) => ({ name: gateway, isUp })),
      ...sip.router.limitsOf(name),
      ...{ onIt, waiting },
    };
  });
}
