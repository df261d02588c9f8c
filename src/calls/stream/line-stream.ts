// The streams of one line, one at a time. The settings of a stream are requested when it is wanted,
// and are waited for before it opens.

import type { AcceptedCall } from '../call-types.ts';
import type { MediaSession } from '../media.ts';
import type { StreamPort } from '../ports.ts';
import type { NumberedStream, StreamReport, StreamSettings } from './stream.ts';

type Wanted = { readonly ordinal: number; readonly settings: Promise<StreamSettings> };

export class LineStream {
  readonly #call: AcceptedCall;
  readonly #port: StreamPort | undefined;
  readonly #report: (report: StreamReport, ordinal: number) => void;
  #wanted: Wanted | undefined;

  /** If `port` is undefined, no call has a stream. */
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
    // A failure is reported in `answer`, and does not matter before.
    settings.catch(() => undefined);
    this.#wanted = { ordinal: stream.ordinal, settings };
  }

  /**
   * Has the media connect to the bot because the phone rings. `isRinging`: whether it still does
   * when the settings are there.
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

  stop(session: Pick<MediaSession, 'send'> | undefined, reason: string): void {
    if (this.#wanted === undefined) return;
    this.#wanted = undefined;
    session?.send({ kind: 'stopStream', reason });
  }
}
