// Turns the far end's requests in a dialog into the leg's events, and the call's reactions to them
// into answers.

import type { LegEvent } from '../../calls/ports.ts';
import type { DialogPeer } from './dialog-requests.ts';

export type DialogPeerOptions = {
  readonly observe: (event: LegEventInDialog) => void;
  /** Returns true once the leg has reported its end. */
  readonly isOver: () => boolean;
  /** Called for each offer that the call accepted, with the far end's tag. */
  readonly onAccepted: (sdp: string, tag: string) => void;
  readonly warn: (message: string) => void;
};

type LegEventInDialog = Extract<
  LegEvent,
  { readonly kind: 'reoffer' | 'offerRequested' | 'lateAnswer' | 'dtmf' }
>;

export function createDialogPeer(options: DialogPeerOptions): DialogPeer {
  const { observe, isOver, onAccepted, warn } = options;
  return {
    contact: undefined,
    awaitsAnswer: false,
    onReoffer(sdp, tag) {
      let answer: string | undefined;
      const accept = (answerSdp: string) => {
        answer = answerSdp;
      };
      if (!isOver()) observe({ kind: 'reoffer', sdp, accept });
      if (answer !== undefined && tag !== undefined) onAccepted(sdp, tag);
      return answer;
    },
    onOfferRequested() {
      let made: string | undefined;
      const offer = (offerSdp: string) => {
        made = offerSdp;
      };
      if (!isOver()) observe({ kind: 'offerRequested', offer });
      return made;
    },
    onLateAnswer(sdp) {
      if (isOver()) return;
      let isAccepted = false;
      const accept = () => {
        isAccepted = true;
      };
      if (sdp !== undefined) observe({ kind: 'lateAnswer', sdp, accept });
      if (isAccepted) return;
      const flaw = sdp === undefined ? 'no answer to our offer' : 'an unusable answer to our offer';
      warn(`an ACK contains ${flaw}, so the media stays as it was`);
    },
    onDtmf(digit, durationMs) {
      if (!isOver()) observe({ kind: 'dtmf', digit, durationMs });
    },
  };
}
