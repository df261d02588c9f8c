// One call of the sample bot over Twilio Media Streams, as an example to read and to copy. The bot
// waits for a "Hello?", greets, and repeats what it hears. It falls silent when it is interrupted,
// and leaves a message for a machine. Finally it says goodbye and hangs up. Incoming audio is its
// only clock.

import type { WebSocket } from 'ws';
import { VoiceTurns } from '../../embedded/sandbox/voice-turns.ts';
import { readMulawBytes, recordingUrl } from '../../embedded/sandbox/wav-file.ts';
import { type BotEvent, type GatewayMessage, readGatewayMessage } from './bot-events.ts';

/**
 * How long the bot waits for the first word. Most people speak first when they answer, but not all.
 */
const firstWordMs = 2_000;
/** After this much silence the bot says goodbye. */
const patienceMs = 8_000;
/** If the person takes more turns than this, the bot says goodbye. */
const mostTurns = 2;
/** Audio kept from before a voice is detected: 300 ms in frames of 20 ms. */
const prerollFrames = 15;
/** The longest part of a turn that the bot repeats: 15 s in frames of 20 ms. */
const longestTurnFrames = 750;

const lineNames = ['greeting', 'you-said', 'message', 'goodbye'] as const;
type Line = (typeof lineNames)[number];
const recordings = new Map<Line, Uint8Array>();

function recordingOf(line: Line): Uint8Array {
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
  /** Lines that the gateway has received and whose marks have not come back. */
  readonly #queued: Line[] = [];
  /** How many lines at the front of the queue a `clear` message has discarded. */
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
    else if (event === 'media') this.#hear(Buffer.from(media?.payload ?? '', 'base64'));
    else if (event === 'mark') this.#played(mark?.name ?? '');
    else if (event === 'dtmf') this.#press(dtmf?.digit ?? '');
    else if (amd !== undefined) this.#learn(amd);
  }

  #start(start: GatewayMessage['start']): void {
    this.#streamSid = start?.streamSid ?? '';
    const { callId = '', reconnect } = start?.customParameters ?? {};
    this.#callId = callId;
    // After a reconnection, the bot is in the middle of the call.
    this.#hasGreeted = reconnect === '1';
    this.#report({ type: 'started', callId });
  }

  #hear(payload: Buffer): void {
    const change = this.#turns.hear(payload);
    this.#heard.push(payload);
    const kept = this.#turns.isSpeaking || change === 'ended' ? longestTurnFrames : prerollFrames;
    if (this.#heard.length > kept) this.#heard.shift();
    const isQuiet = !this.#turns.isSpeaking && !this.#isTalking;
    this.#quietMs = isQuiet ? this.#quietMs + payload.length / 8 : 0;
    if (change === 'began') this.#fallSilent();
    else if (change === 'ended') this.#answer();
    else if (!this.#hasGreeted && this.#quietMs >= firstWordMs) this.#greet();
    else if (this.#quietMs >= patienceMs) this.#say('goodbye');
  }

  get #isTalking(): boolean {
    return this.#queued.length > this.#dropped;
  }

  /**
   * Handles an interruption: clears the audio that the gateway has not yet played. Never interrupts
   * the bot's last line.
   */
  #fallSilent(): void {
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
    if (this.#hasGreeted) this.#say('you-said', heard);
    else this.#greet();
    if (this.#counts.turns > mostTurns) this.#say('goodbye');
  }

  #greet(): void {
    this.#hasGreeted = true;
    if (!this.#isMachine) this.#say('greeting');
  }

  /**
   * Sends a line. The audio can be of any length: the gateway plays it in real time, and returns
   * the mark when all of it has been heard.
   */
  #say(line: Line, more: Uint8Array = new Uint8Array()): void {
    if (this.#lastLine !== undefined) return;
    if (line === 'goodbye' || line === 'message') this.#lastLine = line;
    const payload = Buffer.concat([recordingOf(line), more]).toString('base64');
    this.#send({ event: 'media', media: { payload } });
    this.#send({ event: 'mark', mark: { name: line } });
    this.#queued.push(line);
  }

  /** Handles a mark. Marks return in order, including the marks of discarded audio. */
  #played(name: string): void {
    const [line] = this.#queued;
    if (line === undefined || line !== name) return;
    this.#queued.shift();
    if (this.#dropped > 0) {
      this.#dropped -= 1;
      return;
    }
    this.#counts.linesSaid += 1;
    this.#report({ type: 'said', line });
    // A normal close hangs up.
    if (line === this.#lastLine) this.#socket.close(1000);
  }

  #press(digit: string): void {
    this.#report({ type: 'dtmf', digit });
    if (digit === '#') this.#say('goodbye');
  }

  #learn(amd: NonNullable<GatewayMessage['amd']>): void {
    this.#report({ type: 'amd', amd });
    if (amd.event === 'amd_machine_detected') {
      this.#isMachine = true;
      this.#fallSilent();
    }
    // Detection stops when it has heard the beep or no longer expects one.
    if (amd.event === 'amd_stopped' && this.#isMachine) this.#say('message');
  }

  #send(message: object): void {
    this.#socket.send(JSON.stringify({ streamSid: this.#streamSid, ...message }));
  }

  #end(code: number): void {
    const { voiceMs } = this.#turns;
    this.#report({ type: 'ended', callId: this.#callId, code, voiceMs, ...this.#counts });
  }
}
