// Publishes one alert when an endpoint keeps failing, and another once the endpoint has recovered.
// Each node counts attempts in memory and stores the counts every so often, so deliveries don't
// need an extra statement. The stored failure streaks are shared by all nodes, but each alert is
// published by only one of them.

import { createHash } from 'node:crypto';
import type { Logger } from '../lib/logger.ts';
import {
  type Endpoint,
  type EndpointReport,
  type EndpointStore,
  type EndpointStreak,
  maxEndpoints,
} from './endpoint-store.ts';

/** The published alert. It contains only the URL's scheme, host and port. */
export type EndpointAlert = {
  /** The same on every node and in every repetition, so consumers can drop repetitions. */
  readonly id: string;
  readonly type: 'alert';
  readonly time: string;
  readonly accountId: string;
  readonly appId: string;
  readonly data: {
    readonly alert: 'endpoint-failing' | 'endpoint-recovered';
    readonly endpoint: string;
    readonly failingSince: string;
    /** Counts consecutive failures across all the endpoint's calls. */
    readonly failures: number;
    readonly lastError?: string;
    readonly recoveredAt?: string;
  };
};

export type EndpointWatchDeps = {
  readonly store: EndpointStore;
  readonly publish: (alert: EndpointAlert) => Promise<void>;
  readonly now: () => Date;
  readonly logger: Logger;
  /** Called after each check, with the number of alerted endpoints by app. */
  readonly onFailing?: (byApp: ReadonlyMap<string, number>) => void;
};

export type AlertThreshold = {
  /**
   * We raise an alert after this many consecutive failures over at least `failingForMs`. Restarting
   * a receiver shouldn't raise an alert.
   */
  readonly failures: number;
  readonly failingForMs: number;
};

export const defaultAlertThreshold: AlertThreshold = { failures: 5, failingForMs: 5 * 60_000 };

export class EndpointWatch {
  readonly #deps: EndpointWatchDeps;
  readonly #threshold: AlertThreshold;
  /** Reports that we haven't stored yet. */
  #unreported = new Map<string, EndpointReport>();
  /**
   * Keys of the endpoints that are failing according to the database. Only their successes need to
   * be stored.
   */
  #known: ReadonlySet<string> = new Set();

  constructor(deps: EndpointWatchDeps, threshold: AlertThreshold = defaultAlertThreshold) {
    this.#deps = deps;
    this.#threshold = threshold;
  }

  /** Counts an attempt. `error` is undefined if the notification was delivered. */
  onAttempt(endpoint: Endpoint, at: Date, error?: string): void {
    const key = keyOf(endpoint);
    const before = this.#unreported.get(key);
    if (error === undefined) {
      if (this.#known.has(key))
        this.#unreported.set(key, { ...endpoint, lastSuccessAt: at, failures: 0 });
      else if (before !== undefined) this.#unreported.delete(key);
      return;
    }
    if (before === undefined && this.#unreported.size >= maxEndpoints) return;
    const failures = (before?.failures ?? 0) + 1;
    this.#unreported.set(key, {
      ...endpoint,
      ...(before?.lastSuccessAt === undefined ? {} : { lastSuccessAt: before.lastSuccessAt }),
      failures,
      failingSince: before?.failingSince ?? at,
      lastFailedAt: at,
      lastError: error,
    });
  }

  /** Returns true if any reports still have to be stored. */
  hasNews(): boolean {
    return this.#unreported.size > 0;
  }

  /**
   * Stores the reports, publishes any alerts that are due and reads the failing endpoints.
   *
   * @returns false if the next check will have nothing to do, unless an attempt fails before then
   */
  async check(): Promise<boolean> {
    const { store, now } = this.#deps;
    await this.report();
    // Usually no endpoint fails. This statement is then the only one of the check.
    if (!(await store.watchesAny())) {
      this.#noteFailing([]);
      return this.hasNews();
    }
    const at = now();
    const due = await store.claim(at, {
      failures: this.#threshold.failures,
      failingSince: new Date(at.getTime() - this.#threshold.failingForMs),
    });
    for (const streak of due) await this.#alert(streak, at);
    const failing = await store.failing();
    this.#noteFailing(failing);
    return failing.length > 0 || (await store.watchesAny()) || this.hasNews();
  }

  #noteFailing(failing: Awaited<ReturnType<EndpointStore['failing']>>): void {
    this.#known = new Set(failing.map(keyOf));
    const byApp = new Map<string, number>();
    for (const { appId, alerted } of failing) {
      if (alerted) byApp.set(appId, (byApp.get(appId) ?? 0) + 1);
    }
    this.#deps.onFailing?.(byApp);
  }

  async report(): Promise<void> {
    if (this.#unreported.size === 0) return;
    const reports = this.#unreported;
    this.#unreported = new Map();
    // If the database is unreachable, we lose the reports, and the log of these attempts as well.
    await this.#deps.store.report([...reports.values()]);
  }

  async #alert(streak: EndpointStreak, at: Date): Promise<void> {
    const alert = alertOf(streak, at);
    try {
      await this.#deps.publish(alert);
      await this.#deps.store.alerted(streak);
    } catch (error) {
      // Once the claim has run out, the next node to check publishes the alert.
      this.#deps.logger.warn({ err: error, alertId: alert.id }, 'cannot publish an alert');
    }
  }
}

function keyOf({ appId, origin }: Endpoint): string {
  return `${appId} ${origin}`;
}

function alertOf(streak: EndpointStreak, at: Date): EndpointAlert {
  const { accountId, appId, origin, failingSince, failures, lastError, recoveredAt } = streak;
  const alert = recoveredAt === undefined ? 'endpoint-failing' : 'endpoint-recovered';
  const digest = createHash('sha256').update(keyOf(streak)).digest('hex').slice(0, 16);
  return {
    id: `alert-${digest}-${failingSince.getTime()}-${alert}`,
    type: 'alert',
    time: (recoveredAt ?? at).toISOString(),
    accountId,
    appId,
    data: {
      alert,
      endpoint: origin,
      failingSince: failingSince.toISOString(),
      failures,
      ...(lastError === undefined ? {} : { lastError }),
      ...(recoveredAt === undefined ? {} : { recoveredAt: recoveredAt.toISOString() }),
    },
  };
}
