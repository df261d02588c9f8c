// A callee on a plain UDP socket, or another channel. It sends exactly what the test writes, reads
// whatever arrives, and never retransmits or corrects anything.

import { randomUUID } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { eventually } from './eventually.ts';
import { freeUdpPort } from './free-port.ts';
import { drachtioBinary } from './sip-engine.ts';

export type CalleePeer = { readonly address: string; readonly port: number };

/** What the callee sends and receives its messages over. */
export type CalleeChannel = {
  /** Default: 127.0.0.1. */
  readonly host?: string;
  readonly port: number;
  readonly transport: 'UDP' | 'TLS';
  send(to: CalleePeer, text: string): void;
  close(): Promise<void>;
};

type OpenChannel = (onMessage: (text: string, from: CalleePeer) => void) => Promise<CalleeChannel>;

export type RawMessage = {
  readonly startLine: string;
  /** The method in the CSeq header, for requests and responses alike. */
  readonly method: string;
  readonly status: number | undefined;
  readonly headers: ReadonlyMap<string, readonly string[]>;
  readonly body: string;
  readonly from: CalleePeer;
};

export type ReplyOptions = {
  readonly tag?: string;
  readonly body?: string;
  readonly headers?: readonly string[];
  readonly contact?: boolean;
};

export type RawCalleeOptions = {
  /**
   * Drops repeated messages. Use this with engines in other processes, because they retransmit a
   * request after half a second without a response, and any process may stand still for that long.
   * An engine in the test's own process has a patient clock, so a pause doesn't make it retransmit.
   * Default: only with a real drachtio-server.
   */
  readonly dropsRepetitions?: boolean;
  /** Default: UDP. */
  readonly over?: OpenChannel;
};

export class RawCallee implements AsyncDisposable {
  readonly inbox: RawMessage[] = [];
  #channel: CalleeChannel | undefined;
  /**
   * Part of each branch. Without it, two callees' requests could look like retransmissions of each
   * other (RFC 3261, 8.1.1.7 and 17.2.3).
   */
  readonly #id = randomUUID();
  #cseq = 1;
  /** The messages that arrived so far. Undefined unless repetitions are dropped. */
  readonly #seen: Set<string> | undefined;

  private constructor({ dropsRepetitions = drachtioBinary !== undefined }: RawCalleeOptions) {
    this.#seen = dropsRepetitions ? new Set() : undefined;
  }

  static async start(options: RawCalleeOptions = {}): Promise<RawCallee> {
    const callee = new RawCallee(options);
    const open = options.over ?? udpAt({});
    callee.#channel = await open((text, from) => callee.#onMessage(text, from));
    return callee;
  }

  get port(): number {
    return this.#channel?.port ?? 0;
  }

  /**
   * Waits for the next request with this method and removes it from the inbox. See `eventually` for
   * `withinMs`.
   */
  async take(method: string, withinMs?: number): Promise<RawMessage> {
    const isWanted = (message: RawMessage) =>
      message.status === undefined && message.method === method;
    return this.#takeWhere(isWanted, method, withinMs);
  }

  async takeResponse(status: number): Promise<RawMessage> {
    return this.#takeWhere((message) => message.status === status, `a ${status}`);
  }

