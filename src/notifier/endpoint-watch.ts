// Watches receivers: one alert when an endpoint keeps failing, one when it is back. Attempts are counted in memory and reported
// now and then, so that deliveries pay nothing for it; the streaks are rows that all nodes share, and one node tells each.

import { createHash } from 'node:crypto';
import type { Logger } from '../lib/logger.ts';
import {
  type Endpoint,
  type EndpointReport,
  type EndpointStore,
  type EndpointStreak,
  maxEndpoints,
} from './endpoint-store.ts';

/** What is published. Of the URL nothing but scheme, host and port. */
export type EndpointAlert = {
  /** The same however often, and by whichever node, it is published. */
  readonly id: string;
  readonly type: 'alert';
  readonly time: string;
  readonly accountId: string;
  readonly appId: string;
  readonly data: {
    readonly alert: 'endpoint-failing' | 'endpoint-recovered';
    readonly endpoint: string;
    readonly failingSince: string;
    /** In a row, of all its calls. */
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
  /** Endpoints that an alert is out for, by app; after each look. */
  readonly onFailing?: (byApp: ReadonlyMap<string, number>) => void;
};

export type AlertThreshold = {
  /** In a row, over at least this time: a restart of the receiver is no reason for an alert. */
  readonly failures: number;
  readonly failingForMs: number;
};

export const defaultAlertThreshold: AlertThreshold = { failures: 5, failingForMs: 5 * 60_000 };

export class EndpointWatch {
  readonly #deps: EndpointWatchDeps;
  readonly #threshold: AlertThreshold;
  /** What is not reported yet. */
  #unreported = new Map<string, EndpointReport>();
  /** Keys of those that fail as far as the database knows: only of these a success is news. */
  #known: ReadonlySet<string> = new Set();

  constructor(deps: EndpointWatchDeps, threshold: AlertThreshold = defaultAlertThreshold) {
    this.#deps = deps;
    this.#threshold = threshold;
  }

  /** `error`: left out where it was delivered. */
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

  /** Something was seen that a look would report. */
  hasNews(): boolean {
    return this.#unreported.size > 0;
  }

  /** Reports, alerts about what is due, and looks what fails. False: nothing is left for the next look. */
  async look(): Promise<boolean> {
    const { store, now } = this.#deps;
    await this.report();
    const at = now();
    const due = await store.claim(at, {
      failures: this.#threshold.failures,
      failingSince: new Date(at.getTime() - this.#threshold.failingForMs),
    });
    for (const streak of due) await this.#alert(streak, at);
    const failing = await store.failing();
    this.#known = new Set(failing.map(keyOf));
    const byApp = new Map<string, number>();
    for (const { appId, alerted } of failing) {
      if (alerted) byApp.set(appId, (byApp.get(appId) ?? 0) + 1);
    }
    this.#deps.onFailing?.(byApp);
    return failing.length > 0 || (await store.watchesAny()) || this.hasNews();
  }

  async report(): Promise<void> {
    if (this.#unreported.size === 0) return;
    const reports = this.#unreported;
    this.#unreported = new Map();
    // Lost if the database is unreachable: so is the log of these attempts.
    await this.#deps.store.report([...reports.values()]);
  }

  async #alert(streak: EndpointStreak, at: Date): Promise<void> {
    const alert = alertOf(streak, at);
    try {
      await this.#deps.publish(alert);
      await this.#deps.store.alerted(streak);
    } catch (error) {
      // The claim runs out, and the node that looks next alerts.
      this.#deps.logger.warn({ err: error, alertId: alert.id }, 'alert not published');
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
