// `/live`, `/ready` and `/metrics`, for operators and process supervisors. These paths don't need a
// token, so bind the port to an address that only operators can reach, or filter the paths in a
// proxy.

import type { Logger } from '../lib/logger.ts';
import { within } from '../lib/within.ts';
import type { PublicServer } from '../servers/server-line.ts';
import type { ApiInstance } from './http.ts';
import type { Metrics } from './metrics.ts';

/** A check that `/ready` runs. */
export type HealthCheck = {
  readonly name: string;
  /** What a failure means. This text is public, so it must not reveal internals. */
  readonly failure: string;
  /**
   * The name under which `degraded` lists the check if the gateway stays ready while it fails.
   * Undefined if a failure makes the gateway unready.
   */
  readonly degradedAs?: string;
  check(): Promise<{ readonly ok: boolean; readonly detail?: string }>;
};

export type HealthDependencies = {
  readonly health: readonly HealthCheck[];
  /** Returns the state of each server under the gateway. */
  readonly servers: () => readonly PublicServer[];
  readonly logger: Logger;
  readonly metrics: Metrics | undefined;
};

/**
 * Probes usually give up after one or two seconds. We must respond earlier than that, because the
 * response names the check that hangs.
 */
const checkTimeoutMs = 1_000;

export function registerHealthRoutes(server: ApiInstance, deps: HealthDependencies): void {
  const checks = deps.health.map((check) => boundedCheck(check, deps.logger));

  server.get('/live', { schema: { hide: true } }, () => ({ status: 'live' }));

  server.get('/ready', { schema: { hide: true } }, async (_request, reply) => {
    const results = await Promise.all(
      checks.map(async (check) => ({ ...check, ok: await check.run() })),
    );
    const failed = results.filter(({ ok }) => !ok);
    const failures = failed
      .filter(({ degradedAs }) => degradedAs === undefined)
      .map(({ failure }) => failure);
    const degraded = failed.flatMap(({ degradedAs }) => degradedAs ?? []);
    const ready = failures.length === 0;
    void reply.code(ready ? 200 : 503);
    if (!ready) void reply.header('retry-after', '5');
    return {
      status: ready ? 'ready' : 'unready',
      ...(ready ? {} : { reasons: failures }),
      ...(degraded.length === 0 ? {} : { degraded }),
      checks: Object.fromEntries(results.map(({ name, ok }) => [name, ok ? 'ok' : 'failed'])),
      // After the checks, which may have noticed a change.
      servers: deps.servers(),
    };
  });

  server.get('/metrics', { schema: { hide: true } }, async (_request, reply) => {
    const { metrics } = deps;
    if (metrics === undefined) return reply.callNotFound();
    return reply.header('content-type', metrics.contentType).send(await metrics.render());
  });
}

type BoundedCheck = Pick<HealthCheck, 'name' | 'failure' | 'degradedAs'> & {
  run(): Promise<boolean>;
};

/**
 * Limits how long a check may take. A check that hangs isn't started again until it returns, so
 * probes don't pile up behind it.
 */
function boundedCheck(check: HealthCheck, logger: Logger): BoundedCheck {
  let running: Promise<boolean> | undefined;
  let wasOk = true;
  // Log only changes, because load balancers probe every second, even during a shutdown or an
  // outage.
  const logChange = (ok: boolean, why: object): boolean => {
    if (!ok && wasOk) logger.warn({ check: check.name, ...why }, 'health check failed');
    if (ok && !wasOk) logger.info({ check: check.name }, 'health check passes again');
    wasOk = ok;
    return ok;
  };
  const ask = async (): Promise<boolean> => {
    try {
      const { ok, detail } = await check.check();
      return logChange(ok, { detail });
    } catch (error) {
      return logChange(false, { err: error });
    } finally {
      running = undefined;
    }
  };
  return {
    name: check.name,
    failure: check.failure,
    ...(check.degradedAs === undefined ? {} : { degradedAs: check.degradedAs }),
    run: async () => {
      running ??= ask();
      return (await within(running, checkTimeoutMs)) ?? false;
    },
  };
}
