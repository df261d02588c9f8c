// A control server that speaks drachtio's framing and otherwise does what the test wants. Unlike a
// real server, it can lose replies, go away or refuse connections on demand.

import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { eventually } from './eventually.ts';

export type ControlFrame = {
  readonly id: string;
  readonly type: string;
  readonly fields: readonly string[];
  readonly method: string;
  readonly sip: string;
  readonly bytes: number;
  readonly from: Socket;
};

export class ScriptedDrachtio implements AsyncDisposable {
  readonly secret = 'cymru';
  readonly frames: ControlFrame[] = [];
  answersPing = true;
  authenticates = true;
  /** Number of connections with a wrong secret. */
  refusals = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #ids = 0;
  #port = 0;

  private constructor() {
    this.#server = createServer((socket) => this.#accept(socket));
  }

  static async start(port = 0): Promise<ScriptedDrachtio> {
    const scripted = new ScriptedDrachtio();
    scripted.#server.listen(port, '127.0.0.1');
    await once(scripted.#server, 'listening');
    const address = scripted.#server.address();
    if (address === null || typeof address === 'string') throw new Error('not listening');
    scripted.#port = address.port;
    return scripted;
  }

  get port(): number {
    return this.#port;
  }

  get address(): { host: string; port: number; secret: string } {
    return { host: '127.0.0.1', port: this.port, secret: this.secret };
  }

  get connections(): number {
    return this.#sockets.size;
  }

  /** Waits for the next request of this method and removes it from `frames`. */
  async take(method: string): Promise<ControlFrame> {
    await eventually(
      () => this.frames.some((frame) => frame.method === method),
      `the control server gets ${method}`,
    );
    const index = this.frames.findIndex((frame) => frame.method === method);
    const [frame] = this.frames.splice(index, 1);
    if (frame === undefined) throw new Error('no frame');
    return frame;
  }

  async takeInvite(): Promise<ScriptedInvite> {
    return new ScriptedInvite(this, await this.take('INVITE'));
  }

  send(socket: Socket, payload: string): void {
    if (!socket.destroyed) socket.write(`${Buffer.byteLength(payload)}#${payload}`);
  }

  /** Responds to a request with OK, the engine's ids and the message as it was sent. */
  confirm(frame: ControlFrame, transactionId: string, message: string): void {
    this.send(
      frame.from,
      `${this.nextId()}|response|${frame.id}|OK|application|1|udp|127.0.0.1|5060|00:00:00.000000|${transactionId}|Msg sent:|\r\n${message}`,
    );
  }

  refuse(frame: ControlFrame, reason: string): void {
    this.send(frame.from, `${this.nextId()}|response|${frame.id}|NOK|${reason}`);
  }

  /** Delivers a message from the network to the application. */
  deliver(
    socket: Socket,
    message: string,
    meta: {
      readonly transactionId: string;
      readonly dialogId?: string;
      readonly madeUp?: boolean;
      readonly source?: string;
    },
  ): void {
    const peer = meta.madeUp === true ? '0|udp||0' : '1|udp|127.0.0.1|5070';
    this.send(
      socket,
      `${this.nextId()}|sip|${meta.source ?? 'network'}|${peer}|00:00:00.000000|${meta.transactionId}|${meta.dialogId ?? ''}|\r\n${message}`,
    );
  }

  nextId(): string {
    this.#ids += 1;
    return `server-${this.#ids}`;
  }

  /** Destroys all connections, as a crash does. */
  dropConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.dropConnections();
    if (!this.#server.listening) return;
    this.#server.close();
    await once(this.#server, 'close');
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket);
    let input = Buffer.alloc(0);
    socket.on('error', () => undefined);
    socket.on('close', () => this.#sockets.delete(socket));
    socket.on('data', (chunk) => {
      input = Buffer.concat([input, chunk]);
      for (;;) {
        const mark = input.indexOf('#');
        const length = Number(input.toString('latin1', 0, mark));
        if (mark < 0 || input.length < mark + 1 + length) return;
        const payload = input.toString('utf8', mark + 1, mark + 1 + length);
        input = input.subarray(mark + 1 + length);
        this.#onFrame(socket, payload, mark + 1 + length);
      }
    });
  }

  #authenticate(socket: Socket, id: string, isRight: boolean): void {
    const verdict = isRight
      ? 'OK|udp/127.0.0.1:5060|v0.9.10|udp/127.0.0.1:5060'
      : 'NO|incorrect secret';
    this.send(socket, `${this.nextId()}|response|${id}|${verdict}`);
    if (isRight) return;
    this.refusals += 1;
    socket.end();
  }

  #onFrame(socket: Socket, payload: string, bytes: number): void {
    const [leader = '', ...rest] = payload.split('\r\n');
    const fields = leader.split('|');
    const [id = '', type = ''] = fields;
    const sip = rest.join('\r\n');
    if (type === 'authenticate') {
      if (this.authenticates) this.#authenticate(socket, id, fields[2] === this.secret);
    } else if (type === 'ping') {
      if (this.answersPing) this.send(socket, `${this.nextId()}|response|${id}|OK|pong`);
    } else if (type === 'route') {
      this.send(socket, `${this.nextId()}|response|${id}|OK`);
    } else {
      const method = sip.split(' ', 1)[0] ?? '';
      this.frames.push({ id, type, fields, method, sip, bytes, from: socket });
    }
  }
}

