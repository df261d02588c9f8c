// One call to the sandbox, from the INVITE to its end. A call doesn't have timers of its own, so
// everything happens when the shared clock ticks or when a SIP message arrives.

import { randomInt } from 'node:crypto';
import type { Logger } from '../../lib/logger.ts';
import type { Codec } from '../../media/g711.ts';
import type { FrameClock } from './frame-clock.ts';
import { RtpLeg } from './rtp-leg.ts';
import type { Refusal, SandboxBehaviour, SandboxNumber } from './sandbox-numbers.ts';
import { Screener } from './screener.ts';
import { type AudioOffer, readOffer, writeAnswer } from './sdp-answer.ts';
import { frameMs, type SoundLibrary, type SoundName } from './sounds.ts';
import type { CalleeDialog, CalleeRequest, CalleeResponse, SrfCallee } from './srf-callee.ts';
import { Talker, type TalkSummary } from './talker.ts';

/** How a call ended, for logs and tests. */
export type SandboxCallSummary = {
  readonly name: string;
  readonly end:
    | 'refused'
    | 'cancelled'
    | 'caller-hung-up'
    | 'callee-hung-up'
    | 'given-up'
    | 'failed';
  readonly codec?: Codec;
  readonly packetsSent: number;
  readonly packetsReceived: number;
  /**
   * Mailboxes only: the audio that arrived after the last beep, in the call's codec (µ-law or
   * A-law).
   */
  readonly recorded?: Uint8Array;
  /** Only set if the callee talks (`talker.ts`). */
  readonly talk?: TalkSummary;
};

export type SandboxCallDeps = {
  readonly srf: SrfCallee;
  readonly host: string;
  readonly clock: FrameClock;
  readonly sounds: SoundLibrary;
  readonly logger: Logger;
  readonly onEnded: (call: SandboxCall, summary: SandboxCallSummary) => void;
};

/** The methods that a callee answers, for its Allow header (RFC 3261 section 13.3.1.4). */
const calleeMethods = 'INVITE, ACK, BYE, CANCEL, OPTIONS, INFO, UPDATE, REFER';

/** In case a developer forgets to hang up, the sandbox ends a call after this time. */
const maxCallMs = 600_000;
/**
 * A mailbox doesn't record more than this. It's plenty for a message, and more than anyone would
 * listen to.
 */
const maxRecordingMs = 120_000;
/** Longer than any caller waits for an answer. */
const maxRingMs = 300_000;

type Phase =
  | { readonly name: 'starting' }
  | { readonly name: 'ringing'; readonly offer: AudioOffer }
  /** We've passed the 200 OK to the engine, but there's no dialog yet. */
  | { readonly name: 'answering' }
  | { readonly name: 'talking'; readonly dialog: CalleeDialog }
  | { readonly name: 'ended' };

export class SandboxCall {
  readonly #deps: SandboxCallDeps;
  readonly #row: SandboxNumber;
  readonly #behaviour: SandboxBehaviour;
  readonly #request: CalleeRequest;
  readonly #response: CalleeResponse;
  readonly #sessionId = randomInt(1, 2 ** 31);
  readonly #talker: Talker | undefined;
  readonly #screener: Screener | undefined;
  readonly #recorded: Uint8Array[] = [];
  #phase: Phase = { name: 'starting' };
  #leg: RtpLeg | undefined;
  #sdpVersion = 1;
  /** Time since the INVITE. */
  #totalMs = 0;
  /** Time since the answer, or before the answer, time since the INVITE. */
  #phaseMs = 0;

  constructor(
    row: SandboxNumber,
    request: CalleeRequest,
    response: CalleeResponse,
    deps: SandboxCallDeps,
  ) {
    this.#row = row;
    this.#behaviour = row.behaviour;
    this.#request = request;
    this.#response = response;
    this.#deps = deps;
    const { next } = row.behaviour;
    this.#talker = next.do === 'talk' ? new Talker(deps.sounds, next) : undefined;
    this.#screener = next.do === 'screen' ? new Screener(deps.sounds, next) : undefined;
  }

