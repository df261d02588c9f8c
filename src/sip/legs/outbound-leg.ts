// One outgoing INVITE to one gateway, and the dialog that results from it. The leg keeps two
// separate states:
// - `#reported`: what we've reported to the observer, which gets no more events after an end.
// - `#wire`: what is still happening on the wire. The leg keeps track of that in the background
//   until the far end has definitely left the call, or until a time-out expires.
//
// `released` settles when `#wire` is `released`.

import type { DialTarget } from '../../calls/call-types.ts';
import type { SipCapture } from '../../calls/capture/capture.ts';
import type { StoredLeg } from '../../calls/contract/stored-leg.ts';
import type {
  CallLeg,
  Clock,
  LegEnd,
  LegEvent,
  PlaceRequest,
  ReferEvent,
  ReferRequest,
} from '../../calls/ports.ts';
import { inBackground } from '../../lib/in-background.ts';
import type { Logger } from '../../lib/logger.ts';
import { refusalReason, sendAnswered, type Unanswered } from '../digest/answered-request.ts';
import { DigestClient } from '../digest/digest-client.ts';
import { endFactsOf, statedIn } from '../end-facts.ts';
import { requestFrameBytes } from '../engine/control-frame.ts';
import {
  type DialogOwner,
  type EngineLink,
  guarded,
  type LinkOwner,
} from '../engine/engine-link.ts';
import { maxFrameBytes, type SipLimits } from '../engine/sip-limits.ts';
import type {
  AckFunction,
  ReceivedRequest,
  ReceivedResponse,
  RequestOptions,
  Responder,
  SentRequest,
  SipMessage,
} from '../engine/srf-types.ts';
import { contactTarget, reasonText, sdpOf } from '../sip-headers.ts';
import type { Route } from '../trunks/routing.ts';
import { createDialogPeer } from './dialog-peer.ts';
import { answerDialogRequest, type DialogPeer } from './dialog-requests.ts';
import { answeredLeg, legFromInvite, ringingLeg } from './dialog-state.ts';
import { pressByInfo } from './dtmf-sender.ts';
import { EarlyAnswers } from './early-answers.ts';
import { endDialog } from './end-dialog.ts';
import type { AttemptFailure } from './failover.ts';
import { inviteOptions, mergeHeaders } from './invite.ts';
import { acknowledgeProvisional } from './prack.ts';
import { Referrals } from './referral.ts';
import { largerInterval } from './session-interval.ts';

/** Receives more details about a failure than the call does. */
export type AttemptObserver = { observe(event: AttemptEvent): void };
type AttemptEvent =
  | Exclude<LegEvent, { readonly kind: 'failed' | 'attemptFailed' }>
  | { readonly kind: 'failed'; readonly failure: AttemptFailure };

export type LegDependencies = {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: SipLimits;
  /**
   * Called if the engine connection breaks while the far end may still be in the call. This process
   * or another one then ends the leg later. Resolves when the leg has ended or we've given up on
   * it.
   */
  readonly onAbandoned: (leg: StoredLeg) => Promise<void>;
  /** Captures the call's SIP messages, for people who inspect the call. */
  readonly capture?: Pick<SipCapture, 'follow'> | undefined;
  /** Formats a transfer target as a Refer-To that this trunk's far end understands. */
  readonly referTo: (target: DialTarget, trunk: string | undefined) => string;
};

type Wire =
  | { readonly kind: 'idle' }
  /** We've passed the INVITE to the engine, which hasn't confirmed yet that it has been sent. */
  | { readonly kind: 'inviting' }
  | { readonly kind: 'pending'; readonly invite: SentRequest }
  | { readonly kind: 'answered'; readonly dialogId: string; readonly ack: AckFunction }
  | { readonly kind: 'confirmed'; readonly dialogId: string }
  | { readonly kind: 'closing' }
  | { readonly kind: 'released' };

