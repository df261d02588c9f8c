// Session timers (RFC 4028). After a 2xx with Session-Expires, either the engine or the peer must
// refresh the session. The engine refreshes the session without involving the application. If it's
// up to the peer and no refresh arrives, the engine hangs up and only then notifies the
// application.

import type { EngineContext } from '../engine-context.ts';
import { parseDecimal, parseParameters } from '../message/sip-grammar.ts';
import {
  headerValue,
  type SipHeader,
  type SipMessage,
  type SipResponse,
} from '../message/sip-message.ts';
import { type SipTimers, transactionLifeMs } from '../transaction/engine-timing.ts';
import type { SipPeer } from '../transport/sip-peer.ts';
import type { Dialog } from './dialog.ts';
import { type DialogRequests, emptySketch } from './dialog-requests.ts';

export type SessionExpires = {
  readonly intervalMs: number;
  readonly refresher: 'uac' | 'uas' | undefined;
};

export function parseSessionExpires(
  message: { readonly headers: SipMessage['headers'] },
  timers: SipTimers,
): SessionExpires | undefined {
  const value = headerValue(message, 'Session-Expires');
  if (value === undefined) return undefined;
  const semicolon = value.indexOf(';');
  const text = (semicolon < 0 ? value : value.slice(0, semicolon)).trim();
  const seconds = parseDecimal(text, 6);
  if (seconds === undefined || seconds === 0) return undefined;
  const refresher = parseParameters(semicolon < 0 ? '' : value.slice(semicolon)).get('refresher');
  const known = refresher === 'uac' || refresher === 'uas' ? refresher : undefined;
  return { intervalMs: seconds * timers.sessionSecondMs, refresher: known };
}

/** `localRole` is the engine's role in the request to which this 2xx is the response. */
export function armSessionTimer(
  context: EngineContext,
  requests: DialogRequests,
  dialog: Dialog,
  response: { readonly headers: SipMessage['headers'] },
  localRole: 'uac' | 'uas',
): void {
  const expires = parseSessionExpires(response, context.timers);
  context.clock.clearTimer(dialog.session?.timer);
  dialog.session = undefined;
  if (expires === undefined) return;
  const isRefresher = (expires.refresher ?? 'uac') === localRole;
  const { intervalMs } = expires;
  const session = { intervalMs, isRefresher, timer: undefined as object | undefined };
  dialog.session = session;
  // The refresher sends its refresh after half of the interval, and the other side gives up shortly
  // before the interval ends (RFC 4028 sections 7.2 and 10).
  const delayMs = isRefresher
    ? intervalMs / 2
    : intervalMs - Math.min(transactionLifeMs(context.timers), intervalMs / 3);
  session.timer = context.clock.setTimer(() => {
    if (isRefresher) refresh(context, requests, dialog, intervalMs, 0);
    else expire(requests, dialog);
  }, delayMs);
}

function expire(requests: DialogRequests, dialog: Dialog): void {
  requests.hangUp(dialog, { text: 'Session timer expired', notifyOwner: true });
}

/** If a refresh fails once, we retry it within the rest of the interval (RFC 4028 section 7.4). */
const maxRefreshAttempts = 2;

function refresh(
  context: EngineContext,
  requests: DialogRequests,
  dialog: Dialog,
  intervalMs: number,
  attempt: number,
): void {
  const seconds = Math.round(intervalMs / context.timers.sessionSecondMs);
  const headers: SipHeader[] = [
    { name: 'Session-Expires', value: `${seconds};refresher=uac` },
    { name: 'Min-SE', value: String(context.timers.minSessionSeconds) },
  ];
  requests.withPeer(dialog, (peer) => {
    if (peer === undefined) return expire(requests, dialog);
    const sketch = { ...emptySketch('INVITE'), headers, body: dialog.localSdp ?? '' };
    const cseq = dialog.localCseq + 1;
    const sent = requests.send(dialog, peer, sketch, {
      onResponse: (response) => {
        if (response.status >= 200) {
          finishRefresh(context, requests, dialog, { response, peer, cseq, intervalMs, attempt });
        }
      },
      onFailure: () => expire(requests, dialog),
    });
    if (sent === undefined) expire(requests, dialog);
  });
}

type RefreshAnswer = {
  readonly response: SipResponse;
  readonly peer: SipPeer;
  readonly cseq: number;
  readonly intervalMs: number;
  readonly attempt: number;
};

function finishRefresh(
  context: EngineContext,
  requests: DialogRequests,
  dialog: Dialog,
  answer: RefreshAnswer,
): void {
  const { response, cseq } = answer;
  if (response.status < 300) {
    if (dialog.ack?.cseq === cseq) {
      requests.repeatAck(dialog, cseq);
      return;
    }
    requests.sendAck(dialog, answer.peer, cseq, emptySketch('ACK'));
    const keepsTiming = parseSessionExpires(response, context.timers) !== undefined;
    if (keepsTiming) armSessionTimer(context, requests, dialog, response, 'uac');
    return;
  }
  if (!context.dialogs.has(dialog)) return;
  if (answer.attempt + 1 >= maxRefreshAttempts) {
    expire(requests, dialog);
    return;
  }
  context.clock.clearTimer(dialog.session?.timer);
  const session = {
    intervalMs: answer.intervalMs,
    isRefresher: true,
    timer: undefined as object | undefined,
  };
  dialog.session = session;
  session.timer = context.clock.setTimer(
    () => refresh(context, requests, dialog, answer.intervalMs, answer.attempt + 1),
    answer.intervalMs / 6,
  );
}
