// The line of one call: its SIP leg and its media session as one actor. It answers what cannot wait for the machine (a
// re-offer), holds detection's events until the answer is acknowledged, and leaves nothing open when it is stopped.

import { fromCallback } from 'xstate';
import type { Logger } from '../../lib/logger.ts';
import { type AcceptedCall, assertNever } from '../call-types.ts';
import type { CallId } from '../contract/identity.ts';
import { LineDetection } from '../detection/line-detection.ts';
import type { Keys, KeysSent } from '../keys/keys.ts';
import { LineKeys } from '../keys/line-keys.ts';
import { loadPlans } from '../plans/plan-sounds.ts';
import type { CallPlans, PlanReport } from '../plans/plans.ts';
import type {
  CallLeg,
  Clock,
  KeyTransport,
  LegEvent,
  MediaObserver,
  MediaPort,
  MediaSession,
  SipPort,
  SoundPort,
  StreamPort,
} from '../ports.ts';
import { LineStream } from '../stream/line-stream.ts';
import type { StreamReport } from '../stream/stream.ts';
import { LineTransfer } from '../transfer/line-transfer.ts';
import type { TransferPorts } from '../transfer/transfer-ports.ts';
import type { LineCommand, LineEvent } from './call-setup.ts';

export type LinePorts = {
  readonly sip: SipPort;
  readonly media: MediaPort;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Left out: no call has a stream. */
  readonly streams?: StreamPort;
  /** Left out: no call plays anything. */
  readonly sounds?: SoundPort;
  /** Left out: no call is transferred. */
  readonly transfers?: TransferPorts;
  /**
   * Resolves when the call's INVITE may leave, or is not wanted any more; never rejects. Asked when all else is ready, because
   * what it takes is unsteady. Undefined: at once.
   */
  readonly untilTurn?: (callId: CallId, isWanted: () => boolean) => Promise<void> | undefined;
};

type LegEventOf<Kind extends LegEvent['kind']> = Extract<LegEvent, { readonly kind: Kind }>;

export function createLineActor(ports: LinePorts) {
  return fromCallback<LineCommand, AcceptedCall>(({ input, sendBack, receive }) => {
    const line = new Line(input, ports, sendBack);
    receive((command) => line.obey(command));
    line.open().catch((error: unknown) => line.fail(error));
    return () => line.close();
  });
}

class Line {
  readonly #call: AcceptedCall;
  readonly #ports: LinePorts;
  readonly #send: (event: LineEvent) => void;
  #session: MediaSession | undefined;
  #leg: CallLeg | undefined;
  /**
   * opening: no leg yet, the media port and the turn are waited for. over: the leg failed, ended, was cancelled or hung up, or
   * is not wanted any more.
   */
  #state: 'opening' | 'placed' | 'answered' | 'over' = 'opening';
  /** Detection's events since the answer, while the answer is being stored. */
  #held: LineEvent[] | undefined;
  /** A sound or keys were asked for, or planned. */
  #mayPlay = false;
  #plans: CallPlans | undefined;
  readonly #detection = new LineDetection();
  readonly #stream: LineStream;
  /** Undefined: they are sent as RTP. */
  readonly #keys: LineKeys | undefined;
  readonly #transfer: LineTransfer;

