// What was opened, closed in the opposite order: each part may rely on everything that was opened before it.

import type { Logger } from './logger.ts';

type Closer = { readonly name: string; readonly close: () => unknown };

export class Closers {
  readonly #closers: Closer[] = [];
  readonly #logger: Logger;
  #closing: Promise<void> | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  add(name: string, close: Closer['close']): void {
    this.#closers.push({ name, close });
  }

  /** Closes all, whatever one of them throws; once, however often it is called. */
  closeAll(): Promise<void> {
    this.#closing ??= this.#closeInTurn();
    return this.#closing;
  }

  async #closeInTurn(): Promise<void> {
    for (let closer = this.#closers.pop(); closer !== undefined; closer = this.#closers.pop()) {
      try {
        await closer.close();
      } catch (error) {
        this.#logger.error({ err: error, part: closer.name }, 'a part did not close cleanly');
      }
    }
  }
}
