// Call detail records in drachtio's format, for applications that have subscribed with
// `route|cdr:attempt`, `cdr:start` or `cdr:stop`.

import type { EngineClock } from '../transaction/engine-timing.ts';
import { formatTimeOfDay } from '../transaction/engine-timing.ts';
import type { RouteTable } from '../transport/route-table.ts';

type Source = 'application' | 'network';

export type StopReason =
  | 'call-rejected'
  | 'call-canceled'
  | 'normal-release'
  | 'session-expired'
  | 'ackbye';

export class CallReports {
  readonly #routes: RouteTable;
  readonly #clock: EngineClock;

  constructor(routes: RouteTable, clock: EngineClock) {
    this.#routes = routes;
    this.#clock = clock;
  }

  attempt(source: Source, text: string): void {
    this.#report('cdr:attempt', [source, formatTimeOfDay(this.#clock.now())], text);
  }

  start(source: Source, role: 'uac' | 'uas', text: string): void {
    this.#report('cdr:start', [source, formatTimeOfDay(this.#clock.now()), role], text);
  }

  stop(source: Source, reason: StopReason, text: string): void {
    this.#report('cdr:stop', [source, formatTimeOfDay(this.#clock.now()), reason], text);
  }

  /**
   * Sends the record to one of the applications that have subscribed to this kind of record. If
   * there are several, they take turns, as they do for requests.
   */
  #report(verb: string, fields: readonly string[], text: string): void {
    this.#routes.next(verb)?.report([verb, ...fields], text);
  }
}
