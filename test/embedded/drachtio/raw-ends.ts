// Both ends of an engine without srf: an application on the control port and a peer on the wire.
// srf would hide or correct what these tests need to send.

import { randomUUID } from 'node:crypto';
import type { SipEngineAddresses } from '../../../src/embedded/drachtio/engine.ts';
import { eventually } from '../../support/eventually.ts';
import { connectControl, openUdpPeer } from './transcripts/sockets.ts';

/** Stores texts in the order of their arrival. Tests take them out by content. */
class Inbox {
  readonly #texts: string[] = [];

  put(text: string): void {
    this.#texts.push(text);
  }

  get size(): number {
    return this.#texts.length;
  }

  /** Waits for a match and removes it. The other texts stay. */
  async take(pattern: RegExp): Promise<string> {
    const find = (): number => this.#texts.findIndex((text) => pattern.test(text));
    await eventually(
      () => find() >= 0,
      () => `${pattern} arrives; the inbox holds:\n${this.#texts.join('\n---\n')}`,
    );
    return this.#texts.splice(find(), 1)[0] ?? '';
  }

  matching(pattern: RegExp): number {
    return this.#texts.filter((text) => pattern.test(text)).length;
  }
}

export class RawApplication {
  readonly inbox = new Inbox();
  closed = false;
  #control: Awaited<ReturnType<typeof connectControl>> | undefined;

  static async connect(engine: SipEngineAddresses, secret = 'cymru'): Promise<RawApplication> {
    const application = await RawApplication.connectOnly(engine);
    application.send(`authenticate|${secret}|`);
    await application.inbox.take(/\|response\|.*\|OK\|tcp/);
    return application;
  }

  static async connectOnly(engine: SipEngineAddresses): Promise<RawApplication> {
    const application = new RawApplication();
    application.#control = await connectControl(
      engine.controlPort,
      (payload) => application.inbox.put(payload),
      () => {
        application.closed = true;
      },
    );
    return application;
  }

  /** Sends a frame. Adds the id that every frame begins with, and returns it. */
  send(rest: string): string {
    const id = randomUUID();
    this.#control?.send(`${id}|${rest}`);
    return id;
  }

  sendRaw(bytes: string): void {
    this.#control?.sendRaw(bytes);
  }

  async route(verb: string): Promise<void> {
    const id = this.send(`route|${verb}`);
    await this.inbox.take(new RegExp(`response\\|${id}\\|OK`));
  }

  /** Resolves with the request's transaction id and the whole answer. */
  async request(
    rest: string,
  ): Promise<{ readonly transactionId: string; readonly answer: string }> {
    const id = this.send(`sip|${rest}`);
    const answer = await this.inbox.take(new RegExp(`response\\|${id}\\|`));
    return { transactionId: answer.split('|')[10] ?? '', answer };
  }

  close(): void {
    this.#control?.close();
  }
}

export class RawPeer {
  readonly inbox = new Inbox();
  #socket: Awaited<ReturnType<typeof openUdpPeer>> | undefined;
  #isClosed = false;
  readonly #engine: SipEngineAddresses;

  constructor(engine: SipEngineAddresses) {
    this.#engine = engine;
  }

  static async open(engine: SipEngineAddresses): Promise<RawPeer> {
    const peer = new RawPeer(engine);
    peer.#socket = await openUdpPeer((text) => peer.inbox.put(text));
    return peer;
  }

  /** The port remains known after `close`. */
  get port(): number {
    return this.#socket?.port ?? 0;
  }

  get uri(): string {
    return `sip:bob@127.0.0.1:${this.port}`;
  }

  send(text: string): void {
    this.#socket?.send(text, this.#engine.sipPort);
  }

  /** Sends a response with the given To tag. Default for `extra`: this peer's Contact. */
  answer(request: string, statusLine: string, tag: string, extra?: string): void {
    const lines = ['Via', 'From', 'Call-ID', 'CSeq'].map(
      (name) => `${name}: ${header(request, name)}`,
    );
    const to = header(request, 'To');
    const contact = extra ?? `Contact: <${this.uri}>`;
    this.send(
      `SIP/2.0 ${statusLine}\r\n${lines.join('\r\n')}\r\nTo: ${to.includes(';tag=') ? to : `${to};tag=${tag}`}\r\n${contact}\r\nContent-Length: 0\r\n\r\n`,
    );
  }

  /**
   * Sends a request to the engine. In a dialog, `to` must contain its tag. An empty `contact`
   * leaves the header out.
   */
  request(method: string, call: CallHeaders, extra = '', contact = `<${this.uri}>`): void {
    const { callId, cseq, from, to, branch = `z9hG4bK${randomUUID()}` } = call;
    this.send(
      `${method} sip:alice@127.0.0.1:${this.#engine.sipPort} SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:${this.port};branch=${branch}\r\nFrom: ${from}\r\nTo: ${to}\r\nCall-ID: ${callId}\r\nCSeq: ${cseq} ${method}\r\nMax-Forwards: 70\r\n${contact === '' ? '' : `Contact: ${contact}\r\n`}${extra}Content-Length: 0\r\n\r\n`,
    );
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#socket?.close();
  }
}

export type CallHeaders = {
  readonly callId: string;
  readonly cseq: number;
  readonly from: string;
  readonly to: string;
  readonly branch?: string;
};

export function header(message: string, name: string): string {
  return new RegExp(`^${name}: *(.*?)\\r$`, 'm').exec(message)?.[1] ?? '';
}
