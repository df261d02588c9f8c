// A leg that is ready and waits for its trunk's turn: all that takes unsteady time (a media port, the machine, SQL) is done
// before, so that the INVITE leaves at its instant. Given up while it waits, it never was on the wire.

import type { CallLeg, Clock, LegObserver } from '../calls/ports.ts';
import type { Turn } from './trunk-pacer.ts';

export type HeldLegParts = {
  readonly turn: Turn;
  /** Called once, at its turn. */
  readonly place: () => CallLeg;
  readonly observer: Pick<LegObserver, 'onFailed'>;
  readonly clock: Clock;
};

export class HeldLeg implements CallLeg {
  readonly released: Promise<void>;
  readonly #parts: HeldLegParts;
  #release: () => void = () => undefined;
  #isOver = false;
  #placed: CallLeg | undefined;

  constructor(parts: HeldLegParts) {
    this.#parts = parts;
    this.released = new Promise((resolve) => {
      this.#release = resolve;
    });
    void parts.turn(() => !this.#isOver).then(() => this.#place());
  }

  cancel(reason: string): void {
    if (this.#placed === undefined) this.#fail({ sipStatus: 487, kind: 'cancelled', reason });
    else this.#placed.cancel(reason);
  }

  acknowledge(): void {
    this.#placed?.acknowledge();
  }

  hangUp(reason: string): void {
    if (this.#placed === undefined) this.cancel(reason);
    else this.#placed.hangUp(reason);
  }

  #place(): void {
    if (this.#isOver) return;
    try {
      this.#placed = this.#parts.place();
    } catch (error) {
      // Nobody is above us on the stack any more who could be told otherwise.
      this.#fail({ kind: 'transport', reason: `The INVITE could not be sent: ${String(error)}` });
      return;
    }
    void this.#placed.released.then(this.#release);
  }

  #fail(failure: Omit<Parameters<LegObserver['onFailed']>[0], 'at'>): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#parts.observer.onFailed({ at: this.#parts.clock.now(), ...failure });
    this.#release();
  }
}
