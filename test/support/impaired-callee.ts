// A callee with a line of its own: what it answers, when it holds, and what becomes of its audio on the way is the test's.

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

  /** `dial` gets the URI to be dialled; the callee is there when its INVITE has come. */
  static async called<Placed>(
    dial: (target: string) => Promise<Placed>,
  ): Promise<{ readonly callee: ImpairedCallee; readonly placed: Placed }> {
    const sip = await RawCallee.start({ dropsRepetitions: true });
    const placed = await dial(`sip:callee@127.0.0.1:${sip.port}`);
    const invite = await sip.take('INVITE');
    const callee = new ImpairedCallee(sip, invite, await RtpLine.open(audioOf(invite.body)));
    return { callee, placed };
  }

  /** 183, and the one who reads it hears this line from now on. */
  ringWithEarlyMedia(line = this.line): void {
    this.#sip.reply(this.#invite, 183, 'Session Progress', { body: this.#sdp('sendrecv', line) });
  }

  /** Another line to where the offer wants its audio. */
  anotherLine(): Promise<RtpLine> {
    return RtpLine.open(audioOf(this.#invite.body));
  }

  async answer(line = this.line): Promise<void> {
    this.#sip.reply(this.#invite, 200, 'OK', { body: this.#sdp('sendrecv', line) });
    await this.#sip.take('ACK');
  }

  /** A re-INVITE; the answer to it. */
  async reoffer(direction: Direction, line = this.line): Promise<string> {
    this.#sip.request(this.#invite, 'INVITE', { body: this.#sdp(direction, line) });
    const { body } = await this.#sip.takeResponse(200);
    this.#sip.request(this.#invite, 'ACK');
    return body;
  }

  /** The other side hangs up. */
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
