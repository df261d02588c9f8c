// A single call of the sample bot, over Twilio Media Streams. Feel free to copy this code. The bot
// waits for a "Hello?", greets the person, and repeats what it hears. It stops talking when it's
// interrupted, and leaves a message if a machine answers. Finally it says goodbye and hangs up. The
// bot measures time only by the audio that it receives, so it needs no other clock.

import type { WebSocket } from 'ws';
import { VoiceTurns } from '../../embedded/sandbox/voice-turns.ts';
import { readMulawBytes, recordingUrl } from '../../embedded/sandbox/wav-file.ts';
import { type BotEvent, type GatewayMessage, readGatewayMessage } from './bot-events.ts';

/**
 * The bot waits this long for the first word. Most people speak first when they answer the phone,
 * but some don't.
 */
const firstWordMs = 2_000;
/** After this much silence the bot says goodbye. */
const patienceMs = 8_000;
/** After this many turns the bot says goodbye. */
const maxTurns = 2;
/** The number of frames that we keep from before a voice is detected: 300 ms in 20 ms frames. */
const prerollFrames = 15;
/** The bot repeats no more than this much of a turn: 15 s in 20 ms frames. */
const maxTurnFrames = 750;

const lineNames = ['greeting', 'you-said', 'message', 'goodbye'] as const;
type Line = (typeof lineNames)[number];
const recordings = new Map<Line, Uint8Array>();

function loadRecording(line: Line): Uint8Array {
  const audio = recordings.get(line) ?? readMulawBytes(recordingUrl(`bot-${line}`));
  recordings.set(line, audio);
  return audio;
}

export class BotConversation {
  readonly #socket: WebSocket;
  readonly #report: (event: BotEvent) => void;
  readonly #turns = new VoiceTurns();
  #streamSid = '';
  #callId = '';
  /** Lines that we have sent to the gateway, but whose marks haven't been returned yet. */
  readonly #queued: Line[] = [];
  /** The number of lines at the front of the queue that a `clear` message has discarded. */
  #dropped = 0;
  #heard: Buffer[] = [];
  #quietMs = 0;
  #hasGreeted = false;
  #isMachine = false;
  #lastLine: Line | undefined;
  readonly #counts = { turns: 0, linesSaid: 0, interruptions: 0 };

  constructor(socket: WebSocket, report: (event: BotEvent) => void) {
    this.#socket = socket;
    this.#report = report;
    socket.on('error', () => undefined);
    socket.on('message', (data: Buffer, isBinary) => {
      const message = isBinary ? undefined : readGatewayMessage(data.toString());
      if (message !== undefined) this.#receive(message);
    });
    socket.on('close', (code) => this.#end(code));
  }

  #receive({ event, start, media, mark, dtmf, amd }: GatewayMessage): void {
    if (event === 'start') this.#start(start);
    else if (event === 'media') this.#onMedia(Buffer.from(media?.payload ?? '', 'base64'));
    else if (event === 'mark') this.#onMark(mark?.name ?? '');
    else if (event === 'dtmf') this.#onKey(dtmf?.digit ?? '');
    else if (amd !== undefined) this.#onDetection(amd);
  }

  #start(start: GatewayMessage['start']): void {
    this.#streamSid = start?.streamSid ?? '';
    const { callId = '', reconnect } = start?.customParameters ?? {};
    this.#callId = callId;
    // After a reconnection, the bot is already in the middle of the call.
    this.#hasGreeted = reconnect === '1';
    this.#report({ type: 'started', callId });
  }

  #onMedia(payload: Buffer): void {
    const change = this.#turns.hear(payload);
    this.#heard.push(payload);
    const kept = this.#turns.isSpeaking || change === 'ended' ? maxTurnFrames : prerollFrames;
    if (this.#heard.length > kept) this.#heard.shift();
    const isQuiet = !this.#turns.isSpeaking && !this.#isTalking;
    this.#quietMs = isQuiet ? this.#quietMs + payload.length / 8 : 0;
    if (change === 'began') this.#stopTalking();
    else if (change === 'ended') this.#answer();
    else if (!this.#hasGreeted && this.#quietMs >= firstWordMs) this.#greet();
    else if (this.#quietMs >= patienceMs) this.#sendLine('goodbye');
  }

  get #isTalking(): boolean {
    return this.#queued.length > this.#dropped;
  }

  /**
   * Handles an interruption by clearing any audio that the gateway hasn't played yet. The bot can't
   * be interrupted during its last line.
   */
  #stopTalking(): void {
    if (!this.#isTalking || this.#lastLine !== undefined) return;
    this.#send({ event: 'clear' });
    this.#dropped = this.#queued.length;
    this.#counts.interruptions += 1;
    this.#report({ type: 'interrupted', line: this.#queued.at(-1) ?? '' });
  }

  #answer(): void {
    const heard = Buffer.concat(this.#heard.splice(0));
    this.#counts.turns += 1;
    this.#report({ type: 'heard', turnMs: heard.length / 8 });
    if (this.#isMachine || this.#lastLine !== undefined) return;
    if (this.#hasGreeted) this.#sendLine('you-said', heard);
    else this.#greet();
    if (this.#counts.turns > maxTurns) this.#sendLine('goodbye');
  }

  #greet(): void {
    this.#hasGreeted = true;
    if (!this.#isMachine) this.#sendLine('greeting');
  }

  /**
   * Sends a line. The audio can have any length, because the gateway plays it in real time. It
   * returns the mark once the person has heard all of the audio.
   */
  #sendLine(line: Line, more: Uint8Array = new Uint8Array()): void {
    if (this.#lastLine !== undefined) return;
    if (line === 'goodbye' || line === 'message') this.#lastLine = line;
    const payload = Buffer.concat([loadRecording(line), more]).toString('base64');
    this.#send({ event: 'media', media: { payload } });
    this.#send({ event: 'mark', mark: { name: line } });
    this.#queued.push(line);
  }

  /** Handles a mark. Marks are returned in order, even if their audio was discarded. */
  #onMark(name: string): void {
    const [line] = this.#queued;
    if (line === undefined || line !== name) return;
    this.#queued.shift();
    if (this.#dropped > 0) {
      this.#dropped -= 1;
      return;
    }
    this.#counts.linesSaid += 1;
    this.#report({ type: 'said', line });
    // When a stream closes normally, the gateway hangs up.
    if (line === this.#lastLine) this.#socket.close(1000);
  }

  #onKey(digit: string): void {
    this.#report({ type: 'dtmf', digit });
    if (digit === '#') this.#sendLine('goodbye');
  }

  #onDetection(amd: NonNullable<GatewayMessage['amd']>): void {
    this.#report({ type: 'amd', amd });
    if (amd.event === 'amd_machine_detected') {
      this.#isMachine = true;
      this.#stopTalking();
    }
    // Detection stops after it has heard the beep, or has given up waiting for one.
    if (amd.event === 'amd_stopped' && this.#isMachine) this.#sendLine('message');
  }

  #send(message: object): void {
    this.#socket.send(JSON.stringify({ streamSid: this.#streamSid, ...message }));
  }

  #end(code: number): void {
    const { voiceMs } = this.#turns;
    this.#report({ type: 'ended', callId: this.#callId, code, voiceMs, ...this.#counts });
  }
}
