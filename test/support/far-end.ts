// Phones behind one UDP socket. Each phone's number determines how it behaves. The phones implement
// RFC 3261 independently of our engine: they retransmit whatever a callee must retransmit, and
// record when each call began and ended.

import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { freeUdpPort } from './free-port.ts';
import {
  type PhoneVoices,
  type Voice,
  type VoiceLog,
  type VoiceName,
  voiceNames,
} from './phone-voices.ts';
import { first, type Message, parse, response, sdpOf } from './sip-text.ts';

/** What a phone of the behaviour `scripted` does. */
export type PhoneScript = {
  /**
   * Asked when the INVITE arrives. Returns how long the phone rings, or undefined if it rings until
   * the caller cancels.
   */
  readonly ringMs: () => number | undefined;
  readonly voice?: Voice;
  /** From the answer until the phone hangs up. Undefined if it stays until the caller hangs up. */
  readonly talkMs?: number | undefined;
  readonly onAnswered?: () => void;
};

/** A call, identified by its Call-ID. All instants come from `Date.now()`. */
export type FarCall = VoiceLog & {
  readonly sipCallId: string;
  readonly number: string;
  /** The digits of the caller. */
  readonly caller?: string;
  readonly invitedAt: number;
  /** The port at which the caller wants to receive audio. */
  readonly audioPort?: number;
  rangAt?: number;
  answeredAt?: number;
  acknowledgedAt?: number;
  /**
   * The caller's BYEs, without retransmissions. The first BYE gets a 200 response, and any BYE
   * after the end of the call gets a 481.
   */
  readonly byes: { readonly at: number; readonly status: 200 | 481 }[];
  /** When either side sent BYE, or the phone sent a final response other than 200. */
  endedAt?: number;
};

type Dialog = FarCall & {
  readonly invite: Message;
  readonly from: RemoteInfo;
  readonly timers: Set<NodeJS.Timeout>;
  /** The status of the response to each BYE, by branch (RFC 3261, 17.2.3). */
  readonly byeAnswers: Map<string, 200 | 481>;
  lastResponse: string;
  hasReferred?: boolean;
};

/**
 * Behaviours by the fourth and fifth digit of a number. The two digits after them are a parameter
 * in tenths of a second, unless the behaviour says otherwise.
 */
const behaviours = {
  /** Picks up, and hangs up after the time in the parameter. */
  '10': 'talk',
  /** Picks up and stays until the caller hangs up. */
  '11': 'stay',
  '12': 'busy',
  /** Rings until the caller cancels. */
  '13': 'ring',
  /** Rings for the time in the parameter, then talks for a second. */
  '14': 'late',
  /** Rings for the time in the parameter, then stays until the caller hangs up. */
  '15': 'late-stay',
  /**
   * These three pick up, say what their voice says, and stay until the caller hangs up. Without
   * `voices` they are silent.
   */
  '16': 'mailbox',
  '17': 'greets',
  '18': 'screener',
  /** Like `late-stay`, but the parameter is in seconds. */
  '19': 'later-stay',
  /** Does what its `PhoneScript` says. */
  '20': 'scripted',
} as const;
const lateBehaviours: ReadonlySet<string> = new Set(['late', 'late-stay', 'later-stay']);
type Behaviour = (typeof behaviours)[keyof typeof behaviours];

/**
 * Returns a number for one phone: `491` (German numbers may be as long as this), the behaviour, the
 * parameter and a counter.
 */
export function numberFor(behaviour: Behaviour, parameter: number, index: number): string {
  const code = Object.entries(behaviours).find(([, name]) => name === behaviour)?.[0] ?? '';
  return `491${code}${String(parameter).padStart(2, '0')}${String(index).padStart(7, '0')}`;
}

