// A line's streams, one at a time. `want` starts loading the settings, and the stream opens once
// they are loaded.

import type { AcceptedCall } from '../call-types.ts';
import type { MediaSession } from '../media.ts';
import type { StreamPort } from '../ports.ts';
import type { NumberedStream, StreamReport, StreamSettings } from './stream.ts';
import type { StreamStop } from './stream-reasons.ts';

type Wanted = { readonly ordinal: number; readonly settings: Promise<StreamSettings> };

export class LineStream {
  readonly #call: AcceptedCall;
  readonly #port: StreamPort | undefined;
  readonly #report: (report: StreamReport, ordinal: number) => void;
  #wanted: Wanted | undefined;

  /** @param port undefined if calls never have a stream */
  constructor(
    call: AcceptedCall,
    port: StreamPort | undefined,
    report: (report: StreamReport, ordinal: number) => void,
  ) {
    this.#call = call;
    this.#port = port;
    this.#report = report;
  }

  want(stream: NumberedStream): void {
    const settings = this.#port?.settingsOf(this.#call, stream);
    if (settings === undefined) return;
    // If this fails, `answer` reports the failure. Before the answer, a failure doesn't matter.
    settings.catch(() => undefined);
    this.#wanted = { ordinal: stream.ordinal, settings };
  }

  /**
   * Connects the media to the bot while the phone rings. `isRinging` is checked again once the
   * settings are loaded.
   */
  prepare(session: Pick<MediaSession, 'send'>, isRinging: () => boolean): void {
    const wanted = this.#wanted;
    wanted?.settings.then(
      (settings) => {
        if (this.#wanted === wanted && isRinging())
          session.send({ kind: 'stream', settings, phase: 'ringing' });
      },
      () => undefined,
    );
  }

  answer(session: Pick<MediaSession, 'send'>, isAnswered: () => boolean): void {
    const wanted = this.#wanted;
    wanted?.settings.then(
      (settings) => {
        if (this.#wanted === wanted && isAnswered())
          session.send({ kind: 'stream', settings, phase: 'answered' });
      },
      () => {
        if (this.#wanted !== wanted) return;
        this.#report({ kind: 'lost', reason: 'settings-unreadable' }, wanted.ordinal);
      },
    );
  }

  stop(session: Pick<MediaSession, 'send'> | undefined, reason: StreamStop): void {
    if (this.#wanted === undefined) return;
    this.#wanted = undefined;
    session?.send({ kind: 'stopStream', reason });
  }
}
