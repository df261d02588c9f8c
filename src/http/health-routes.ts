// For the operator and their supervisor: is it alive, can it take requests, what does it measure. No token: bind the port
// to where only operators reach these, or filter the paths in front.

import type { Logger } from '../lib/logger.ts';
import { within } from '../lib/within.ts';
import type { ApiInstance } from './http.ts';
import type { Metrics } from './metrics.ts';

/** What `/ready` asks of each part. */
export type HealthCheck = {
  readonly name: string;
  /** What it means when it does not pass. It is public: nothing of the inside. */
  readonly failure: string;
  /** The gateway does without it for a while: no reason not to be ready, but named by this among what is `degraded`. */
  readonly degradedAs?: string;
  check(): Promise<{ readonly ok: boolean; readonly detail?: string }>;
};

export type HealthDependencies = {
  readonly health: readonly HealthCheck[];
  readonly logger: Logger;
  readonly metrics: Metrics | undefined;
};

/** Probes usually give up after one or two seconds: an answer that says what hangs must come before. */
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

/** A check that hangs is asked again only when it has returned, so that probes do not pile up behind it. */
function boundedCheck(check: HealthCheck, logger: Logger): BoundedCheck {
  let running: Promise<boolean> | undefined;
  let wasOk = true;
  // Said when it changes: a load balancer asks every second, for as long as a shutdown or an outage takes.
  const say = (ok: boolean, why: object): boolean => {
    if (!ok && wasOk) logger.warn({ check: check.name, ...why }, 'health check failed');
    if (ok && !wasOk) logger.info({ check: check.name }, 'health check passes again');
    wasOk = ok;
    return ok;
  };
  const ask = async (): Promise<boolean> => {
    try {
      const { ok, detail } = await check.check();
      return say(ok, { detail });
    } catch (error) {
      return say(false, { err: error });
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
