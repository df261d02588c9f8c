// A call's bridge manages the second leg, the media of both legs, and what the two ends can hear of
// each other. It stores every state of the second leg. In particular, the dialog is stored before
// the 200 OK is ACKed. Otherwise a crash could leave a person in a call that no process can end.
// The machine receives the bridge's reports, and hangs up the first leg once the second leg has
// ended.

import { inBackground } from '../../lib/in-background.ts';
import { within } from '../../lib/within.ts';
import { type AcceptedCall, ruledAccountIn } from '../call-types.ts';
import { callerDetailsOf } from '../caller/caller-members.ts';
import type { StoredLeg } from '../contract/stored-leg.ts';
import { type KeyReceiver, type PressedKey, passKey } from '../keys/keys.ts';
import { LineKeys } from '../keys/line-keys.ts';
import {
  answerProblems,
  type MediaEvent,
  type MediaSession,
  type PartnerSession,
} from '../media.ts';
import type { CallLeg, LegEvent } from '../ports.ts';
import type { Transfer } from './transfer.ts';
import {
  endOfAdmission,
  type OngoingTransfer,
  type TransferEnd,
  type TransferPorts,
  type TransferReport,
} from './transfer-report.ts';

/** Well below the 5 s after which the leg gives up on an unacknowledged 200 OK. */
const storeAnswerTimeoutMs = 4_000;

type LegEventOf<Kind extends LegEvent['kind']> = Extract<LegEvent, { readonly kind: Kind }>;

/**
 * The person's end of the bridge: the first leg's media session, and the receiver for keys that the
 * agent presses.
 */
export type BridgedPerson = { readonly session: MediaSession; readonly keys: KeyReceiver };

export class CallBridge implements OngoingTransfer {
  readonly #call: AcceptedCall;
  readonly #transfer: Transfer;
  readonly #session: MediaSession;
  /** Passes the agent's key presses on to the first leg. */
  readonly #personKeys: KeyReceiver;
  readonly #ports: TransferPorts;
  readonly #report: (report: TransferReport) => void;
  #partner: PartnerSession | undefined;
  #leg: CallLeg | undefined;
  /** Passes the person's key presses on to the second leg. Undefined until that leg is placed. */
  #agentKeys: KeyReceiver | undefined;
  /**
   * preparing: waiting for admission (app limits, room on the trunk) and for a media port. placed:
   * waiting for the 200 OK. storing: the 200 OK arrived and is being stored. bridged: the 200 OK is
   * acknowledged. over: the end has been reported to the machine, or the machine has given up the
   * transfer.
   */
  #state: 'preparing' | 'placed' | 'storing' | 'bridged' | 'over' = 'preparing';
  #answeredAtMs = 0;
  /**
   * Time from the 200 OK until audio had gone both ways. Only set if that happened before the
   * answer was stored.
   */
  #twoWayMs: number | undefined;
  readonly #timer: NodeJS.Timeout;

  constructor(
    call: AcceptedCall,
    transfer: Transfer,
    { session, keys }: BridgedPerson,
    ports: TransferPorts,
    report: (report: TransferReport) => void,
  ) {
    this.#call = call;
    this.#transfer = transfer;
    this.#session = session;
    this.#personKeys = keys;
    this.#ports = ports;
    this.#report = report;
    this.#timer = setTimeout(() => this.#timeOut(), transfer.timeoutMs);
  }

