// One call of the sample bot, in Twilio Media Streams; to read, and to copy from. It waits for a "Hello?", greets, repeats what
// it hears, falls silent when it is interrupted, leaves a message for a machine, says goodbye and hangs up. The audio that comes
// in is its only clock.

import type { WebSocket } from 'ws';
import { VoiceTurns } from '../../embedded/sandbox/voice-turns.ts';
import { readMulawBytes, recordingUrl } from '../../embedded/sandbox/wav-file.ts';
import { type BotEvent, type GatewayMessage, readGatewayMessage } from './bot-events.ts';

/** Most people who answer speak first, but not all. */
const firstWordMs = 2_000;
/** Of silence, until it says goodbye. */
const patienceMs = 8_000;
const answers = 2;
/** What was said before a voice was noticed, and how much of a long turn is repeated: 300 ms and 15 s of 20 ms each. */
const prerollFrames = 15;
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
  readonly #tell: (event: BotEvent) => void;
  readonly #turns = new VoiceTurns();
  #streamSid = '';
  #callId = '';
  /** Lines that the gateway has and has not played, and how many of the first it was told to drop. */
  readonly #queued: Line[] = [];
  #dropped = 0;
  #heard: Buffer[] = [];
  #quietMs = 0;
  #hasGreeted = false;
  #isMachine = false;
  #lastLine: Line | undefined;
  readonly #counts = { turns: 0, linesSaid: 0, interruptions: 0 };

  constructor(socket: WebSocket, tell: (event: BotEvent) => void) {
    this.#socket = socket;
    this.#tell = tell;
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
    // After a break of the connection it is in the middle of the call.
    this.#hasGreeted = reconnect === '1';
    this.#tell({ type: 'started', callId });
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

  /** It was interrupted: what the gateway has of our audio must not be heard any more. A goodbye may be talked over. */
  #fallSilent(): void {
    if (!this.#isTalking || this.#lastLine !== undefined) return;
    this.#send({ event: 'clear' });
    this.#dropped = this.#queued.length;
    this.#counts.interruptions += 1;
    this.#tell({ type: 'interrupted', line: this.#queued.at(-1) ?? '' });
  }

  #answer(): void {
    const heard = Buffer.concat(this.#heard.splice(0));
    this.#counts.turns += 1;
    this.#tell({ type: 'heard', turnMs: heard.length / 8 });
    if (this.#isMachine || this.#lastLine !== undefined) return;
    if (this.#hasGreeted) this.#say('you-said', heard);
    else this.#greet();
    if (this.#counts.turns > answers) this.#say('goodbye');
  }

  #greet(): void {
    this.#hasGreeted = true;
    if (!this.#isMachine) this.#say('greeting');
  }

  /** Any amount of audio at once: the gateway plays it at its pace, and returns the mark when it has been heard. */
  #say(line: Line, more: Uint8Array = new Uint8Array()): void {
    if (this.#lastLine !== undefined) return;
    if (line === 'goodbye' || line === 'message') this.#lastLine = line;
    const payload = Buffer.concat([recordingOf(line), more]).toString('base64');
    this.#send({ event: 'media', media: { payload } });
    this.#send({ event: 'mark', mark: { name: line } });
    this.#queued.push(line);
  }

  /** Marks return in their order, of what was dropped, too. */
  #played(name: string): void {
    const [line] = this.#queued;
    if (line === undefined || line !== name) return;
    this.#queued.shift();
    if (this.#dropped > 0) {
      this.#dropped -= 1;
      return;
    }
    this.#counts.linesSaid += 1;
    this.#tell({ type: 'said', line });
    // A normal close hangs up.
    if (line === this.#lastLine) this.#socket.close(1000);
  }

  #press(digit: string): void {
    this.#tell({ type: 'dtmf', digit });
    if (digit === '#') this.#say('goodbye');
  }

  #learn(amd: NonNullable<GatewayMessage['amd']>): void {
    this.#tell({ type: 'amd', amd });
    if (amd.event === 'amd_machine_detected') {
      this.#isMachine = true;
      this.#fallSilent();
    }
    // After the beep, or when none is to be expected any more.
    if (amd.event === 'amd_stopped' && this.#isMachine) this.#say('message');
  }

  #send(message: object): void {
    this.#socket.send(JSON.stringify({ streamSid: this.#streamSid, ...message }));
  }

  #end(code: number): void {
    const { voiceMs } = this.#turns;
    this.#tell({ type: 'ended', callId: this.#callId, code, voiceMs, ...this.#counts });
  }
}