/** RFC 3261, section 13.3.1.4: the callee retransmits a 200 until the ACK, for 64 * T1. */
const t1Ms = 500;
/** The discard port (RFC 863), where nobody listens. */
const discardPort = 9;
const ringAfterMs = 20;
/** How long a phone rings at most, even if its caller has vanished. */
const ringsForMs = 30_000;
const answerAfterMs = 60;
const oneSecondMs = 1_000;

/** What the phones of a far end say and hear. */
export type FarVoices = Pick<PhoneVoices, 'port' | 'talk' | 'hush'>;

export class FarEnd implements AsyncDisposable {
  readonly calls: FarCall[] = [];
  readonly #dialogs = new Map<string, Dialog>();
  readonly #socket: Socket;
  readonly #audioPort: number;
  readonly #voices: FarVoices | undefined;
  /** The scripts of phones of the behaviour `scripted`, by number. */
  readonly scripts = new Map<string, PhoneScript>();
  #isAway = false;
  #up = 0;
  #mostUp = 0;

  private constructor(socket: Socket, audioPort: number, voices: FarVoices | undefined) {
    this.#voices = voices;
    this.#socket = socket;
    this.#audioPort = audioPort;
    socket.on('message', (data, from) => this.#onMessage(data.toString(), from));
  }

  /** @param audioPort where phones without a voice receive audio */
  static async start(audioPort = discardPort, voices?: FarVoices): Promise<FarEnd> {
    const socket = createSocket({ type: 'udp4', recvBufferSize: 4 * 1_024 * 1_024 });
    const farEnd = new FarEnd(socket, audioPort, voices);
    socket.bind(await freeUdpPort(), '127.0.0.1');
    await once(socket, 'listening');
    return farEnd;
  }

  get port(): number {
    return this.#socket.address().port;
  }

  /** Makes the phones unreachable, or reachable again: they lose all that they get and send. */
  setAway(isAway: boolean): void {
    this.#isAway = isAway;
  }

  /** Number of calls between their INVITE and their end. */
  get up(): number {
    return this.#up;
  }

  get mostUp(): number {
    return this.#mostUp;
  }

  /** Returns the largest number of INVITEs with a new Call-ID within one second. */
  peakInvitesPerSecond(): number {
    const times = this.calls.map((call) => call.invitedAt);
    let most = 0;
    let first = 0;
    times.forEach((time, last) => {
      while (time - (times[first] ?? time) >= oneSecondMs) first += 1;
      most = Math.max(most, last - first + 1);
    });
    return most;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const dialog of this.#dialogs.values()) clearTimers(dialog);
    this.#socket.close();
    await once(this.#socket, 'close');
  }

  #onMessage(text: string, from: RemoteInfo): void {
    if (this.#isAway) return;
    const message = parse(text);
    if (message === undefined || !message.isRequest) return;
    const dialog = this.#dialogs.get(first(message, 'call-id'));
    if (message.method === 'INVITE') this.#onInvite(message, from, dialog);
    else if (message.method !== 'ACK') this.#onRequest(message, from, dialog);
    else if (dialog !== undefined) {
      dialog.acknowledgedAt ??= Date.now();
      clearTimers(dialog, 'resend');
    }
  }

  #onRequest(message: Message, from: RemoteInfo, dialog: Dialog | undefined): void {
    if (message.method === 'REFER' && dialog !== undefined) {
      this.#onRefer(message, dialog);
      return;
    }
    const status = message.method === 'BYE' ? byeStatus(message, dialog) : 200;
    const reason = status === 200 ? 'OK' : 'Call/Transaction Does Not Exist';
    this.#write(response(message, status, reason, this.port), from);
    if (dialog === undefined) return;
    if (message.method === 'BYE') this.#over(dialog);
    if (message.method === 'CANCEL' && dialog.answeredAt === undefined) {
      this.#end(dialog, 487, 'Request Terminated');
    }
  }

  /**
   * Accepts a REFER. A phone with an even number then reports success. A phone with an odd number
   * reports nothing more.
   */
  #onRefer(refer: Message, dialog: Dialog): void {
    this.#write(response(refer, 202, 'Accepted', this.port), dialog.from);
    if (dialog.hasReferred === true || Number(dialog.number) % 2 === 1) return;
    dialog.hasReferred = true;
    later(dialog, answerAfterMs, () => {
      if (dialog.endedAt === undefined) this.#write(this.#notify(dialog), dialog.from);
    });
  }