/** An INVITE that arrived, and the answers to it. */
export class ScriptedInvite {
  readonly frame: ControlFrame;
  readonly transactionId: string;
  readonly callId: string;
  readonly dialogId: string;
  readonly localTag: string;
  readonly #server: ScriptedDrachtio;
  readonly #cseq: string;

  constructor(server: ScriptedDrachtio, frame: ControlFrame) {
    this.#server = server;
    this.frame = frame;
    this.transactionId = `txn-${server.nextId()}`;
    this.callId = headerOf(frame.sip, 'Call-ID') ?? `call-${server.nextId()}`;
    const givenTag = /;tag=([^;\s]+)/.exec(headerOf(frame.sip, 'From') ?? '')?.[1];
    this.localTag = givenTag ?? `local-${server.nextId()}`;
    this.#cseq = headerOf(frame.sip, 'CSeq')?.split(' ')[0] ?? '100';
    this.dialogId = `${this.callId};from-tag=${this.localTag}`;
  }

  get body(): string {
    return this.frame.sip.split('\r\n\r\n').slice(1).join('\r\n\r\n');
  }

  confirm(): void {
    const [startLine = '', ...lines] = this.frame.sip.split('\r\n');
    const kept = lines.filter((line) => !/^(from|call-id|cseq):/i.test(line));
    const from = `From: <sip:100@127.0.0.1:5060>;tag=${this.localTag}`;
    const message = [
      startLine,
      from,
      `Call-ID: ${this.callId}`,
      `CSeq: ${this.#cseq} INVITE`,
      'Contact: <sip:127.0.0.1:5060>',
      ...kept,
    ].join('\r\n');
    this.#server.confirm(this.frame, this.transactionId, message);
  }

  refuse(reason: string): void {
    this.#server.refuse(this.frame, reason);
  }

  respond(
    status: number,
    reason: string,
    options: {
      readonly headers?: readonly string[];
      readonly body?: string;
      readonly madeUp?: boolean;
      readonly contact?: boolean;
      /** The tag in To. Another tag stands for another branch of a fork. */
      readonly tag?: string;
    } = {},
  ): void {
    const body = options.body ?? '';
    const withContact = options.contact ?? (status > 100 && status < 300);
    const message = [
      `SIP/2.0 ${status} ${reason}`,
      `From: <sip:100@127.0.0.1:5060>;tag=${this.localTag}`,
      `To: <sip:callee@127.0.0.1:5070>;tag=${options.tag ?? 'remote'}`,
      `Call-ID: ${this.callId}`,
      `CSeq: ${this.#cseq} INVITE`,
      ...(withContact ? ['Contact: <sip:callee@127.0.0.1:5070>'] : []),
      ...(body === '' ? [] : ['Content-Type: application/sdp']),
      ...(options.headers ?? []),
      `Content-Length: ${Buffer.byteLength(body)}`,
      '',
      body,
    ].join('\r\n');
    this.#server.deliver(this.frame.from, message, {
      transactionId: this.transactionId,
      dialogId: this.dialogId,
      ...(options.madeUp !== undefined && { madeUp: options.madeUp }),
    });
  }

  /** Delivers the far end's request within the dialog. */
  request(
    method: string,
    options: {
      readonly headers?: readonly string[];
      readonly body?: string;
      readonly source?: string;
    } = {},
  ): void {
    const body = options.body ?? '';
    const message = [
      `${method} sip:127.0.0.1:5060 SIP/2.0`,
      'From: <sip:callee@127.0.0.1:5070>;tag=remote',
      `To: <sip:100@127.0.0.1:5060>;tag=${this.localTag}`,
      `Call-ID: ${this.callId}`,
      `CSeq: 7 ${method}`,
      ...(options.headers ?? []),
      `Content-Length: ${Buffer.byteLength(body)}`,
      '',
      body,
    ].join('\r\n');
    const isOwn = options.source === 'application';
    this.#server.deliver(this.frame.from, message, {
      transactionId: isOwn ? 'unsolicited' : `txn-${this.#server.nextId()}`,
      dialogId: this.dialogId,
      ...(options.source !== undefined && { source: options.source }),
    });
  }

  /** Sends OK to the application's BYE, and delivers the final response to it. */
  answerBye(bye: ControlFrame, status = 200, reason = 'OK'): void {
    const transactionId = `txn-${this.#server.nextId()}`;
    const headers = [
      `From: <sip:100@127.0.0.1:5060>;tag=${this.localTag}`,
      'To: <sip:callee@127.0.0.1:5070>;tag=remote',
      `Call-ID: ${this.callId}`,
      'CSeq: 101 BYE',
      'Content-Length: 0',
      '',
      '',
    ];
    this.#server.confirm(
      bye,
      transactionId,
      ['BYE sip:callee@127.0.0.1:5070 SIP/2.0', ...headers].join('\r\n'),
    );
    this.#server.deliver(bye.from, [`SIP/2.0 ${status} ${reason}`, ...headers].join('\r\n'), {
      transactionId,
      dialogId: this.dialogId,
    });
  }
}

export function headerOf(message: string, name: string): string | undefined {
  const head = message.split('\r\n\r\n', 1)[0] ?? '';
  const line = head
    .split('\r\n')
    .find((text) => text.toLowerCase().startsWith(`${name.toLowerCase()}:`));
  return line?.slice(name.length + 1).trim();
}
