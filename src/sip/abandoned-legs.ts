// Legs whose engine went away under them. Their calls have ended, but the far end may still be in one: each is ended by its
// ids when its engine is back, or, once it was answered, by a rebuilt BYE through another engine when it stays away.

import type { StoredLeg } from '../calls/ports.ts';
import type { Logger } from '../lib/logger.ts';
import type { EngineLink } from './engine-link.ts';
import { endOrphanOn } from './orphans.ts';
import type { SipLimits } from './sip-limits.ts';

type Abandoned = { readonly leg: StoredLeg; readonly at: number };

export class AbandonedLegs {
  readonly #limits: SipLimits;
  readonly #logger: Logger;
  /** A link to another engine than this one, if there is one. */
  readonly #otherLink: (engine: string) => EngineLink | undefined;
  #legs: Abandoned[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(dependencies: {
    readonly limits: SipLimits;
    readonly logger: Logger;
    readonly otherLink: (engine: string) => EngineLink | undefined;
  }) {
    this.#limits = dependencies.limits;
    this.#logger = dependencies.logger;
    this.#otherLink = dependencies.otherLink;
  }

  add(leg: StoredLeg): void {
    if (this.#legs.length >= this.#limits.abandonedLegs) {
      this.#logger.warn(
        { engine: leg.engine },
        'too many legs of lost engines, one is left to itself',
      );
      return;
    }
    this.#legs.push({ leg, at: performance.now() });
    this.#timer ??= setInterval(() => this.#sweep(), this.#limits.takeOverAfterMs);
  }

  onUp(link: EngineLink): void {
    this.#end(
      link,
      this.#take(({ leg }) => leg.engine === link.engine),
      true,
    );
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#legs = [];
  }

  #sweep(): void {
    const now = performance.now();
    this.#take(({ at }) => now - at > this.#limits.abandonedForMs);
    const overdue = ({ leg, at }: Abandoned) =>
      leg.dialogId !== undefined && now - at >= this.#limits.takeOverAfterMs;
    for (const engine of new Set(this.#legs.filter(overdue).map(({ leg }) => leg.engine))) {
      const link = this.#otherLink(engine);
      if (link === undefined) continue;
      const legs = this.#take((entry) => entry.leg.engine === engine && overdue(entry));
      this.#end(link, legs, false);
    }
    if (this.#legs.length === 0) this.close();
  }

  #end(link: EngineLink, legs: readonly StoredLeg[], isSameEngine: boolean): void {
    for (const leg of legs) {
      void endOrphanOn(link, leg, isSameEngine, this.#limits).then((result) => {
        this.#logger.info({ engine: link.engine, result }, 'leg of a lost engine ended');
      });
    }
  }

  #take(isWanted: (entry: Abandoned) => boolean): readonly StoredLeg[] {
    const taken = this.#legs.filter(isWanted);
    this.#legs = this.#legs.filter((entry) => !isWanted(entry));
    return taken.map(({ leg }) => leg);
  }
}