  #notify(dialog: Dialog): string {
    return this.#request(dialog, 'NOTIFY', 1, [
      ...['Event: refer', 'Subscription-State: terminated;reason=noresource'],
      ...['Content-Type: message/sipfrag', 'Content-Length: 14', '', 'SIP/2.0 200 OK'],
    ]);
  }

  #onInvite(invite: Message, from: RemoteInfo, known: Dialog | undefined): void {
    if (known === undefined) this.#ring(invite, from);
    else if (known.lastResponse !== '') this.#write(known.lastResponse, from);
  }

  #ring(invite: Message, from: RemoteInfo): void {
    const sipCallId = first(invite, 'call-id');
    const number = /sip:\+?(\d+)@/.exec(invite.startLine)?.[1] ?? '';
    const caller = /sip:\+?(\d+)@/.exec(first(invite, 'from'))?.[1] ?? '';
    const dialog: Dialog = {
      ...{ sipCallId, number, caller, invitedAt: Date.now(), invite, from },
      audioPort: Number(/^m=audio (\d+)/m.exec(invite.body)?.[1]),
      byes: [],
      timers: new Set(),
      byeAnswers: new Map(),
      lastResponse: '',
    };
    this.#dialogs.set(sipCallId, dialog);
    this.calls.push(dialog);
    this.#up += 1;
    this.#mostUp = Math.max(this.#mostUp, this.#up);
    const behaviour = behaviours[number.slice(3, 5) as keyof typeof behaviours];
    const unitMs = behaviour === 'later-stay' ? oneSecondMs : 100;
    const parameterMs = Number(number.slice(5, 7)) * unitMs;
    if (behaviour === 'busy') {
      this.#end(dialog, 486, 'Busy Here');
      return;
    }
    later(dialog, ringAfterMs, () => {
      dialog.rangAt = Date.now();
      this.#respond(dialog, 180, 'Ringing');
    });
    if (behaviour === 'scripted') {
      this.#perform(dialog, this.scripts.get(number));
      return;
    }
    if (behaviour === 'ring') {
      this.#ringOn(dialog);
      return;
    }
    const isLate = behaviour !== undefined && lateBehaviours.has(behaviour);
    const pickUpAfterMs = isLate ? parameterMs + answerAfterMs : answerAfterMs;
    const talkMs =
      behaviour === 'talk' ? parameterMs : behaviour === 'late' ? oneSecondMs : undefined;
    const voice = voiceNames.find((name) => name === behaviour);
    later(dialog, pickUpAfterMs, () => this.#answer(dialog, talkMs, voice));
  }

  #ringOn(dialog: Dialog): void {
    later(dialog, ringsForMs, () => this.#end(dialog, 480, 'Temporarily Unavailable'));
  }

  #perform(dialog: Dialog, script: PhoneScript | undefined): void {
    const ringMs = script?.ringMs();
    if (script === undefined || ringMs === undefined) {
      this.#ringOn(dialog);
      return;
    }
    later(dialog, Math.max(ringAfterMs, ringMs), () => {
      this.#answer(dialog, script.talkMs, script.voice);
      script.onAnswered?.();
    });
  }

  #answer(dialog: Dialog, talkMs: number | undefined, voice: VoiceName | Voice | undefined): void {
    dialog.answeredAt = Date.now();
    const voices = voice === undefined ? undefined : this.#voices;
    this.#respond(dialog, 200, 'OK', sdpOf(voices?.port ?? this.#audioPort));
    if (voice !== undefined)
      voices?.talk(dialog.sipCallId, voice, dialog.audioPort ?? discardPort, dialog);
    const resend = (afterMs: number, leftMs: number): void => {
      if (leftMs <= 0) {
        this.#hangUp(dialog);
        return;
      }
      later(
        dialog,
        afterMs,
        () => {
          this.#write(dialog.lastResponse, dialog.from);
          resend(Math.min(afterMs * 2, 8 * t1Ms), leftMs - afterMs);
        },
        'resend',
      );
    };
    resend(t1Ms, 64 * t1Ms);
    if (talkMs !== undefined) later(dialog, talkMs, () => this.#hangUp(dialog));
  }

  #hangUp(dialog: Dialog): void {
    this.#write(this.#request(dialog, 'BYE', 2, ['Content-Length: 0', '', '']), dialog.from);
    this.#over(dialog);
  }

  #request(
    { invite, sipCallId }: Dialog,
    method: string,
    sequence: number,
    rest: readonly string[],
  ): string {
    const contact = /<([^>]+)>/.exec(first(invite, 'contact'))?.[1] ?? '';
    return [
      `${method} ${contact} SIP/2.0`,
      `Via: SIP/2.0/UDP 127.0.0.1:${this.port};branch=z9hG4bK-${method}-${sipCallId}`,
      'Max-Forwards: 70',
      `From: ${first(invite, 'to')};tag=far`,
      `To: ${first(invite, 'from')}`,
      `Call-ID: ${sipCallId}`,
      `CSeq: ${sequence} ${method}`,
      ...rest,
    ].join('\r\n');
  }

  #end(dialog: Dialog, status: number, reason: string): void {
    if (dialog.endedAt !== undefined) return;
    this.#over(dialog);
    this.#respond(dialog, status, reason);
    later(dialog, t1Ms, () => this.#write(dialog.lastResponse, dialog.from), 'resend');
  }

  #over(dialog: Dialog): void {
    clearTimers(dialog);
    if (dialog.endedAt !== undefined) return;
    dialog.endedAt = Date.now();
    this.#voices?.hush(dialog.sipCallId);
    this.#up -= 1;
  }

  #respond(dialog: Dialog, status: number, reason: string, body = ''): void {
    dialog.lastResponse = response(dialog.invite, status, reason, this.port, body);
    this.#write(dialog.lastResponse, dialog.from);
  }

  #write(text: string, to: RemoteInfo): void {
    if (!this.#isAway) this.#socket.send(text, to.port, to.address);
  }
}

