// A call's line, i.e. an actor that contains the call's SIP leg and media session. The line answers
// re-offers itself, because they can't wait for the machine, and holds back media events until the
// answer has been acknowledged. Stopping the actor closes everything that is still open.

import { fromCallback } from 'xstate';
import type { Logger } from '../../lib/logger.ts';
import {
  type AnnouncementKind,
  type Announcements,
  loadAnnouncements,
} from '../announcements/announcements.ts';
import { type AcceptedCall, assertNever, ruledAccountIn } from '../call-types.ts';
import { callerDetailsOf } from '../caller/caller-members.ts';
import type { CallId } from '../contract/identity.ts';
import { LineDetection } from '../detection/line-detection.ts';
import type { Keys } from '../keys/keys.ts';
import { LineKeys } from '../keys/line-keys.ts';
import {
  answerProblems,
  type MediaCommand,
  type MediaEvent,
  type MediaPort,
  type MediaSession,
} from '../media.ts';
import { loadPlans } from '../plans/plan-sounds.ts';
import type { CallPlans } from '../plans/plans.ts';
import type {
  CallLeg,
  Clock,
  LegEvent,
  RecordingPort,
  SipPort,
  SoundPort,
  StreamPort,
} from '../ports.ts';
import { LineRecording } from '../recording/line-recording.ts';
import { LineStream } from '../stream/line-stream.ts';
import { LineTransfer } from '../transfer/line-transfer.ts';
import type { TransferPorts } from '../transfer/transfer-report.ts';
import { fromPort, type LineCommand, type LineEvent, type PassedEvent } from './call-setup.ts';

export type LinePorts = {
  readonly sip: SipPort;
  readonly media: MediaPort;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Omitted if calls never have a stream. */
  readonly streams?: StreamPort;
  /** Omitted if calls never play sounds. */
  readonly sounds?: SoundPort;
  /** Omitted if recordings are never encrypted. */
  readonly recordings?: RecordingPort;
  /** Omitted if calls are never transferred. */
  readonly transfers?: TransferPorts;
  /**
   * Waits until the call's INVITE may be sent, or until nobody wants it any more. Never rejects.
   * The line calls this once everything else is ready, because the preparations can take any amount
   * of time.
   *
   * @returns undefined if the INVITE may be sent immediately
   */
  readonly untilTurn?: (callId: CallId, isWanted: () => boolean) => Promise<void> | undefined;
};

type LegEventOf<Kind extends LegEvent['kind']> = Extract<LegEvent, { readonly kind: Kind }>;

