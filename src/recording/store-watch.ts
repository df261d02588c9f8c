// Knows whether the store of recordings works: from every attempt to store, and from a check of its
// own, which also finds out that the store is back.

import type { Done, RecordingStore, StoreFault } from './store/recording-store.ts';

export type StoreCondition = {
  /** The last fault. Undefined while the store works, and until it was first used. */
  readonly fault: StoreFault | undefined;
  /** Since when it fails. */
  readonly since: Date | undefined;
  /** True once something was stored or checked. */
  readonly isKnown: boolean;
};

export class StoreWatch {
  readonly #store: Pick<RecordingStore, 'check'>;
  readonly #now: () => Date;
  readonly #onBack: () => void;
  #condition: StoreCondition = { fault: undefined, since: undefined, isKnown: false };

  /** @param onBack called when the store works again */
  constructor(store: Pick<RecordingStore, 'check'>, now: () => Date, onBack: () => void) {
    this.#store = store;
    this.#now = now;
    this.#onBack = onBack;
  }

  get condition(): StoreCondition {
    return this.#condition;
  }

  async check(): Promise<void> {
    this.note(await this.#store.check());
  }

  /** Notes what became of an attempt. */
  note(done: Done): void {
    const before = this.#condition;
    this.#condition = done.ok
      ? { fault: undefined, since: undefined, isKnown: true }
      : { fault: done.fault, since: before.since ?? this.#now(), isKnown: true };
    if (done.ok && before.fault !== undefined) this.#onBack();
  }
}