/**
 * Returns the status for the response to a BYE: 481 if the dialog doesn't exist any more (RFC 3261,
 * 15.1.2). A retransmission gets the same response as the first BYE.
 */
function byeStatus(bye: Message, dialog: Dialog | undefined): 200 | 481 {
  if (dialog === undefined) return 481;
  const branch = /branch=([^;]+)/.exec(first(bye, 'via'))?.[1] ?? '';
  const known = dialog.byeAnswers.get(branch);
  if (known !== undefined) return known;
  const status = dialog.endedAt === undefined ? 200 : 481;
  dialog.byeAnswers.set(branch, status);
  dialog.byes.push({ at: Date.now(), status });
  return status;
}

type Timed = Dialog & { readonly timers: Set<NodeJS.Timeout & { kind?: string }> };

function later(dialog: Dialog, ms: number, work: () => void, kind = 'step'): void {
  const timer: NodeJS.Timeout & { kind?: string } = setTimeout(() => {
    dialog.timers.delete(timer);
    work();
  }, ms);
  timer.kind = kind;
  dialog.timers.add(timer);
}

function clearTimers(dialog: Dialog, kind?: string): void {
  for (const timer of (dialog as Timed).timers) {
    if (kind !== undefined && timer.kind !== kind) continue;
    clearTimeout(timer);
    dialog.timers.delete(timer);
  }
}
