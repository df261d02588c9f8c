// Keeps us connected to a drachtio server. Whenever a link goes down, a new one is opened after a
// back-off.

import { EngineLink, engineName, type LinkOptions } from './engine-link.ts';

export type ConnectionOptions = Omit<LinkOptions, 'onUp' | 'onDown'> & {
  readonly onUp: (link: EngineLink) => void;
};

export class EngineConnection {
  readonly engine: string;
  readonly #options: ConnectionOptions;
  #link: EngineLink | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  #delayMs: number;
  #isClosed = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.engine = engineName(options.server);
    this.#delayMs = options.limits.reconnectMinMs;
    this.#open();
  }

  /** The current link. Undefined unless it's up. */
  get link(): EngineLink | undefined {
    return this.#link?.isUp === true ? this.#link : undefined;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#retryTimer);
    this.#link?.close('gateway stopped');
  }

  #open(): void {
    const { logger, onUp } = this.#options;
    const link: EngineLink = new EngineLink({
      ...this.#options,
      onUp: () => {
        this.#delayMs = this.#options.limits.reconnectMinMs;
        logger.info({ engine: this.engine }, 'sip engine connected');
        onUp(link);
      },
      onDown: (reason) => this.#onDown(reason),
    });
    this.#link = link;
  }

  #onDown(reason: string): void {
    if (this.#isClosed) return;
    const { limits, logger } = this.#options;
    const delayMs = this.#delayMs;
    this.#delayMs = Math.min(delayMs * 2, limits.reconnectMaxMs);
    logger.warn({ engine: this.engine, reason, retryInMs: delayMs }, 'sip engine not connected');
    this.#retryTimer = setTimeout(() => this.#open(), delayMs);
  }
}
