// A leg observer that connects the leg to its media, as a call does.

import type { MediaSession } from '../../src/calls/media.ts';
import type { LegEvent } from '../../src/calls/ports.ts';
import { RecordingLeg } from './recording-leg.ts';

export class MediaLeg extends RecordingLeg {
  readonly #session: Omit<MediaSession, 'openPartner'>;

  constructor(session: Omit<MediaSession, 'openPartner'>) {
    super();
    this.#session = session;
    this.reofferAnswer = undefined;
    this.furtherOffer = undefined;
    this.acceptsLateAnswers = false;
  }

  override observe(event: LegEvent): void {
    super.observe(event);
    if (event.kind === 'provisional' && event.sdp !== undefined)
      this.#session.applyAnswer(event.sdp, 'early');
    if (event.kind === 'answered') this.#session.applyAnswer(event.sdp, 'answer');
    if (event.kind === 'offerRequested') event.offer(this.#session.offerAgain());
    if (event.kind === 'lateAnswer' && this.#session.applyAnswer(event.sdp, 'answer') === 'applied')
      event.accept();
    if (event.kind !== 'reoffer') return;
    const answerSdp = this.#session.answerReoffer(event.sdp);
    if (answerSdp !== undefined) event.accept(answerSdp);
  }
}
