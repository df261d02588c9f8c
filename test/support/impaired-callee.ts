// A callee with its own line. The test decides what it answers, when it holds, and how its audio is
// impaired on the way.

import { randomInt } from 'node:crypto';
import { RawCallee, type RawMessage } from './raw-callee.ts';
import { RtpLine } from './rtp-line.ts';

type Direction = 'sendrecv' | 'sendonly' | 'inactive';

export class ImpairedCallee implements AsyncDisposable {
  readonly line: RtpLine;
  readonly #sip: RawCallee;
  readonly #invite: RawMessage;
  readonly #sessionId = randomInt(1, 2 ** 31);
  #version = 0;

  private constructor(sip: RawCallee, invite: RawMessage, line: RtpLine) {
    this.#sip = sip;
    this.#invite = invite;
    this.line = line;
  }

  /**
   * Calls `dial` with the URI of a new callee. Resolves when the callee has received its INVITE.
   */
  static async called<Placed>(
    dial: (target: string) => Promise<Placed>,
  ): Promise<{ readonly callee: ImpairedCallee; readonly placed: Placed }> {
    const sip = await RawCallee.start({ dropsRepetitions: true });
    const placed = await dial(`sip:callee@127.0.0.1:${sip.port}`);
    const invite = await sip.take('INVITE');
    const callee = new ImpairedCallee(sip, invite, await RtpLine.open(audioOf(invite.body)));
    return { callee, placed };
  }

  /** Sends 183 with SDP. From then on the caller hears `line`. */
  ringWithEarlyMedia(line = this.line): void {
    this.#sip.reply(this.#invite, 183, 'Session Progress', { body: this.#sdp('sendrecv', line) });
  }

  /** Opens another line to the address of the offer. */
  anotherLine(): Promise<RtpLine> {
    return RtpLine.open(audioOf(this.#invite.body));
  }

  async answer(line = this.line): Promise<void> {
    this.#sip.reply(this.#invite, 200, 'OK', { body: this.#sdp('sendrecv', line) });
    await this.#sip.take('ACK');
  }

  /** Sends a re-INVITE and returns the SDP of the answer. */
  async reoffer(direction: Direction, line = this.line): Promise<string> {
    this.#sip.request(this.#invite, 'INVITE', { body: this.#sdp(direction, line) });
    const { body } = await this.#sip.takeResponse(200);
    this.#sip.request(this.#invite, 'ACK');
    return body;
  }

  /** Waits until the gateway hangs up, and answers its BYE. */
  async isHungUp(): Promise<void> {
    this.#sip.reply(await this.#sip.take('BYE'), 200, 'OK', { contact: false });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.line[Symbol.asyncDispose]();
    await this.#sip[Symbol.asyncDispose]();
  }

  #sdp(direction: Direction, { port }: RtpLine): string {
    this.#version += 1;
    const lines = [
      'v=0',
      `o=callee ${this.#sessionId} ${this.#version} IN IP4 127.0.0.1`,
      's=-',
      'c=IN IP4 127.0.0.1',
      't=0 0',
      `m=audio ${port} RTP/AVP 0 13`,
      'a=rtpmap:0 PCMU/8000',
      'a=rtpmap:13 CN/8000',
      `a=${direction}`,
    ];
    return `${lines.join('\r\n')}\r\n`;
  }
}

function audioOf(sdp: string): { readonly host: string; readonly port: number } {
  return {
    host: /^c=IN IP4 (\S+)/m.exec(sdp)?.[1] ?? '',
    port: Number(/^m=audio (\d+)/m.exec(sdp)?.[1]),
  };
}
