// Sends the engine's session refreshes (RFC 4028 section 7.4): an UPDATE without SDP if the far end
// accepts UPDATE, otherwise a re-INVITE with the last SDP, whose unchanged o= line says that
// nothing changes. A failed refresh is repeated until the session ends. Each repetition has a
// bound: a delay for the failures, and a count for what is repeated at once.

import type { EngineContext } from '../engine-context.ts';
import type { SipResponse } from '../message/sip-message.ts';
import type { SipPeer } from '../transport/sip-peer.ts';
import type { Dialog, SessionTimerState } from './dialog.ts';
import { takeTarget } from './dialog-making.ts';
import { type DialogRequests, emptySketch, type HangUp } from './dialog-requests.ts';
import { noteAllowedMethods, parseMinSe, requestSessionHeaders } from './session-headers.ts';

/** A far end that states a new Min-SE each time would otherwise keep us busy for good. */
const maxImmediateRepetitions = 3;
/**
 * Longest interval in seconds that we accept with a 422: a day, because longer ones are useless.
 */
const maxMinSessionSeconds = 86_400;
/** Delay in seconds until we look again whether another INVITE in the dialog has ended. */
const busySeconds = 1;

export const sessionExpired: HangUp = { text: 'Session timer expired', notifyOwner: true };

export type RefreshParts = {
  readonly context: EngineContext;
  readonly requests: DialogRequests;
  readonly dialog: Dialog;
  /** Called with the 2xx, which starts the session timer anew. */
  readonly onRefreshed: (response: SipResponse) => void;
};

export function refreshSession(parts: RefreshParts, repetition = 0): void {
  const { dialog } = parts;
  const { session } = dialog;
  if (session === undefined) return;
  const refresh = new SessionRefresh(parts, session, repetition);
  // There may be only one INVITE at a time in a dialog (RFC 3261 section 14.1). If the other INVITE
  // succeeds, it refreshes the session as well.
  if (isInviteUnderWay(dialog)) refresh.again(busySeconds);
  else refresh.send();
}

/** Whether an INVITE in the dialog, from either side, hasn't been answered and acknowledged yet. */
function isInviteUnderWay(dialog: Dialog): boolean {
  return (
    isOurInvitePending(dialog) ||
    dialog.unacknowledged !== undefined ||
    dialog.awaitingAck !== undefined ||
    dialog.peerInvite?.state === 'proceeding'
  );
}

export function isOurInvitePending({ ourInvite }: Dialog): boolean {
  return ourInvite?.state === 'calling' || ourInvite?.state === 'proceeding';
}

class SessionRefresh {
  readonly #parts: RefreshParts;
  readonly #context: EngineContext;
  readonly #requests: DialogRequests;
  readonly #dialog: Dialog;
  readonly #session: SessionTimerState;
  readonly #repetition: number;

  constructor(parts: RefreshParts, session: SessionTimerState, repetition: number) {
    this.#parts = parts;
    this.#context = parts.context;
    this.#requests = parts.requests;
    this.#dialog = parts.dialog;
    this.#session = session;
    this.#repetition = repetition;
  }

  send(): void {
    this.#requests.withPeer(this.#dialog, (peer) => {
      // The call may have ended while the name was being resolved.
      if (this.#dialog.session !== this.#session) return;
      if (peer === undefined || !this.#sendTo(peer)) this.#expire();
    });
  }