export function createLineActor(ports: LinePorts) {
  return fromCallback<LineCommand, AcceptedCall>(({ input, sendBack, receive }) => {
    const line = new Line(input, ports, sendBack);
    receive((command) => line.execute(command));
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
   * opening: there's no leg yet, because the line is waiting for a media port and its turn. placed:
   * the leg has been placed. answered: the far end has answered. over: the leg failed, ended, was
   * cancelled or hung up, or is no longer wanted.
   */
  #state: 'opening' | 'placed' | 'answered' | 'over' = 'opening';
  /**
   * Media and SIP INFO events held back while the answer is being stored. Undefined while events
   * are passed straight on.
   */
  #held: LineEvent[] | undefined;
  /**
   * True once sounds or keys have been requested or planned, which means that there may be
   * something to stop.
   */
  #mayPlay = false;
  #plans: CallPlans | undefined;
  #announcements: Announcements = new Map();
  readonly #detection = new LineDetection();
  readonly #stream: LineStream;
  readonly #recording: LineRecording;
  /** Sends key presses by SIP INFO. Undefined if the media sends keys as RTP events. */
  readonly #keys: LineKeys | undefined;
  readonly #transfer: LineTransfer;

  constructor(call: AcceptedCall, ports: LinePorts, send: (event: LineEvent) => void) {
    this.#call = call;
    this.#ports = ports;
    this.#send = send;
    const keyTransport = ports.sip.keysFor(call.request.trunk);
    if (keyTransport === 'info') this.#keys = this.#keysByInfo();
    this.#stream = new LineStream(call, ports.streams, (report, ordinal) =>
      this.#pass({ kind: 'stream', ordinal, report }),
    );
    this.#recording = new LineRecording(call, ports.recordings);
    const keys = {
      transport: keyTransport,
      press: (pressed: Keys) => this.#sendToMedia({ kind: 'press', keys: pressed }),
    };
    this.#transfer = new LineTransfer(call, ports.transfers, keys, (report) =>
      send(fromPort('transfer', report, ports.clock.now())),
    );
  }

  async open(): Promise<void> {
    const { stream } = this.#call.request;
    if (stream !== undefined) this.#stream.want({ ...stream, ordinal: 0 });
    const [session, prepared] = await Promise.all([this.#openMedia(), this.#prepare()]);
    if (this.#state === 'over' || session === undefined || !prepared.ok) {
      session?.close();
      if (this.#state === 'over') return;
      const reason = prepared.ok ? 'No media port is free' : prepared.reason;
      this.#pass({ kind: 'failed', reason });
      return;
    }
    this.#session = session;
    this.#plans = prepared.plans;
    this.#announcements = prepared.announcements;
    await this.#ports.untilTurn?.(this.#call.callId, () => this.#state === 'opening');
    if (this.#state === 'opening') this.#place(session);
  }

  /** Loads sounds and prepares the recording, so that nobody waits for them during the call. */
  async #prepare() {
    const [call, { sounds }] = [this.#call, this.#ports];
    const [plans, recording] = await Promise.all([
      loadPlans(call, sounds),
      this.#recording.prepare(sounds),
    ]);
    if (!plans.ok) return plans;
    if (!recording.ok) return recording;
    const loaded = await loadAnnouncements(call, sounds);
    return loaded.ok ? { ...plans, ...loaded } : loaded;
  }

  #place(session: MediaSession): void {
    const { request, callId, hoursEndAt } = this.#call;
    this.#state = 'placed';
    this.#send({ type: 'line.placing' });
    this.#leg = this.#ports.sip.place(
      {
        callId,
        target: request.target,
        caller: request.caller,
        ...callerDetailsOf(request),
        offerSdp: session.offerSdp,
        ...(request.headers === undefined ? {} : { headers: request.headers }),
        ...(request.trunk === undefined ? {} : { trunk: request.trunk }),
        ...ruledAccountIn(this.#call),
        ...(hoursEndAt === undefined ? {} : { hoursEndAt }),
      },
      { observe: (event) => this.#observeLeg(event) },
    );
  }

  execute(command: LineCommand): void {
    switch (command.type) {
      case 'cancel':
      case 'hangUp':
        this.#giveUp(command.reason);
        break;
      case 'acknowledge':
        this.#leg?.acknowledge();
        this.#releaseHeld();
        break;
      case 'media':
        this.#sendToMedia(command.command);
        break;
      case 'startStream':
        // A failed stream may have left its connection open.
        this.#stream.stop(this.#session, 'replaced');
        this.#stream.want(command.stream);
        this.#answerStream();
        break;
      case 'stopStream':
        this.#stream.stop(this.#session, command.reason);
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
      case 'announce':
        this.#announce(command.announcement);
        break;
      case 'announceRecording':
        this.#mayPlay = true;
        this.#recording.announce(this.#session);
        break;
      case 'startRecording':
        this.#recording.start(this.#session, command.from, this.#ports.clock.now());
        break;
      case 'stopRecording':
        this.#recording.stop(this.#session);
        break;
      case 'close':
        this.close();
        break;
      default:
        assertNever(command);
    }
  }

  #announce(announcement: AnnouncementKind): void {
    const sound = this.#announcements.get(announcement);
    if (sound === undefined) return;
    const playback = { playbackId: announcement, source: 'announcement' as const, sound };
    this.#sendToMedia({ kind: 'play', playback });
  }

  /**
   * Passes a command to the media, or sends keys by SIP INFO if the carrier expects that. If
   * nothing has ever been played, a stop command is dropped, so that we don't wake the worker for
   * nothing.
   */
  #sendToMedia(command: MediaCommand): void {
    if (command.kind === 'press' && this.#keys !== undefined) {
      this.#keys.press(command.keys);
      return;
    }
    if (command.kind === 'stopPlayback') {
      this.#keys?.stop();
      if (!this.#mayPlay) return;
    }
    if (command.kind === 'play' || command.kind === 'press') this.#mayPlay = true;
    this.#session?.send(command);
  }

  /**
   * Reports an unexpected error as a failed leg, so that the call ends. Ports never throw because
   * of network problems, so this must be a bug.
   */
  fail(error: unknown): void {
    const cause = error instanceof Error ? error.message : 'unknown error';
    const at = this.#ports.clock.now();
    this.#passLeg({
      kind: 'failed',
      failure: { at, kind: 'transport', reason: `Not placed: ${cause}` },
    });
  }

  close(): void {
    this.#giveUp('call has ended');
    this.#keys?.stop();
    this.#session?.close();
  }

  #keysByInfo(): LineKeys {
    return new LineKeys(
      async (digit, durationMs) => (await this.#leg?.press(digit, durationMs)) === true,
      (report) => this.#pass({ kind: 'keysSent', report }),
      this.#ports.logger,
    );
  }

  async #openMedia(): Promise<MediaSession | undefined> {
    try {
      const offer = this.#ports.sip.offerFor(this.#call.request.trunk);
      return await this.#ports.media.open(
        this.#call.callId,
        { observe: (event) => this.#observeMedia(event) },
        offer,
      );
    } catch {
      // The media port has already logged the reason. To the call, this is the same as having no
      // free port.
      return undefined;
    }
  }

  #giveUp(reason: string): void {
    // If there's no leg yet, `open` sees the state `over` and won't place one.
    const state = this.#state;
    this.#state = 'over';
    this.#transfer.giveUp(reason);
    if (state === 'placed') this.#leg?.cancel(reason);
    if (state === 'answered') this.#leg?.hangUp(reason);
  }

  #observeLeg(event: LegEvent): void {
    switch (event.kind) {
      case 'sent':
      case 'resent':
      case 'attemptFailed':
      case 'stated':
        this.#passLeg(event);
        break;
      case 'provisional':
        this.#observeProvisional(event);
        break;
      case 'answered':
        if (this.#state === 'placed') this.#state = 'answered';
        this.#observeAnswer(event);
        break;
      case 'failed':
        this.#state = 'over';
        this.#passLeg(event);
        break;
      case 'ended':
        this.#state = 'over';
        if (event.end.by === 'remote') this.#transfer.onFarEndHangUp();
        this.#transfer.giveUp('the first leg has ended');
        this.#passLeg(event);
        break;
      case 'reoffer':
        this.#answerReoffer(event);
        break;
      case 'offerRequested':
        if (this.#session !== undefined) event.offer(this.#session.offerAgain());
        break;
      case 'lateAnswer':
        if (this.#session?.applyAnswer(event.sdp, 'answer') === 'applied') event.accept();
        this.#sendAcceptsKeys();
        break;
      case 'dtmf':
        this.#session?.send({ kind: 'sendDigit', digit: event.digit });
        this.#transfer.passKey({ ...event, source: 'info' });
        this.#sendOrHold(fromPort('leg', event, this.#ports.clock.now()));
        break;
      default:
        assertNever(event);
    }
  }

  #observeProvisional(event: LegEventOf<'provisional'>): void {
    const { status, sdp } = event;
    if (sdp !== undefined) this.#session?.applyAnswer(sdp, 'early');
    // A 100 comes from the next hop rather than the phone. 180, 181, 182 and 183 all mean that the
    // far end is processing the call.
    if (status < 180) return;
    if (this.#session !== undefined) {
      this.#stream.prepare(this.#session, () => this.#state === 'placed');
    }
    this.#passLeg(event);
  }

  #answerReoffer({ sdp, accept }: LegEventOf<'reoffer'>): void {
    const answerSdp = this.#session?.answerReoffer(sdp);
    if (answerSdp !== undefined) accept(answerSdp);
    this.#sendAcceptsKeys();
  }

  #observeAnswer(event: LegEventOf<'answered'>): void {
    const result = this.#session?.applyAnswer(event.sdp, 'answer') ?? 'unusable';
    if (result === 'applied') this.#acceptAnswer(event);
    else this.#refuseAnswer(event.at, answerProblems[result]);
  }

  #acceptAnswer(event: LegEventOf<'answered'>): void {
    this.#held = [];
    this.#startDetection(event.at);
    this.#recording.answer(this.#session, event.at);
    this.#answerStream();
    const answered = fromPort('leg', event, this.#ports.clock.now());
    this.#send({ ...answered, acceptsKeys: this.#acceptsKeys() });
  }

  #sendAcceptsKeys(): void {
    this.#send({ type: 'line.acceptsKeys', acceptsKeys: this.#acceptsKeys() });
  }

  #acceptsKeys(): boolean {
    return this.#keys !== undefined || this.#session?.acceptsKeys() === true;
  }

  /**
   * Handles a 200 OK without usable SDP or key, which requires an ACK and a BYE per RFC 3261,
   * section 13.2.2.4. The call is then treated as failed.
   */
  #refuseAnswer(at: Date, reason: string): void {
    this.#giveUp(reason);
    this.#passLeg({
      kind: 'failed',
      failure: { at, sipStatus: 200, reason, kind: 'unusable' },
    });
  }

  #startDetection(at: Date): void {
    const { machineDetection, amd } = this.#call.request;
    if (machineDetection === 'disabled') return;
    this.#detection.start(at);
    if (this.#plans !== undefined) this.#mayPlay = true;
    const plans = this.#plans === undefined ? {} : { plans: this.#plans };
    this.#session?.send({ kind: 'detect', settings: amd, ...plans });
  }

  #answerStream(): void {
    if (this.#session !== undefined) {
      this.#stream.answer(this.#session, () => this.#state === 'answered');
    }
  }

  #observeMedia(event: MediaEvent): void {
    // The envelope goes to the call's capture. `connected` is only ever reported by a second leg's
    // session, to its bridge.
    if (event.kind === 'envelope' || event.kind === 'connected') return;
    if (event.kind === 'inactive' || event.kind === 'failed') this.#loseMedia(event);
    else this.#notePassed(event);
  }

  #notePassed(event: PassedEvent): void {
    if (event.kind === 'amd' && event.amd.event === 'amd_stopped') this.#detection.stopped();
    if (event.kind === 'plan' && event.report.kind === 'armed') {
      this.#detection.start(this.#ports.clock.now(), event.report.round);
    }
    if (event.kind === 'dtmf') this.#transfer.passKey({ ...event, source: 'rtp' });
    if (event.kind === 'recording') this.#recording.note(event.report);
    this.#pass(event);
  }

  #loseMedia(event: Extract<PassedEvent, { kind: 'inactive' | 'failed' }>): void {
    const at = this.#ports.clock.now();
    for (const amd of this.#detection.lose(at)) this.#pass({ kind: 'amd', amd });
    // A session that hears nothing goes on recording until the call ends.
    const report = event.kind === 'failed' ? this.#recording.lose(at) : undefined;
    if (report !== undefined) this.#pass({ kind: 'recording', report });
    this.#pass(event);
  }

  #passLeg(event: Exclude<LegEvent, { kind: 'answered' }>): void {
    this.#send(fromPort('leg', event, this.#ports.clock.now()));
  }

  #pass(event: PassedEvent): void {
    this.#sendOrHold(fromPort('media', event, this.#ports.clock.now()));
  }

  /**
   * Sends the event to the machine. Between the 200 OK and its ACK, events are held back instead,
   * so that `answered` is emitted first. The wait is bounded by the time-out for storing the
   * answer.
   */
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