  /** Waits for the next response to this method and returns its status. */
  async takeAnswer(method: string): Promise<number> {
    const isWanted = (message: RawMessage) =>
      message.status !== undefined && message.method === method;
    return (await this.#takeWhere(isWanted, `an answer to ${method}`)).status ?? 0;
  }

  has(method: string): boolean {
    return this.inbox.some((message) => message.status === undefined && message.method === method);
  }

  reply(request: RawMessage, status: number, reason: string, options: ReplyOptions = {}): void {
    const to = one(request, 'to');
    const tag = options.tag ?? 'callee';
    const body = options.body ?? '';
    const copied = ['via', 'record-route'].flatMap((name) =>
      (request.headers.get(name) ?? []).map((value) => `${name}: ${value}`),
    );
    const contact = options.contact ?? true;
    this.#send(request.from, [
      `SIP/2.0 ${status} ${reason}`,
      ...copied,
      `From: ${one(request, 'from')}`,
      `To: ${to.includes(';tag=') || status === 100 ? to : `${to};tag=${tag}`}`,
      `Call-ID: ${one(request, 'call-id')}`,
      `CSeq: ${one(request, 'cseq')}`,
      ...(contact ? [`Contact: ${this.#contact}`] : []),
      ...(options.headers ?? []),
      ...(body === '' ? [] : ['Content-Type: application/sdp']),
      `Content-Length: ${Buffer.byteLength(body)}`,
      '',
      body,
    ]);
  }

  /**
   * Sends a request within the dialog of `invite`. An ACK acknowledges the response to the previous
   * request.
   */
  request(
    invite: RawMessage,
    method: string,
    options: Omit<ReplyOptions, 'contact'> & { readonly type?: string } = {},
  ): void {
    if (method !== 'ACK') this.#cseq += 1;
    const body = options.body ?? '';
    const to = one(invite, 'to');
    this.#send(invite.from, [
      `${method} ${/<([^>]+)>/.exec(one(invite, 'contact'))?.[1]} SIP/2.0`,
      `Via: SIP/2.0/${this.#channel?.transport} ${this.host}:${this.port};branch=z9hG4bK-${this.#id}-${method}-${this.#cseq}`,
      'Max-Forwards: 70',
      `From: ${to.includes(';tag=') ? to : `${to};tag=${options.tag ?? 'callee'}`}`,
      `To: ${one(invite, 'from')}`,
      `Call-ID: ${one(invite, 'call-id')}`,
      `CSeq: ${this.#cseq} ${method}`,
      `Contact: ${this.#contact}`,
      ...(options.headers ?? []),
      ...(body === '' ? [] : [`Content-Type: ${options.type ?? 'application/sdp'}`]),
      `Content-Length: ${Buffer.byteLength(body)}`,
      '',
      body,
    ]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#channel?.close();
  }

  async #takeWhere(
    isWanted: (message: RawMessage) => boolean,
    what: string,
    withinMs?: number,
  ): Promise<RawMessage> {
    await eventually(() => this.inbox.some(isWanted), `the callee gets ${what}`, withinMs);
    const index = this.inbox.findIndex(isWanted);
    const [message] = this.inbox.splice(index, 1);
    if (message === undefined) throw new Error('no message');
    return message;
  }

  get host(): string {
    return this.#channel?.host ?? '127.0.0.1';
  }

  get #contact(): string {
    const suffix = this.#channel?.transport === 'TLS' ? ';transport=tls' : '';
    return `<sip:callee@${this.host}:${this.port}${suffix}>`;
  }

  #send(to: CalleePeer, lines: readonly string[]): void {
    this.#channel?.send(to, lines.join('\r\n'));
  }

  #onMessage(text: string, from: CalleePeer): void {
    // RFC 3261, 17: a retransmission is identical to the original.
    if (this.#seen?.has(text)) return;
    this.#seen?.add(text);
    const [head = '', ...rest] = text.split('\r\n\r\n');
    const [startLine = '', ...lines] = head.split('\r\n');
    const headers = new Map<string, string[]>();
    for (const line of lines) {
      const colon = line.indexOf(':');
      const name = line.slice(0, colon).trim().toLowerCase();
      headers.set(name, [...(headers.get(name) ?? []), line.slice(colon + 1).trim()]);
    }
    const status = /^SIP\/2\.0 (\d{3})/.exec(startLine)?.[1];
    this.inbox.push({
      startLine,
      method: headers.get('cseq')?.[0]?.split(' ')[1] ?? '',
      status: status === undefined ? undefined : Number(status),
      headers,
      body: rest.join('\r\n\r\n'),
      from,
    });
  }
}

export function one(message: RawMessage, name: string): string {
  return message.headers.get(name)?.[0] ?? '';
}

/** @param at Default: a free port of 127.0.0.1 */
export function udpAt({ host = '127.0.0.1', port }: { host?: string; port?: number }): OpenChannel {
  return async (onMessage) => {
    const socket = createSocket('udp4');
    socket.on('message', (data, from) => onMessage(data.toString(), from));
    socket.bind(port ?? (await freeUdpPort()), host);
    await once(socket, 'listening');
    return {
      ...{ host, port: socket.address().port },
      transport: 'UDP',
      send: (to, text) => socket.send(text, to.port, to.address),
      async close() {
        socket.close();
        await once(socket, 'close');
      },
    };
  };
}