  async start(): Promise<void> {
    const { ringMs, next } = this.#behaviour;
    this.#request.on('cancel', () => this.#end('cancelled'));
    if (ringMs === 0 && next.do === 'refuse') return this.#refuse(next);
    const offer = readOffer(this.#request.body ?? '');
    // 488 Not Acceptable Here, because the INVITE contains no offer, or an offer without audio that
    // the sandbox can use.
    if (offer === undefined) return this.#refuse({ sipStatus: 488 });
    const { host } = this.#deps;
    this.#leg = await RtpLeg.open(host, offer, (payload, codec) => this.#hear(payload, codec));
    if (this.#phase.name === 'ended') return this.#leg.close();
    this.#phase = { name: 'ringing', offer };
    if (this.#behaviour.earlyMedia === undefined) this.#response.send(180);
    else this.#response.send(183, { body: this.#answerSdp(offer, this.#leg) });
    this.#deps.clock.add(this);
  }

  tick(): void {
    this.#totalMs += frameMs;
    this.#phaseMs += frameMs;
    // If drachtio-srf has lost its connection, it throws, and that mustn't stop the clock for the
    // other calls.
    try {
      this.#advance();
    } catch (error) {
      this.#fail(error);
    }
  }

  #advance(): void {
    switch (this.#phase.name) {
      case 'ringing':
        this.#ring(this.#phase.offer);
        break;
      case 'talking':
        this.#talk(this.#phase.dialog);
        break;
      case 'starting':
      case 'answering':
      case 'ended':
        break;
    }
  }

  /**
   * Ends the call from the sandbox's side, in any phase. Resolves once the engine has sent the
   * response or BYE. That may never happen, so use a time-out if you wait for it.
   */
  async giveUp(): Promise<void> {
    const phase = this.#phase;
    if (phase.name === 'talking') return this.#hangUp(phase.dialog, 'given-up');
    this.#end('given-up');
    if (phase.name !== 'starting' && phase.name !== 'ringing') return;
    await new Promise<void>((resolve) => {
      this.#response.send(480, {}, () => resolve());
    });
  }

  #ring(offer: AudioOffer): void {
    const { earlyMedia, ringMs, next } = this.#behaviour;
    if (earlyMedia !== undefined) this.#play(earlyMedia);
    if (this.#totalMs >= maxRingMs) this.giveUp().catch((error: unknown) => this.#fail(error));
    else if (this.#phaseMs >= ringMs && next.do === 'refuse') this.#refuse(next);
    else if (this.#phaseMs >= ringMs && next.do !== 'ring-on') this.#pickUp(offer);
  }

  #pickUp(offer: AudioOffer): void {
    this.#phase = { name: 'answering' };
    this.#answer(offer).catch((error: unknown) => this.#fail(error));
  }

  async #answer(offer: AudioOffer): Promise<void> {
    if (this.#leg === undefined) return;
    const { srf } = this.#deps;
    const dialog = await srf.createUAS(this.#request, this.#response, {
      localSdp: this.#answerSdp(offer, this.#leg),
      headers: { Allow: calleeMethods },
    });
    // The call was cancelled or closed while the 200 OK was on its way.
    if (this.#phase.name !== 'answering') return dialog.destroy({}, () => undefined);
    this.#phase = { name: 'talking', dialog };
    this.#phaseMs = 0;
    dialog.on('destroy', () => this.#end('caller-hung-up'));
    dialog.on('modify', (request, response) => this.#reoffer(request, response));
    dialog.on('update', (request, response) => this.#reoffer(request, response));
    dialog.on('info', (_request, response) => response.send(200));
    dialog.on('options', (_request, response) =>
      response.send(200, { headers: { Allow: calleeMethods } }),
    );
    dialog.on('refer', (_request, response) => this.#refer(dialog, response));
  }

  #talk(dialog: CalleeDialog): void {
    const { next } = this.#behaviour;
    if (next.do === 'answer') this.#play(next.sound);
    else this.#converse(this.#talker ?? this.#screener);
    if (this.#wantsToHangUp()) {
      this.#hangUp(dialog, 'callee-hung-up').catch((error: unknown) => this.#fail(error));
    } else if (this.#totalMs >= maxCallMs) {
      this.giveUp().catch((error: unknown) => this.#fail(error));
    }
  }

  #wantsToHangUp(): boolean {
    const { next } = this.#behaviour;
    if (next.do === 'screen') {
      const { unansweredMs = 0, hasRejected = false } = this.#screener ?? {};
      return hasRejected || unansweredMs >= next.hangUpUnansweredAfterMs;
    }
    if (next.do === 'talk') return (this.#talker?.silentMs ?? 0) >= next.hangUpAfterSilenceMs;
    return next.do === 'answer' && this.#phaseMs >= (next.hangUpAfterMs ?? Infinity);
  }

  #converse(speaker: Talker | Screener | undefined): void {
    if (this.#leg === undefined || speaker === undefined) return;
    const key = this.#talker?.takeKey();
    if (key !== undefined) this.#leg.press(key);
    this.#leg.send(speaker.nextFrame(this.#leg.remote.codec));
  }

  /** Processes one packet's payload. Audio that arrives before the answer is ignored. */
  #hear(payload: Uint8Array, codec: Codec): void {
    if (this.#phase.name !== 'talking') return;
    this.#talker?.hear(payload, codec);
    this.#screener?.hear(payload, codec);
    this.#record(payload);
  }

  #record(payload: Uint8Array): void {
    const { next } = this.#behaviour;
    if (next.do !== 'answer' || next.records !== true) return;
    const isRecording = this.#phaseMs > this.#deps.sounds.lengthMs(next.sound);
    const isFull = this.#recorded.length * frameMs >= maxRecordingMs;
    if (isRecording && !isFull) this.#recorded.push(Uint8Array.from(payload));
  }

  #play(sound: SoundName): void {
    const index = this.#phaseMs / frameMs - 1;
    this.#leg?.send(this.#deps.sounds.frame(sound, index, this.#leg.remote.codec));
  }

  #reoffer(request: CalleeRequest, response: CalleeResponse): void {
    const body = request.body ?? '';
    const offer = readOffer(body);
    if (offer !== undefined && this.#leg !== undefined) {
      this.#leg.redirect(offer);
      response.send(200, { body: this.#answerSdp(offer, this.#leg) });
      return;
    }
    // An UPDATE without SDP just refreshes the session.
    response.send(request.method === 'UPDATE' && body === '' ? 200 : 488);
  }

  /**
   * Accepts a REFER. We don't actually place the call that the REFER asks for, but send a NOTIFY
   * that says it was answered.
   */
  #refer(dialog: CalleeDialog, response: CalleeResponse): void {
    if (this.#behaviour.takesRefer !== true) {
      response.send(603);
      return;
    }
    response.send(202);
    const headers = {
      Event: 'refer',
      'Subscription-State': 'terminated;reason=noresource',
      'Content-Type': 'message/sipfrag;version=2.0',
    };
    dialog.request({ method: 'NOTIFY', headers, body: 'SIP/2.0 200 OK' }, () => undefined);
  }

  #answerSdp(offer: AudioOffer, leg: RtpLeg): string {
    const local = { host: this.#deps.host, port: leg.port, sessionId: this.#sessionId };
    const sdp = writeAnswer(offer, local, this.#sdpVersion);
    this.#sdpVersion += 1;
    return sdp;
  }

  #refuse({ sipStatus, phrase, reason }: Refusal): void {
    this.#response.send(sipStatus, phrase, { headers: reasonHeader(reason) });
    this.#end('refused');
  }

  #hangUp(dialog: CalleeDialog, end: 'callee-hung-up' | 'given-up'): Promise<void> {
    this.#end(end);
    const { next } = this.#behaviour;
    const isOwn = end === 'callee-hung-up' && next.do === 'answer';
    const reason = isOwn ? next.hangUpReason : undefined;
    return new Promise((resolve) => {
      dialog.destroy({ headers: reasonHeader(reason) }, () => resolve());
    });
  }

  /**
   * Ends the call as failed. Failures after the call's end are harmless, e.g. a CANCEL that crossed
   * the 200 OK, or a BYE that couldn't be sent.
   */
  #fail(error: unknown): void {
    if (this.#phase.name !== 'ended') {
      this.#deps.logger.warn({ err: error, callee: this.#row.name }, 'sandbox call failed');
    }
    this.#end('failed');
  }

  #end(end: SandboxCallSummary['end']): void {
    if (this.#phase.name === 'ended') return;
    this.#phase = { name: 'ended' };
    this.#deps.clock.remove(this);
    const leg = this.#leg;
    leg?.close();
    this.#deps.onEnded(this, {
      name: this.#row.name,
      end,
      ...(leg === undefined ? {} : { codec: leg.remote.codec }),
      packetsSent: leg?.packetsSent ?? 0,
      packetsReceived: leg?.packetsReceived ?? 0,
      ...(this.#recorded.length === 0 ? {} : { recorded: joinedBytes(this.#recorded) }),
      ...(this.#talker === undefined ? {} : { talk: this.#talker.summary }),
    });
  }
}

function reasonHeader(reason: string | undefined): Record<string, string> {
  return reason === undefined ? {} : { Reason: reason };
}

function joinedBytes(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
