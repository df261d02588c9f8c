// Ends legs whose engine connection broke. Their calls have ended, but the far end may still be
// connected.
// - When the engine is back, this process ends the leg by the engine's ids.
// - While the engine stays unreachable, this process asks other processes, which may still reach
//   it.
// - If the leg has rung, another engine of this process can send a rebuilt BYE.
// - A leg that was only CANCELled stays in this list for `lateAnswerMs`. A late 200 OK would put
//   the far end into a call that no process has.

import type { LegEndResult, StoredLeg } from '../../calls/contract/stored-leg.ts';
import { inBackground } from '../../lib/in-background.ts';
import type { Logger } from '../../lib/logger.ts';
import type { EngineLink } from '../engine/engine-link.ts';
import type { SipLimits } from '../engine/sip-limits.ts';
import { endStoredLegOn } from './stored-leg-end.ts';

type Abandoned = {
  readonly leg: StoredLeg;
  readonly at: number;
  /** When the leg was first CANCELled, if the CANCEL is not known to have ended it. */
  cancelledAt: number | undefined;
  /** Called when nothing more will be done about the leg. */
  readonly settle: () => void;
  /** True while a link of this process is ending the leg. */
  isBeingEnded: boolean;
  /**
   * True while another process is asked to end the leg. The leg's engine may come back meanwhile.
   */
  isAskingOthers: boolean;
};

export type AbandonedLegsDependencies = {
  readonly limits: SipLimits;
  readonly logger: Logger;
  /** Returns the link to this engine. Undefined while it is down. */
  readonly linkOf: (engine: string) => EngineLink | undefined;
  /** Returns a link to any engine but this one. Undefined if no other engine is connected. */
  readonly otherLink: (engine: string) => EngineLink | undefined;
  readonly askOthers: (leg: StoredLeg) => Promise<LegEndResult>;
};

/**
 * Largest number of requests to other processes at once. An engine whose connection broke may have
 * had thousands of legs.
 */
const maxRequests = 100;

export class AbandonedLegs {
  readonly #dependencies: AbandonedLegsDependencies;
  readonly #legs = new Set<Abandoned>();
  #asked = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(dependencies: AbandonedLegsDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Resolves when the leg is ended or given up. Never resolves if this process stops first: the
   * next process finds the leg in SQL.
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

  /** If it fails, the leg stays in the list and the next sweep tries again. */
  #end(link: EngineLink, entry: Abandoned): void {
    if (entry.isBeingEnded) return;
    entry.isBeingEnded = true;
    const ended = this.#endOn(link, entry).finally(() => {
      entry.isBeingEnded = false;
    });
    inBackground(ended, this.#dependencies.logger, 'ending an abandoned leg');
  }

  async #endOn(link: EngineLink, entry: Abandoned): Promise<void> {
    const result = await endStoredLegOn(link, entry.leg, this.#dependencies.limits);
    // If the engine went away again, the leg is ended when the engine is next back.
    const isLost = result === 'unreachable' && !link.isUp;
    if (!isLost && !this.#mayBeAnswered(entry, result)) this.#drop(entry, result);
  }

  /** If it fails, the leg stays in the list and the next sweep asks again. */
  async #askOthers(entry: Abandoned): Promise<void> {
    if (entry.isAskingOthers || this.#asked >= maxRequests) return;
    entry.isAskingOthers = true;
    this.#asked += 1;
    const result = await this.#dependencies.askOthers(entry.leg).finally(() => {
      this.#asked -= 1;
      entry.isAskingOthers = false;
    });
    if (result === 'unreachable' || this.#mayBeAnswered(entry, result)) return;
    // Only its own engine knows a leg that has not rung. The other process may have asked a
    // different engine, so its `gone` proves nothing.
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

/** Returns true if a BYE can be built for the leg: it was answered or has rung. */
function hasDialog(leg: StoredLeg): boolean {
  return leg.dialogId !== undefined || leg.remoteTag !== undefined;
}