  /** Refreshes again after the delay, or hangs up when the session ends before that. */
  again(delaySeconds: number): void {
    const { clock, timers } = this.#context;
    const session = this.#session;
    const delayMs = delaySeconds * timers.sessionSecondMs;
    const leftMs = session.endsAtMs - clock.now();
    clock.clearTimer(session.timer);
    session.timer =
      delayMs < leftMs
        ? clock.setTimer(() => this.#refreshAgain(0), delayMs)
        : clock.setTimer(() => this.#expire(), Math.max(0, leftMs));
  }

  #refreshAgain(repetition: number): void {
    refreshSession(this.#parts, repetition);
  }

  #sendTo(peer: SipPeer): boolean {
    const dialog = this.#dialog;
    const method = dialog.allowsUpdate ? 'UPDATE' : 'INVITE';
    const sketch = {
      ...emptySketch(method),
      headers: requestSessionHeaders(dialog, this.#context.timers),
      body: method === 'INVITE' ? (dialog.localSdp ?? '') : '',
    };
    const cseq = dialog.localCseq + 1;
    const sent = this.#requests.send(dialog, peer, sketch, {
      onResponse: (response) => {
        if (response.status < 200) return;
        if (response.status >= 300) this.#failed(response, method);
        else this.#succeeded(response, peer, method === 'INVITE' ? cseq : undefined);
      },
      onFailure: ({ status }) => this.#failedWith(status),
    });
    if (sent !== undefined && method === 'INVITE') dialog.ourInvite = sent.transaction;
    return sent !== undefined;
  }

  /** @param inviteCseq CSeq of the re-INVITE that the response acknowledges */
  #succeeded(response: SipResponse, peer: SipPeer, inviteCseq: number | undefined): void {
    const dialog = this.#dialog;
    if (inviteCseq !== undefined && dialog.ack?.cseq === inviteCseq) {
      this.#requests.repeatAck(dialog, inviteCseq);
      return;
    }
    const isCurrent = this.#isCurrent();
    if (isCurrent) takeTarget(dialog, response);
    // Even if the call has ended in the meantime, a 2xx needs its ACK.
    if (inviteCseq !== undefined) this.#acknowledge(peer, inviteCseq);
    if (!isCurrent) return;
    noteAllowedMethods(dialog, response);
    this.#parts.onRefreshed(response);
  }

  /** Sends the ACK to the target of the 2xx, which may differ from the target so far. */
  #acknowledge(sentTo: SipPeer, cseq: number): void {
    this.#requests.withPeer(this.#dialog, (peer) => {
      this.#requests.sendAck(this.#dialog, peer ?? sentTo, cseq, emptySketch('ACK'));
    });
  }

  #failed(response: SipResponse, method: string): void {
    if (!this.#isCurrent()) return;
    const mayRepeat = this.#repetition < maxImmediateRepetitions;
    if (response.status === 422 && mayRepeat && this.#takeMinimum(response)) {
      this.#refreshAgain(this.#repetition + 1);
    } else if (method === 'UPDATE' && (response.status === 405 || response.status === 501)) {
      this.#dialog.allowsUpdate = false;
      this.#refreshAgain(this.#repetition + 1);
    } else if (response.status === 491) {
      this.again(glareDelaySeconds(this.#dialog));
    } else {
      this.#failedWith(response.status);
    }
  }

  /**
   * After a 408 or 481, the far end doesn't have the dialog any more (RFC 4028 section 10). Any
   * other failure says nothing about the call, so we try again within the rest of the interval.
   */
  #failedWith(status: number): void {
    if (!this.#isCurrent()) return;
    if (status === 408 || status === 481) this.#expire();
    else this.again(this.#session.seconds / 10);
  }

  /** Returns false if the 422 doesn't ask for a longer interval, or for one that's too long. */
  #takeMinimum(response: SipResponse): boolean {
    const minimum = parseMinSe(response);
    if (minimum === undefined || minimum > maxMinSessionSeconds) return false;
    if (minimum <= Math.max(this.#session.seconds, this.#dialog.minSessionSeconds)) return false;
    this.#dialog.minSessionSeconds = minimum;
    return true;
  }

  /** False if the call has ended, or another request has refreshed the session in the meantime. */
  #isCurrent(): boolean {
    return this.#dialog.session === this.#session && this.#context.dialogs.has(this.#dialog);
  }

  #expire(): void {
    this.#requests.hangUp(this.#dialog, sessionExpired);
  }
}

/**
 * RFC 3261 section 14.1: whoever chose the Call-ID waits for 2.1 to 4 s, and the other side for up
 * to 2 s, both in units of 10 ms, so that the two don't collide again.
 */
function glareDelaySeconds(dialog: Dialog): number {
  const hundredths =
    dialog.role === 'uac' ? 210 + Math.floor(Math.random() * 191) : Math.floor(Math.random() * 201);
  return hundredths / 100;
}