  constructor(call: AcceptedCall, ports: LinePorts, send: (event: LineEvent) => void) {
    this.#call = call;
    this.#ports = ports;
    this.#send = send;
    const keyTransport = ports.sip.keysFor(call.request.trunk);
    if (keyTransport === 'info') this.#keys = this.#keysByInfo();
    this.#stream = new LineStream(call, ports.streams, (report, ordinal) =>
      this.#sendStream(report, ordinal),
    );
    const keys = { transport: keyTransport, press: (pressed: Keys) => this.#press(pressed) };
    this.#transfer = new LineTransfer(call, ports.transfers, keys, (report) =>
      send({ type: 'line.transfer', at: ports.clock.now(), report }),
    );
  }

  async open(): Promise<void> {
    const { stream } = this.#call.request;
    if (stream !== undefined) this.#stream.want({ ...stream, ordinal: 0 });
    const [session, loaded] = await Promise.all([
      this.#openMedia(),
      loadPlans(this.#call, this.#ports.sounds),
    ]);
    if (this.#state === 'over' || session === undefined || !loaded.ok) {
      session?.close();
      if (this.#state === 'over') return;
      const reason = loaded.ok ? 'No media port is free' : loaded.reason;
      this.#send({ type: 'line.mediaLost', reason });
      return;
    }
    this.#session = session;
    this.#plans = loaded.plans;
    await this.#ports.untilTurn?.(this.#call.callId, () => this.#state === 'opening');
    if (this.#state === 'opening') this.#place(session);
  }

  #place(session: MediaSession): void {
    const { request, callId } = this.#call;
    this.#state = 'placed';
    this.#leg = this.#ports.sip.place(
      {
        callId,
        target: request.target,
        caller: request.caller,
        offerSdp: session.offerSdp,
        ...(request.trunk === undefined ? {} : { trunk: request.trunk }),
      },
      { observe: (event) => this.#observeLeg(event) },
    );
  }

  obey(command: LineCommand): void {
    switch (command.type) {
      case 'cancel':
      case 'hangUp':
        this.#giveUp(command.reason);
        break;
      case 'acknowledge':
        this.#leg?.acknowledge();
        this.#releaseHeld();
        break;
      case 'stopDetection':
        this.#session?.stopDetection(command.reason);
        break;
      case 'startStream':
        // Of one that failed something may be left.
        this.#stream.stop(this.#session, 'replaced');
        this.#stream.want(command.stream);
        this.#answerStream();
        break;
      case 'stopStream':
        this.#stream.stop(this.#session, command.reason);
        break;
      case 'play':
        this.#mayPlay = true;
        this.#session?.play(command.playback);
        break;
      case 'press':
        this.#press(command.keys);
        break;
      case 'stopPlayback':
        this.#keys?.stop();
        if (this.#mayPlay) this.#session?.stopPlayback();
        break;
      case 'transfer':
        if (this.#leg !== undefined && this.#session !== undefined && this.#state === 'answered') {
          const [leg, session] = [this.#leg, this.#session];
          this.#transfer.start(command.transfer, { leg, session });
        }
        break;
      case 'withdrawTransfer':
        this.#transfer.withdraw();
        break;
      case 'tellTransferFailed':
        this.#session?.tellTransferFailed(command.failure);
        break;
      case 'close':
        this.close();
        break;
      default:
        assertNever(command);
    }
  }

  /** A defect: no port of ours throws for a reason of the network. The call must end all the same. */
  fail(error: unknown): void {
    const cause = error instanceof Error ? error.message : 'unknown error';
    this.#send({
      type: 'line.failed',
      failure: { at: this.#ports.clock.now(), kind: 'transport', reason: `Not placed: ${cause}` },
    });
  }

  close(): void {
    this.#giveUp('call is over');
    this.#keys?.stop();
    this.#session?.close();
  }

  #press(keys: Keys): void {
    if (this.#keys !== undefined) {
      this.#keys.press(keys);
      return;
    }
    this.#mayPlay = true;
    this.#session?.press(keys);
  }

  #keysByInfo(): LineKeys {
    return new LineKeys(
      async (digit, durationMs) => (await this.#leg?.press(digit, durationMs)) === true,
      (report) => this.#sendKeysSent(report),
      this.#ports.logger,
    );
  }

  async #openMedia(): Promise<MediaSession | undefined> {
    try {
      const codecs = this.#ports.sip.codecsFor(this.#call.request.trunk);
      return await this.#ports.media.open(this.#call.callId, this.#mediaObserver(), codecs);
    } catch {
      // The media port logs why; for the call it is the same as an exhausted pool.
      return undefined;
    }
  }

  #giveUp(reason: string): void {
    // Before the leg was there: `open` finds the line over and places nothing.
    const state = this.#state;
    this.#state = 'over';
    this.#transfer.giveUp(reason);
    if (state === 'placed') this.#leg?.cancel(reason);
    if (state === 'answered') this.#leg?.hangUp(reason);
  }

  #observeLeg(event: LegEvent): void {
    switch (event.kind) {
      case 'sent':
        this.#send({ type: 'line.sent', at: event.at, gateway: event.gateway, leg: event.leg });
        break;
      case 'resent':
        this.#send({ type: 'line.resent', leg: event.leg });
        break;
      case 'attemptFailed':
        this.#send({ type: 'line.attemptFailed', attempt: event.attempt });
        break;
      case 'provisional':
        this.#observeProvisional(event);
        break;
      case 'answered':
        if (this.#state === 'placed') this.#state = 'answered';
        if (this.#session?.applyAnswer(event.sdp, 'answer') === true) this.#acceptAnswer(event);
        else this.#refuseAnswer(event.at);
        break;
      case 'failed':
        this.#state = 'over';
        this.#send({ type: 'line.failed', failure: event.failure });
        break;
      case 'ended':
        this.#state = 'over';
        if (event.end.by === 'remote') this.#transfer.endsBySuccess();
        this.#transfer.giveUp('the other end is gone');
        this.#send({ type: 'line.ended', end: event.end });
        break;
      case 'reoffer':
        this.#answerReoffer(event);
        break;
      case 'dtmf':
        this.#session?.tellDigit(event.digit);
        this.#sendDtmf(event.digit, event.durationMs, 'info');
        break;
      default:
        assertNever(event);
    }
  }

  #observeProvisional({ status, reason, sdp, at, leg }: LegEventOf<'provisional'>): void {
    if (sdp !== undefined) this.#session?.applyAnswer(sdp, 'early');
    // 100 is the hop's, not the phone's; 180, 181, 182 and 183 all mean that the far end works on it.
    if (status < 180) return;
    if (this.#session !== undefined) {
      this.#stream.prepare(this.#session, () => this.#state === 'placed');
    }
    this.#send({
      type: 'line.ringing',
      at,
      sipStatus: status,
      sipReason: reason,
      earlyMedia: sdp !== undefined,
      ...(leg !== undefined && { leg }),
    });
  }

  #answerReoffer({ sdp, accept }: LegEventOf<'reoffer'>): void {
    const answerSdp = this.#session?.answerReoffer(sdp);
    if (answerSdp !== undefined) accept(answerSdp);
    this.#tellTakesKeys();
  }

  #acceptAnswer({ at, leg }: LegEventOf<'answered'>): void {
    this.#held = [];
    this.#startDetection(at);
    this.#answerStream();
    this.#tellTakesKeys();
    this.#send({ type: 'line.answered', at, leg });
  }

  #tellTakesKeys(): void {
    const takesKeys = this.#keys !== undefined || this.#session?.takesKeys() === true;
    this.#send({ type: 'line.takesKeys', takesKeys });
  }

  /** A 200 without a codec in common: RFC 3261 section 13.2.2.4 has us ACK and BYE it. For the caller the call failed. */
  #refuseAnswer(at: Date): void {
    this.#giveUp('no usable SDP in the answer');
    this.#send({
      type: 'line.failed',
      failure: { at, sipStatus: 200, reason: 'OK without usable SDP', kind: 'unusable' },
    });
  }

  #startDetection(at: Date): void {
    const { machineDetection, amd } = this.#call.request;
    if (machineDetection === 'disabled') return;
    this.#detection.start(at);
    if (this.#plans !== undefined) this.#mayPlay = true;
    this.#session?.startDetection(amd, this.#plans);
  }

  #answerStream(): void {
    if (this.#session !== undefined) {
      this.#stream.answer(this.#session, () => this.#state === 'answered');
    }
  }

  #sendStream(report: StreamReport, ordinal: number): void {
    this.#sendOrHold({ type: 'line.stream', at: this.#ports.clock.now(), ordinal, report });
  }

  #mediaObserver(): MediaObserver {
    return {
      onAmd: (amd) => {
        if (amd.event === 'amd_stopped') this.#detection.stopped();
        this.#sendOrHold({ type: 'line.amd', at: this.#ports.clock.now(), amd });
      },
      onDtmf: (digit, durationMs) => this.#sendDtmf(digit, durationMs, 'rtp'),
      onStream: (report, ordinal) => this.#sendStream(report, ordinal),
      onPlan: (report) => this.#sendPlan(report),
      onPlayback: (report) =>
        this.#sendOrHold({ type: 'line.playback', at: this.#ports.clock.now(), report }),
      onKeysSent: (report) => this.#sendKeysSent(report),
      onInactive: () => this.#loseMedia('No RTP from the far end'),
      onFailed: (reason) => this.#loseMedia(reason),
    };
  }

  #sendKeysSent(report: KeysSent): void {
    this.#sendOrHold({ type: 'line.keysSent', at: this.#ports.clock.now(), report });
  }

  #sendPlan(report: PlanReport): void {
    const at = this.#ports.clock.now();
    if (report.kind === 'armed') this.#detection.start(at, report.round);
    this.#sendOrHold({ type: 'line.plan', at, report });
  }

  #loseMedia(reason: string): void {
    const at = this.#ports.clock.now();
    for (const amd of this.#detection.lose(at)) this.#sendOrHold({ type: 'line.amd', at, amd });
    this.#sendOrHold({ type: 'line.mediaLost', reason });
  }

  #sendDtmf(digit: string, durationMs: number | undefined, source: KeyTransport): void {
    this.#transfer.passKey({ digit, durationMs, source });
    this.#sendOrHold({
      type: 'line.dtmf',
      at: this.#ports.clock.now(),
      digit,
      source,
      ...(durationMs === undefined ? {} : { durationMs }),
    });
  }

  /** What happens between the 200 and its ACK is stated after `answered`, in order. Bounded by the store's time-out. */
  #sendOrHold(event: LineEvent): void {
    if (this.#held === undefined) this.#send(event);
    else this.#held.push(event);
  }

  #releaseHeld(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const event of held) this.#send(event);
  }
}