  start(): void {
    // From now on, the bot must not hear the person.
    if (!this.#transfer.keepStream) this.#session.send({ kind: 'gateStream', isGated: true });
    this.#place().catch((error: unknown) => {
      const reason = `Not placed: ${error instanceof Error ? error.message : 'unknown error'}`;
      this.#fail({ kind: 'gateway', at: this.#now(), reason });
    });
  }

  giveUp(reason: string): void {
    const leg = this.#leg;
    const state = this.#state;
    this.#finish();
    if (state === 'placed') leg?.cancel(reason);
    else if (state !== 'over') leg?.hangUp(reason);
  }

  withdraw(): void {
    this.#callOff({ kind: 'machine', at: this.#now() }, 'a machine after all');
  }

  async #place(): Promise<void> {
    const { admission, sip } = this.#ports;
    const { trunk, legId } = this.#transfer;
    const isWanted = (): boolean => this.#state === 'preparing';
    const admitted = await admission.admit(this.#call, this.#transfer, isWanted);
    if (!admitted.ok) {
      this.#fail(endOfAdmission(admitted, this.#now()));
      return;
    }
    const partner = isWanted()
      ? await this.#session.openPartner(
          { observe: (event) => this.#observeMedia(event) },
          sip.offerFor(trunk),
        )
      : undefined;
    if (partner === undefined || !isWanted()) {
      partner?.close();
      admission.giveBack(legId);
      this.#fail({ kind: 'gateway', at: this.#now(), reason: 'No media port is free' });
      return;
    }
    this.#partner = partner;
    this.#state = 'placed';
    this.#leg = this.#placeLeg(partner);
    this.#agentKeys = this.#agentKeysOf(this.#leg, partner);
    const stored = this.#leg.released.then(() => this.#ports.storeLeg(this.#call, { legId }));
    inBackground(stored, this.#ports.logger, 'storing that a second leg has ended');
  }

  #placeLeg({ offerSdp }: PartnerSession): CallLeg {
    const { to: target, trunk, legId, caller, headers } = this.#transfer;
    const { callId } = this.#call;
    return this.#ports.sip.place(
      {
        ...{ callId, legId, target, caller, offerSdp },
        ...callerDetailsOf(this.#transfer),
        ...(trunk === undefined ? {} : { trunk }),
        ...(headers === undefined ? {} : { headers }),
        ...ruledAccountIn(this.#call),
      },
      { observe: (event) => this.#observe(event) },
    );
  }

  #observe(event: LegEvent): void {
    switch (event.kind) {
      case 'sent':
      case 'resent':
        this.#store(event.leg);
        break;
      case 'provisional':
        this.#observeProvisional(event);
        break;
      case 'answered':
        this.#observeAnswer(event);
        break;
      case 'failed':
        this.#fail({ kind: 'leg', failure: event.failure });
        break;
      case 'ended':
        this.#observeEnd(event);
        break;
      case 'reoffer': {
        const answerSdp = this.#partner?.answerReoffer(event.sdp);
        if (answerSdp !== undefined) event.accept(answerSdp);
        break;
      }
      case 'offerRequested':
        if (this.#partner !== undefined) event.offer(this.#partner.offerAgain());
        break;
      case 'lateAnswer':
        if (this.#partner?.applyAnswer(event.sdp, 'answer') === 'applied') event.accept();
        break;
      case 'dtmf':
        this.#passToPerson({ ...event, source: 'info' });
        break;
      // The leg tries another gateway and names it in the next `sent`.
      case 'attemptFailed':
      // Only the first leg's callee is reported.
      case 'stated':
        break;
    }
  }

  #observeProvisional({ status, sdp, leg }: LegEventOf<'provisional'>): void {
    if (leg !== undefined) this.#store(leg);
    if (status < 180 || this.#state !== 'placed') return;
    if (status === 180) this.#partner?.bridge('ringing');
    const earlyMedia = sdp !== undefined && this.#partner?.applyAnswer(sdp, 'early') === 'applied';
    if (earlyMedia) this.#partner?.bridge('early');
    this.#report({ kind: 'ringing', sipStatus: status, earlyMedia });
  }

  #observeAnswer({ at, sdp, leg }: LegEventOf<'answered'>): void {
    if (this.#state !== 'placed') return;
    this.#state = 'storing';
    clearTimeout(this.#timer);
    this.#answeredAtMs = performance.now();
    const result = this.#partner?.applyAnswer(sdp, 'answer') ?? 'unusable';
    if (result !== 'applied') {
      this.#giveUpAnswer({
        kind: 'leg',
        failure: { at, sipStatus: 200, reason: answerProblems[result], kind: 'unusable' },
      });
      return;
    }
    // Don't wait for the database here, because the person must hear the agent's first words.
    this.#partner?.bridge('answered');
    this.#report({ kind: 'reached', at });
    this.#storeAnswer(leg, at).catch((error: unknown) => {
      const { callId } = this.#call;
      this.#ports.logger.error(
        { err: error, callId },
        'the answer of a second leg could not be stored',
      );
      this.#lose('The answer could not be recorded');
    });
  }

  async #storeAnswer(leg: StoredLeg, at: Date): Promise<void> {
    const { legId } = this.#transfer;
    const isStored = await within(
      this.#ports.storeLeg(this.#call, { legId, leg }),
      storeAnswerTimeoutMs,
    );
    if (this.#state !== 'storing') return;
    if (!isStored) {
      const reason = 'The answer could not be recorded';
      this.#giveUpAnswer({ kind: 'gateway', at: this.#now(), reason });
      return;
    }
    this.#state = 'bridged';
    this.#leg?.acknowledge();
    this.#report({ kind: 'answered', at });
    if (this.#twoWayMs !== undefined) this.#reportConnected(this.#twoWayMs);
  }

  #giveUpAnswer(end: TransferEnd): void {
    const leg = this.#leg;
    this.#fail(end);
    leg?.hangUp('the answer is of no use');
  }

  #observeEnd({ end }: LegEventOf<'ended'>): void {
    const state = this.#state;
    if (state === 'bridged') {
      this.#finish();
      this.#report({ kind: 'ended', end });
    } else if (state === 'storing') {
      const { at, reason } = end;
      this.#fail({ kind: 'leg', failure: { at, reason, kind: 'unusable' } });
    }
  }

  #timeOut(): void {
    this.#callOff({ kind: 'timeout', at: this.#now() }, 'ring time-out');
  }

  /** Ends an unanswered transfer, and does nothing after the answer. */
  #callOff(end: TransferEnd, reason: string): void {
    if (this.#state !== 'preparing' && this.#state !== 'placed') return;
    const leg = this.#leg;
    this.#fail(end);
    leg?.cancel(reason);
  }

  /** Ends the transfer because this process can't continue the second leg. */
  #lose(reason: string): void {
    const state = this.#state;
    const leg = this.#leg;
    if (state === 'over' || state === 'preparing') return;
    const at = this.#now();
    if (state === 'bridged') {
      this.#finish();
      leg?.hangUp(reason);
      this.#report({ kind: 'ended', end: { at, by: 'lost', reason } });
      return;
    }
    this.#fail({ kind: 'gateway', at, reason });
    if (state === 'placed') leg?.cancel(reason);
    else leg?.hangUp(reason);
  }

  /**
   * Handles the second leg's media events. Other events can't occur, because this leg has no
   * detection, stream or sounds.
   */
  #observeMedia(event: MediaEvent): void {
    if (event.kind === 'dtmf') this.#passToPerson({ ...event, source: 'rtp' });
    if (event.kind === 'inactive') this.#lose('No RTP from the second leg');
    if (event.kind === 'failed') this.#lose(event.reason);
    if (event.kind !== 'connected') return;
    const elapsedMs = Math.round(performance.now() - this.#answeredAtMs);
    if (this.#state === 'bridged') this.#reportConnected(elapsedMs);
    else this.#twoWayMs = elapsedMs;
  }

  #reportConnected(msToTwoWayAudio: number): void {
    this.#report({ kind: 'connected', msToTwoWayAudio });
  }

  passKey(key: PressedKey): void {
    if (this.#isAnswered() && this.#agentKeys !== undefined) passKey(key, this.#agentKeys);
  }

  #passToPerson(key: PressedKey): void {
    if (this.#isAnswered()) passKey(key, this.#personKeys);
  }

  /** Whether the person and the agent hear each other. */
  #isAnswered(): boolean {
    return this.#state === 'storing' || this.#state === 'bridged';
  }

  /** Builds the receiver that passes the person's key presses on to the second leg. */
  #agentKeysOf(leg: CallLeg, partner: PartnerSession): KeyReceiver {
    const transport = this.#ports.sip.keysFor(this.#transfer.trunk);
    const acceptsKeys = (): boolean => partner.acceptsKeys();
    if (transport === 'rtp') {
      return { transport, acceptsKeys, press: (keys) => partner.send({ kind: 'press', keys }) };
    }
    const byInfo = new LineKeys(
      (digit, durationMs) => leg.press(digit, durationMs),
      () => undefined,
      this.#ports.logger,
    );
    return { transport, acceptsKeys, press: (keys) => byInfo.press(keys) };
  }

  /**
   * Stores the second leg's state in the background. The leg's INVITE has already been sent, so
   * there's no point in waiting.
   */
  #store(leg: StoredLeg): void {
    const { storeLeg, logger } = this.#ports;
    const stored = storeLeg(this.#call, { legId: this.#transfer.legId, leg });
    inBackground(stored, logger, 'storing a second leg');
  }

  /**
   * Reports the failure, at most once. The call may continue with its bot, which hears the person
   * again.
   */
  #fail(end: TransferEnd): void {
    if (this.#state === 'over') return;
    this.#finish();
    this.#session.send({ kind: 'gateStream', isGated: false });
    this.#report({ kind: 'failed', failure: end });
  }

  #finish(): void {
    this.#state = 'over';
    clearTimeout(this.#timer);
    this.#partner?.close();
  }

  #now(): Date {
    return this.#ports.clock.now();
  }
}
