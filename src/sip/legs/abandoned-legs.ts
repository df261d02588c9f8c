// Ends legs whose engine connection broke. The calls have ended, but their far ends may still be
// connected.
// - Once the engine is back, this process ends each leg using the engine's ids.
// - While the engine is unreachable, this process asks other processes, which may still be able to
//   reach it.
// - If a leg has rung, another of this process's engines can send a rebuilt BYE.
// - A leg that has only been CANCELled stays in the list for `lateAnswerMs`. Otherwise a late 200
//   OK could leave the far end in a call that no process knows about.

import type { LegEndResult, StoredLeg } from '../../calls/contract/stored-leg.ts';
import { inBackground } from '../../lib/in-background.ts';
import type { Logger } from '../../lib/logger.ts';
import type { EngineLink } from '../engine/engine-link.ts';
import type { SipLimits } from '../engine/sip-limits.ts';
import type { Credentials } from '../trunks/routing.ts';
import { endStoredLegOn } from './stored-leg-end.ts';

type Abandoned = {
  readonly leg: StoredLeg;
  readonly at: number;
  /**
   * Time at which the leg was first CANCELled. Only set as long as the CANCEL may not have ended
   * the leg.
   */
  cancelledAt: number | undefined;
  /** Called once the leg has ended or we've given up on it. */
  readonly settle: () => void;
  /** True while a link of this process is ending the leg. */
  isBeingEnded: boolean;
  /**
   * True while we're waiting for another process to end the leg, whose engine may come back in the
   * meantime.
   */
  isAskingOthers: boolean;
};

export type AbandonedLegsDependencies = {
  readonly limits: SipLimits;
  readonly logger: Logger;
  /** Returns the link to this engine, or undefined while the link is down. */
  readonly linkOf: (engine: string) => EngineLink | undefined;
  /** Returns a link to any other engine, or undefined if none is connected. */
  readonly otherLink: (engine: string) => EngineLink | undefined;
  /** Returns the credentials of the leg's trunk. */
  readonly credentialsOf: (leg: StoredLeg) => Credentials | undefined;
  readonly askOthers: (leg: StoredLeg) => Promise<LegEndResult>;
};

/**
 * Maximum number of concurrent requests to other processes. We may lose the connection to an engine
 * with thousands of legs.
 */
const maxRequests = 100;

export class AbandonedLegs {
  readonly #dependencies: AbandonedLegsDependencies;
  readonly #legs = new Set<Abandoned>();
  #openRequests = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(dependencies: AbandonedLegsDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Resolves when the leg has ended or we've given up on it. If this process stops first, the
   * promise never resolves, and the next process finds the leg in the database.
   */
  add(leg: StoredLeg): Promise<void> {
    if (this.#isClosed) return new Promise(() => undefined);
    const { limits, logger } = this.#dependencies;
    if (this.#legs.size >= limits.abandonedLegs) {
      logger.warn({ engine: leg.engine }, 'too many abandoned legs: one was given up');
      return Promise.resolve();
    }
    this.#timer ??= setInterval(() => this.#sweep(), limits.abandonedSweepMs);
    return new Promise((settle) => {
      const at = performance.now();
      const initialState = { cancelledAt: undefined, isBeingEnded: false, isAskingOthers: false };
      this.#legs.add({ leg, at, settle, ...initialState });
    });
  }

  onUp(link: EngineLink): void {
    for (const entry of this.#legs) if (entry.leg.engine === link.engine) this.#end(link, entry);
  }

  close(): void {
    this.#isClosed = true;
    this.#legs.clear();
    clearInterval(this.#timer);
  }

  #sweep(): void {
    const { limits } = this.#dependencies;
    const now = performance.now();
    for (const entry of this.#legs) {
      const ageMs = now - entry.at;
      const isDue = ageMs >= limits.takeOverAfterMs || entry.cancelledAt !== undefined;
      if (ageMs > limits.abandonedForMs) this.#drop(entry);
      else if (isDue) this.#tryToEnd(entry);
    }
  }

  #tryToEnd(entry: Abandoned): void {
    const { linkOf, otherLink } = this.#dependencies;
    const { engine } = entry.leg;
    const link = linkOf(engine) ?? (hasDialog(entry.leg) ? otherLink(engine) : undefined);
    const { logger } = this.#dependencies;
    if (link === undefined)
      inBackground(this.#askOthers(entry), logger, 'asking another process to end a leg');
    else this.#end(link, entry);
  }

  /**
   * Tries to end the leg. If that fails, the leg stays in the list and the next sweep tries again.
   */
  #end(link: EngineLink, entry: Abandoned): void {
    if (entry.isBeingEnded) return;
    entry.isBeingEnded = true;
    const ended = this.#endOn(link, entry).finally(() => {
      entry.isBeingEnded = false;
    });
    inBackground(ended, this.#dependencies.logger, 'ending an abandoned leg');
  }

  async #endOn(link: EngineLink, entry: Abandoned): Promise<void> {
    const { limits, credentialsOf } = this.#dependencies;
    const result = await endStoredLegOn(link, entry.leg, limits, credentialsOf(entry.leg));
    // If we've lost the engine again, we'll end the leg the next time it comes back.
    const isLost = result === 'unreachable' && !link.isUp;
    if (!isLost && !this.#mayBeAnswered(entry, result)) this.#drop(entry, result);
  }

  /** Asks another process to end the leg. If that fails, the next sweep asks again. */
  async #askOthers(entry: Abandoned): Promise<void> {
    if (entry.isAskingOthers || this.#openRequests >= maxRequests) return;
    entry.isAskingOthers = true;
    this.#openRequests += 1;
    const result = await this.#dependencies.askOthers(entry.leg).finally(() => {
      this.#openRequests -= 1;
      entry.isAskingOthers = false;
    });
    if (result === 'unreachable' || this.#mayBeAnswered(entry, result)) return;
    // If a leg hasn't rung, only its own engine knows about it. The other process may have asked a
    // different engine, so its `gone` doesn't prove anything.
    const isKnown = hasDialog(entry.leg) || entry.cancelledAt !== undefined;
    if (result !== 'gone' || isKnown) this.#drop(entry, result);
  }

  #mayBeAnswered(entry: Abandoned, result: LegEndResult): boolean {
    if (result !== 'cancelled') return false;
    const now = performance.now();
    entry.cancelledAt ??= now;
    return now - entry.cancelledAt < this.#dependencies.limits.lateAnswerMs;
  }

  #drop(entry: Abandoned, result?: LegEndResult): void {
    if (!this.#legs.delete(entry)) return;
    if (result !== undefined) {
      const { engine } = entry.leg;
      this.#dependencies.logger.info({ engine, result }, 'abandoned leg ended');
    }
    entry.settle();
    if (this.#legs.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** Returns true if we can build a BYE for the leg, i.e. if it was answered or has rung. */
function hasDialog(leg: StoredLeg): boolean {
  return leg.dialogId !== undefined || leg.remoteTag !== undefined;
}
