// One application on a control connection, with the frames that it sends and our replies.

import type { Socket } from 'node:net';
import { encodeFrame } from './control-framing.ts';
import {
  formatReply,
  formatRequestSent,
  formatResponseSent,
  formatSipNotice,
  type SentRequestNotice,
  type SentResponseNotice,
  type SipNotice,
} from './control-messages.ts';

/** If an application stops reading, we disconnect it once this much output has piled up. */
const maxUnsentBytes = 64 * 1_024 * 1_024;

export class ControlClient {
  readonly #socket: Socket;
  readonly #uuid: () => string;
  readonly tags: string[] = [];
  authenticated = false;
  #gone = false;
  #pending = '';

  constructor(socket: Socket, uuid: () => string) {
    this.#socket = socket;
    this.#uuid = uuid;
  }

  get alive(): boolean {
    return !this.#gone && !this.#socket.destroyed && this.#socket.writable;
  }

  markGone(): void {
    this.#gone = true;
  }

  ok(messageId: string, ...details: readonly string[]): void {
    this.#write(formatReply(this.#uuid(), messageId, 'OK', ...details));
  }

  /** Rejects a command, but keeps the connection open. */
  refuse(messageId: string, reason: string): void {
    this.#write(formatReply(this.#uuid(), messageId, 'NOK', reason));
  }

  /**
   * Rejects the command and disconnects the application, because it doesn't follow the protocol or
   * hasn't authenticated.
   */
  refuseAndClose(messageId: string, reason: string): void {
    this.#write(formatReply(this.#uuid(), messageId, 'NO', reason));
    this.#flush();
    this.#socket.end();
  }

  requestSent(messageId: string, sent: SentRequestNotice): void {
    this.#write(formatRequestSent(this.#uuid(), messageId, sent));
  }

  responseSent(messageId: string, sent: SentResponseNotice): void {
    this.#write(formatResponseSent(this.#uuid(), messageId, sent));
  }

  notify(notice: SipNotice): void {
    this.#write(formatSipNotice(this.#uuid(), notice));
  }

  /** Sends a call detail record: `cdr:attempt`, `cdr:start` or `cdr:stop`. */
  report(fields: readonly string[], text: string): void {
    this.#write(`${this.#uuid()}|${fields.join('|')}\r\n${text}`);
  }

  /**
   * Combines all output from one turn of the event loop into a single write, because most of a
   * call's cost is spent on system calls.
   */
  #write(payload: string): void {
    if (!this.alive) return;
    if (this.#pending === '') setImmediate(() => this.#flush());
    this.#pending += encodeFrame(payload);
    if (this.#socket.writableLength + this.#pending.length > maxUnsentBytes) {
      this.#pending = '';
      this.#socket.destroy();
    }
  }

  #flush(): void {
    const text = this.#pending;
    this.#pending = '';
    if (text !== '' && this.alive) this.#socket.write(text, 'latin1');
  }
}