export class OutboundLeg implements CallLeg, LinkOwner, DialogOwner {
  readonly #request: PlaceRequest;
  readonly #observer: AttemptObserver;
  readonly #dependencies: LegDependencies;
  readonly #peer: DialogPeer;
  readonly #release: { readonly promise: Promise<void>; readonly settle: () => void };
  #ended = Promise.resolve();
  #reported: 'nothing' | 'answered' | 'end' = 'nothing';
  #wire: Wire = { kind: 'idle' };
  #link: EngineLink | undefined;
  #stored: StoredLeg | undefined;
  #timer: NodeJS.Timeout | undefined;
  #dialogId: string | undefined;
  #digest: DigestClient | undefined;
  #route: Pick<Route, 'trunk' | 'nextHop'> = {};
  readonly #referrals = new Referrals();
  readonly #early = new EarlyAnswers();

  constructor(request: PlaceRequest, observer: AttemptObserver, dependencies: LegDependencies) {
    this.#request = request;
    this.#observer = observer;
    this.#dependencies = dependencies;
    let settle = (): void => undefined;
    const promise = new Promise<void>((resolve) => {
      settle = resolve;
    });
    this.#release = { promise, settle };
    this.#peer = createDialogPeer({
      observe: (event) => observer.observe(event),
      isOver: () => this.#reported === 'end',
      onAccepted: (sdp, tag) => this.#early.noteUpdate(tag, sdp),
      warn: (message) => dependencies.logger.warn({ callId: request.callId }, message),
    });
  }

  get released(): Promise<void> {
    return this.#release.promise;
  }

  /** Sends the INVITE. Called once. */
  start(link: EngineLink, route: Route): void {
    const headers = mergeHeaders(route, this.#request.headers);
    const options = inviteOptions({ ...route, headers }, this.#request.offerSdp);
    const bytes = requestFrameBytes(options);
    if (bytes > maxFrameBytes) {
      this.#reportFailed({
        reason: `INVITE of ${bytes} bytes exceeds the ${maxFrameBytes} bytes of a control frame`,
        kind: 'transport',
      });
      this.#finish();
      return;
    }
    this.#link = link;
    this.#digest = route.credentials && new DigestClient(route.credentials);
    this.#route = route;
    link.attach(this);
    this.#onInviting();
    this.#invite(link, options, route.gateway);
  }

  #invite(link: EngineLink, options: RequestOptions, gateway: string): void {
    const authentication = {
      client: this.#digest,
      isWanted: () => this.#reported === 'nothing' && this.#request.mayInvite?.() !== false,
      correct: (response: ReceivedResponse) => largerInterval(options.headers, response),
    };
    sendAnswered(link, options, authentication, {
      onReply: (result) => {
        if (result.ok) this.#onSent(result.request, gateway);
        else if (this.#wire.kind === 'inviting') {
          this.#reportFailed({ reason: result.reason, kind: 'transport', notSent: true });
          this.#finish();
        }
      },
      onRepeat: () => this.#onInviting(),
      onResponse: guarded(this.#dependencies.logger, (response, ack, unanswered) =>
        this.#onResponse(response, ack, unanswered),
      ),
    });
  }

  /** The engine has the INVITE, or its repetition with credentials, but hasn't confirmed it yet. */
  #onInviting(): void {
    this.#wire = { kind: 'inviting' };
    this.#arm(this.#dependencies.limits.confirmTimeoutMs, () => this.#onUnconfirmed());
  }

  cancel(reason: string): void {
    if (this.#reported === 'answered') this.hangUp(reason);
    if (this.#reported !== 'nothing') return;
    this.#reportFailed({ sipStatus: 487, reason, kind: 'cancelled' });
    if (this.#wire.kind === 'pending') this.#sendCancel(this.#wire.invite);
    // Until the engine confirms the INVITE, there's no transaction to cancel, so `#onSent` sends
    // the CANCEL later.
  }

  acknowledge(): void {
    if (this.#wire.kind !== 'answered') return;
    const { ack, dialogId } = this.#wire;
    clearTimeout(this.#timer);
    this.#wire = { kind: 'confirmed', dialogId };
    this.#sendAck(ack);
  }

  hangUp(reason: string): void {
    if (this.#reported === 'nothing') this.cancel(reason);
    if (this.#reported !== 'answered') return;
    this.#reportEnded('local', reason);
    this.#bye();
  }

  refer({ target, trunk, headers, timeoutMs }: ReferRequest, report: (event: ReferEvent) => void) {
    const now = () => this.#dependencies.clock.now();
    if (this.#wire.kind !== 'confirmed' || this.#link === undefined) {
      const failure = { at: now(), reason: 'The call is not up', kind: 'transport' } as const;
      report({ kind: 'failed', failure });
      return;
    }
    const localUri = this.#stored?.localUri;
    this.#referrals.begin(
      {
        ...{ link: this.#link, dialogId: this.#wire.dialogId, timeoutMs, now },
        referTo: this.#dependencies.referTo(target, trunk),
        referredBy: localUri === undefined ? undefined : `<${localUri}>`,
        headers: headers ?? {},
        digest: this.#digest,
      },
      report,
    );
  }

  async press(digit: string, durationMs: number): Promise<boolean> {
    const { dialogId } = this.#wire.kind === 'confirmed' ? this.#wire : {};
    if (dialogId === undefined || this.#link === undefined) return false;
    const isWanted = () => this.#reported === 'answered';
    const dialog = { dialogId, authentication: { client: this.#digest, isWanted } };
    return await pressByInfo(this.#link, dialog, { digit, durationMs });
  }

  onLinkLost(reason: string): void {
    const failure = `drachtio connection lost: ${reason}`;
    if (this.#wire.kind !== 'closing' && this.#stored !== undefined) {
      this.#abandon(this.#stored);
    }
    if (this.#reported === 'nothing') this.#reportFailed({ reason: failure, kind: 'transport' });
    else if (this.#reported === 'answered') this.#reportEnded('lost', failure);
    // If we were closing, the BYE was lost with the engine. In that case, `#finishDialog` is also
    // notified of the lost link, and abandons the leg before finishing it.
    if (this.#wire.kind !== 'closing') this.#finish();
  }

  onRequest(request: ReceivedRequest, response: Responder): void {
    if (request.method === 'BYE') {
      this.#onBye(request, response);
      return;
    }
    this.#noteStated(request);
    if (request.method !== 'NOTIFY' || !this.#referrals.onNotify(request, response)) {
      answerDialogRequest(request, response, this.#peer);
    }
  }

  /** Reports what a message of the far end states about the call. */
  #noteStated(message: SipMessage): void {
    const stated = statedIn(message);
    if (stated !== undefined && this.#reported !== 'end') this.#observer.observe(stated);
  }

  #onBye(request: ReceivedRequest, response: Responder): void {
    response.send(200);
    const reason = reasonText(request.get('Reason'));
    if (this.#reported === 'answered') {
      if (request.source === 'network')
        this.#reportEnded('remote', reason ?? 'normal release', endFactsOf(request));
      // The engine ended the dialog, because it didn't get an ACK or the session timer expired.
      else this.#reportEnded('lost', reason ?? 'ended by the SIP engine');
    }
    if (this.#wire.kind === 'answered') this.#sendAck(this.#wire.ack);
    // A BYE in an early dialog (RFC 3261, 15) only ends that dialog. The INVITE still gets its
    // final response.
    if (this.#wire.kind !== 'pending' && this.#wire.kind !== 'closing') this.#finish();
  }

  /** Called for the INVITE, and again for each repetition, which is a transaction of its own. */
  #onSent(invite: SentRequest, gateway: string): void {
    const link = this.#link;
    if (link === undefined || this.#wire.kind === 'released') return;
    const isRepeated = this.#stored !== undefined;
    this.#arm(this.#dependencies.limits.followTimeoutMs, () => this.#onSilence(invite));
    const leg = this.#followInvite(invite, link);
    if (this.#reported !== 'nothing') this.#sendCancel(invite);
    else if (isRepeated) this.#observer.observe({ kind: 'resent', leg });
    else {
      const at = this.#dependencies.clock.now();
      this.#observer.observe({ kind: 'sent', gateway, leg, at });
    }
  }

  #followInvite(invite: SentRequest, link: EngineLink): StoredLeg {
    const { capture, logger } = this.#dependencies;
    this.#wire = { kind: 'pending', invite };
    this.#peer.contact = invite.get('Contact');
    const sipCallId = invite.get('Call-ID');
    if (sipCallId !== undefined) {
      const { callId, legId } = this.#request;
      capture?.follow(callId, sipCallId, legId);
    }
    const leg = legFromInvite(invite, link.engine, this.#route);
    this.#stored = leg;
    // If an UPDATE arrives while the INVITE is pending, srf emits it on the request, not on the
    // dialog.
    const answer = (request: ReceivedRequest, response: Responder) => {
      this.#noteStated(request);
      answerDialogRequest(request, response, this.#peer);
    };
    invite.on('update', guarded(logger, answer));
    return leg;
  }

  #onResponse(response: ReceivedResponse, ack: AckFunction, unanswered?: Unanswered): void {
    // While a repetition is being sent, the only response is the challenge, which is final if the
    // engine rejects the repetition.
    const isInviting = this.#wire.kind === 'pending' || this.#wire.kind === 'inviting';
    if (!isInviting || this.#link === undefined) return;
    if (response.stackDialogId) {
      this.#dialogId = response.stackDialogId;
      this.#link.dialogs.set(response.stackDialogId, this);
    }
    if (response.status < 200) this.#onProvisional(response, this.#link);
    else if (response.status < 300) this.#onAccepted(response, ack);
    else this.#onRefused(response, unanswered);
  }

  #onProvisional(response: ReceivedResponse, link: EngineLink): void {
    acknowledgeProvisional(link, response, this.#digest);
    if (response.status <= 100) return;
    const leg = this.#stored && ringingLeg(this.#stored, response);
    this.#stored = leg;
    if (this.#reported !== 'nothing') return;
    this.#noteStated(response);
    const sdp = sdpOf(response);
    if (sdp !== undefined) this.#early.noteProvisional(response, sdp);
    this.#observer.observe({
      kind: 'provisional',
      status: response.status,
      reason: response.reason,
      ...(sdp !== undefined && { sdp }),
      at: this.#dependencies.clock.now(),
      ...(leg !== undefined && { leg }),
    });
  }

  #onAccepted(response: ReceivedResponse, ack: AckFunction): void {
    const { clock, limits } = this.#dependencies;
    const sdp = sdpOf(response) ?? this.#early.of(response);
    const stored = this.#stored && answeredLeg(this.#stored, response);
    this.#stored = stored;
    this.#wire = { kind: 'answered', dialogId: response.stackDialogId ?? '', ack };
    clearTimeout(this.#timer);
    const flaw = answerFlaw(response, sdp);
    // If we've already reported the end, this 200 crossed our CANCEL, and the call is no longer
    // waiting for it.
    if (this.#reported !== 'nothing' || flaw !== undefined || sdp === undefined || !stored) {
      const reason = flaw ?? 'OK without SDP';
      this.#reportFailed({ sipStatus: response.status, reason, kind: 'unusable' });
      this.#bye();
      return;
    }
    this.#noteStated(response);
    this.#reported = 'answered';
    this.#arm(limits.acknowledgeTimeoutMs, () => this.hangUp('not acknowledged in time'));
    this.#observer.observe({ kind: 'answered', sdp, leg: stored, at: clock.now() });
  }

  #onRefused(response: ReceivedResponse, unanswered: Unanswered | undefined): void {
    const isByStack = response.source_address === '';
    if (unanswered === 'too large') {
      this.#reportFailed({
        sipStatus: response.status,
        reason: 'digest challenge too large for a control frame',
        kind: 'transport',
      });
    } else {
      this.#reportFailed({
        sipStatus: response.status,
        reason: refusalReason(response, unanswered),
        kind: isByStack ? 'stack' : 'response',
        ...(isByStack ? {} : endFactsOf(response)),
      });
    }
    this.#finish();
  }

  /**
   * Gives up on the engine. The INVITE may have been sent anyway, in which case `#onSent` cancels
   * it later.
   */
  #onUnconfirmed(): void {
    this.#reportFailed({ reason: 'the SIP engine did not confirm the INVITE', kind: 'transport' });
    this.#arm(this.#dependencies.limits.followTimeoutMs, () => this.#finish());
  }

  /**
   * Gives up waiting for a final response. The call's ring time-out expires long before this one,
   * and so does the engine's own, unless its message got lost.
   */
  #onSilence(invite: SentRequest): void {
    this.#reportFailed({ reason: 'the SIP engine reported no final response', kind: 'transport' });
    this.#sendCancel(invite);
  }

  #sendCancel(invite: SentRequest): void {
    const { limits, logger } = this.#dependencies;
    this.#arm(limits.followTimeoutMs, () => {
      logger.warn({ callId: this.#request.callId }, 'no final response to a cancelled INVITE');
      this.#finish();
    });
    // If the engine rejects the CANCEL, it has already received the final response, which is now on
    // its way to us.
    this.#link?.request(
      { method: 'CANCEL', uri: invite.uri, stackTxnId: invite.stackTxnId },
      () => undefined,
    );
  }

  #sendAck(ack: AckFunction): void {
    // Srf asserts that the connection exists. If it has just broken, `onLinkLost` handles the rest.
    try {
      ack();
    } catch (error) {
      this.#dependencies.logger.warn({ err: error, callId: this.#request.callId }, 'ack not sent');
    }
  }

  /** Ends the dialog. Sends the ACK first, because every 200 needs one (RFC 3261, 13.2.2.4). */
  #bye(): void {
    const wire = this.#wire;
    const link = this.#link;
    if (link === undefined || (wire.kind !== 'answered' && wire.kind !== 'confirmed')) return;
    clearTimeout(this.#timer);
    this.#wire = { kind: 'closing' };
    if (wire.kind === 'answered') this.#sendAck(wire.ack);
    const { logger } = this.#dependencies;
    inBackground(this.#finishDialog(link, wire.dialogId), logger, 'hanging up a dialog');
  }

  async #finishDialog(link: EngineLink, dialogId: string): Promise<void> {
    const { limits, logger } = this.#dependencies;
    const dialog = { dialogId, stored: this.#stored, digest: this.#digest };
    try {
      const result = await endDialog(link, dialog, limits.byeTimeoutMs);
      // The BYE is also lost if it was rejected because the link went down. In a bridge, the other
      // leg may have been the first to notice the lost link, and may have hung up this leg.
      const isLost = result.kind === 'lost' || (result.kind === 'refused' && !link.isUp);
      if (isLost && this.#stored !== undefined) this.#abandon(this.#stored);
      if (result.kind !== 'response') {
        logger.info({ callId: this.#request.callId, result }, 'BYE not answered');
      }
    } finally {
      this.#finish();
    }
  }

  /**
   * Passes the leg on to `onAbandoned` because its engine is gone. The leg isn't released until it
   * has ended or we've given up on it.
   */
  #abandon(stored: StoredLeg): void {
    this.#ended = this.#dependencies.onAbandoned(stored);
  }

  #reportFailed(failure: Omit<AttemptFailure, 'at'>): void {
    if (this.#reported !== 'nothing') return;
    this.#reported = 'end';
    const at = this.#dependencies.clock.now();
    this.#observer.observe({ kind: 'failed', failure: { ...failure, at } });
  }

  #reportEnded(by: LegEnd['by'], reason: string, more: Pick<LegEnd, 'facts'> = {}): void {
    if (this.#reported !== 'answered') return;
    this.#reported = 'end';
    this.#referrals.stop();
    const at = this.#dependencies.clock.now();
    this.#observer.observe({ kind: 'ended', end: { by, reason, at, ...more } });
  }

  #arm(delayMs: number, onTimeout: () => void): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(onTimeout, delayMs);
  }

  #finish(): void {
    if (this.#wire.kind === 'released') return;
    this.#wire = { kind: 'released' };
    clearTimeout(this.#timer);
    if (this.#dialogId !== undefined) this.#link?.dialogs.delete(this.#dialogId);
    this.#link?.detach(this);
    this.#ended.then(this.#release.settle, this.#release.settle);
  }
}

/** Returns a reason phrase if the 200 OK can't begin a call. */
function answerFlaw(response: ReceivedResponse, sdp: string | undefined): string | undefined {
  if (!response.has('Contact')) return 'OK without Contact';
  if (contactTarget(response.get('Contact')) === undefined) return 'OK with an unusable Contact';
  if (!response.stackDialogId) return 'OK outside a dialog';
  return sdp === undefined ? 'OK without SDP' : undefined;
}
