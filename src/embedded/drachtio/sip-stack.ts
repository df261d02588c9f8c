// Connects transports and transactions, i.e. it turns text from the network into requests and
// responses. Every message is matched to its transaction (RFC 3261 sections 17.1.3 and 17.2.3). The
// stack also generates the responses that don't need a transaction user (time-outs, overload). It
// doesn't know about dialogs or drachtio.

import { parseCseq, parseVia } from './message/sip-grammar.ts';
import {
  headerValue,
  parseMessage,
  type SipRequest,
  type SipResponse,
  serializeMessage,
} from './message/sip-message.ts';
import {
  buildAckForFailure,
  buildResponse,
  canBeAnswered,
  isWellFormed,
  stampVia,
} from './message/sip-replies.ts';
import {
  type ClientTransactionDeps,
  InviteClientTransaction,
  NonInviteClientTransaction,
} from './transaction/client-transaction.ts';
import {
  InviteServerTransaction,
  NonInviteServerTransaction,
  type ServerTransactionDeps,
} from './transaction/server-transaction.ts';
import {
  isReliable,
  peerKey,
  type SipPeer,
  type SipProtocol,
  type TransportOptions,
} from './transport/sip-peer.ts';

/**
 * This limit applies to live client transactions, and separately to live server transactions. A
 * call needs one transaction for 32 s and another for 5 s, so the limit is high enough for about
 * 1,700 new calls a second.
 */
const maxTransactions = 65_536;

/** Status code if no response arrived and the engine therefore generates one. */
export type StackFailure = { readonly status: number; readonly reason: string };

export type RequestUser = {
  readonly onResponse: (response: SipResponse, peer: SipPeer, bytes: number) => void;
  readonly onFailure: (failure: StackFailure) => void;
  /** Only called for INVITE. */
  readonly onRingTimeout?: () => void;
  /** Only called for INVITE, if its final response can't arrive any more. */
  readonly onConnectionLost?: (failure: StackFailure) => void;
  readonly onTerminated?: () => void;
};

export type SentRequest = {
  readonly request: SipRequest;
  readonly text: string;
  readonly peer: SipPeer;
  readonly transaction: InviteClientTransaction | NonInviteClientTransaction;
};

type ClientEntry = SentRequest & {
  readonly key: string;
  readonly user: RequestUser;
  lastBytes: number;
};

export type ReceivedRequest = {
  readonly request: SipRequest;
  readonly peer: SipPeer;
  readonly bytes: number;
  readonly transaction: InviteServerTransaction | NonInviteServerTransaction;
  /**
   * The stack calls these functions if the ACK or the final response is overdue, and when the
   * transaction has ended.
   */
  onAckTimeout: () => void;
  onAnswerTimeout: () => void;
  onTerminated: () => void;
};

export type StackUser = {
  readonly onRequest: (received: ReceivedRequest) => void;
  /**
   * Receives a CANCEL and the INVITE that it cancels. `invite` is undefined if the INVITE's
   * transaction has already ended.
   */
  readonly onCancel: (cancel: ReceivedRequest, invite: ReceivedRequest | undefined) => void;
  /** Receives an ACK in a dialog. The stack itself handles the ACK for a failed INVITE. */
  readonly onAck: (ack: SipRequest, peer: SipPeer, bytes: number) => void;
  /**
   * Receives a response that doesn't match any transaction. Returns false if the transaction user
   * can't handle the response either.
   */
  readonly onUnmatchedResponse: (response: SipResponse, peer: SipPeer) => boolean;
};

type Transport = {
  sendRequest(peer: SipPeer, text: string): void;
  sendResponse(peer: SipPeer, text: string): void;
};
type Transports = Readonly<Record<SipProtocol, Transport>>;

export type SipStackDeps = Pick<TransportOptions, 'clock' | 'timers' | 'logger'>;

export class SipStack {
  readonly #deps: SipStackDeps;
  readonly #clients = new Map<string, ClientEntry>();
  readonly #clientsByPeer = new Map<string, Set<ClientEntry>>();
  readonly #servers = new Map<string, ReceivedRequest>();
  #user: StackUser | undefined;
  #transports: Transports | undefined;
  #dropped = 0;

  constructor(deps: SipStackDeps) {
    this.#deps = deps;
  }

  attach(user: StackUser, transports: Transports): void {
    this.#user = user;
    this.#transports = transports;
  }

  get counts() {
    return { client: this.#clients.size, server: this.#servers.size, dropped: this.#dropped };
  }

  /** Sends a request that doesn't need a transaction, which can only be the ACK for a 2xx. */
  sendDirectly(peer: SipPeer, text: string): void {
    this.#transports?.[peer.protocol].sendRequest(peer, text);
  }

  /** Returns undefined if there are too many transactions. */
  sendRequest(request: SipRequest, peer: SipPeer, user: RequestUser): SentRequest | undefined {
    if (this.#clients.size >= maxTransactions) return undefined;
    const branch = parseVia(headerValue(request, 'Via') ?? '')?.parameters.get('branch') ?? '';
    const key = `${branch} ${request.method}`;
    const text = serializeMessage(request);
    const deps = this.#clientDeps(() => entry);
    const transaction =
      request.method === 'INVITE'
        ? new InviteClientTransaction({ ...deps, reliable: isReliable(peer.protocol) })
        : new NonInviteClientTransaction({ ...deps, reliable: isReliable(peer.protocol) });
    const entry: ClientEntry = { request, text, peer, transaction, key, user, lastBytes: 0 };
    this.#clients.set(key, entry);
    this.#peerSet(peer).add(entry);
    transaction.start();
    return entry;
  }

  receive(text: string, peer: SipPeer): void {
    const parsed = parseMessage(text);
    if (parsed.kind === 'rubbish') {
      this.#dropped += 1;
      return;
    }
    const { message } = parsed;
    if (message.kind === 'response') {
      this.#receiveResponse(message, peer, text.length);
      return;
    }
    this.#receiveRequest(trimBody(message), peer, text.length);
  }

  /** Fails all pending requests to a peer. Called after an ICMP error, or if a connection broke. */
  peerFailed(peer: SipPeer, reason = 'Service Unavailable'): void {
    const entries = this.#clientsByPeer.get(peerKey(peer));
    if (entries === undefined) return;
    for (const entry of [...entries]) {
      if (entry.transaction.fail()) entry.user.onFailure({ status: 503, reason });
      // Over UDP and TCP, the final response may arrive in another way (RFC 3261 section 18.2.2).
      // The engine doesn't listen for TLS.
      else if (peer.protocol === 'tls') entry.user.onConnectionLost?.({ status: 503, reason });
    }
  }

  stop(): void {
    for (const entry of this.#clients.values()) entry.transaction.stop();
    for (const entry of this.#servers.values()) entry.transaction.stop();
    this.#clients.clear();
    this.#clientsByPeer.clear();
    this.#servers.clear();
  }

  sendResponseText(peer: SipPeer, text: string): void {
    // Per RFC 3581, a response is sent to the address that the request came from. We stamped that
    // address on the Via.
    this.#transports?.[peer.protocol].sendResponse(peer, text);
  }

  #clientDeps(entryOf: () => ClientEntry): ClientTransactionDeps {
    return {
      clock: this.#deps.clock,
      timers: this.#deps.timers,
      reliable: false,
      sendRequest: () => this.sendDirectly(entryOf().peer, entryOf().text),
      sendAck: (response) => {
        const ack = buildAckForFailure(entryOf().request, response);
        this.sendDirectly(entryOf().peer, serializeMessage(ack));
      },
      onResponse: (response) => {
        const entry = entryOf();
        entry.user.onResponse(response, entry.peer, entry.lastBytes);
      },
      onTimeout: () => entryOf().user.onFailure({ status: 408, reason: 'Request Timeout' }),
      onRingTimeout: () => entryOf().user.onRingTimeout?.(),
      onTerminated: () => this.#removeClient(entryOf()),
    };
  }

  #removeClient(entry: ClientEntry): void {
    this.#clients.delete(entry.key);
    const key = peerKey(entry.peer);
    const entries = this.#clientsByPeer.get(key);
    entries?.delete(entry);
    if (entries?.size === 0) this.#clientsByPeer.delete(key);
    entry.user.onTerminated?.();
  }

  #peerSet(peer: SipPeer): Set<ClientEntry> {
    const key = peerKey(peer);
    const existing = this.#clientsByPeer.get(key);
    if (existing !== undefined) return existing;
    const created = new Set<ClientEntry>();
    this.#clientsByPeer.set(key, created);
    return created;
  }

  #receiveResponse(response: SipResponse, peer: SipPeer, bytes: number): void {
    const branch = parseVia(headerValue(response, 'Via') ?? '')?.parameters.get('branch');
    const cseq = parseCseq(headerValue(response, 'CSeq') ?? '');
    if (branch === undefined || cseq === undefined || !hasAddresses(response)) {
      this.#dropped += 1;
      return;
    }
    const entry = this.#clients.get(`${branch} ${cseq.method}`);
    if (entry === undefined) {
      if (this.#user?.onUnmatchedResponse(response, peer) !== true) this.#dropped += 1;
      return;
    }
    entry.lastBytes = bytes;
    entry.transaction.receive(trimBody(response));
  }

  #receiveRequest(request: SipRequest, peer: SipPeer, bytes: number): void {
    if (!isWellFormed(request)) {
      this.#refuseMalformed(request, peer);
      return;
    }
    const stamped = stampVia(request, peer);
    const key = serverKey(stamped, stamped.method);
    if (stamped.method === 'ACK') {
      this.#receiveAck(stamped, peer, bytes);
      return;
    }
    const known = this.#servers.get(key);
    if (known !== undefined) {
      known.transaction.receiveRetransmit();
      return;
    }
    if (this.#servers.size >= maxTransactions) {
      this.#refuse(stamped, peer);
      return;
    }
    const received = this.#createServer(stamped, peer, bytes, key);
    if (stamped.method === 'CANCEL') {
      this.#receiveCancel(received);
      return;
    }
    this.#user?.onRequest(received);
  }

  /**
   * Responds with 400, as RFC 3261 section 16.3 requires, provided that we know where to send the
   * response.
   */
  #refuseMalformed(request: SipRequest, peer: SipPeer): void {
    this.#dropped += 1;
    if (request.method === 'ACK' || !canBeAnswered(request)) return;
    const stamped = stampVia(request, peer);
    const response = buildResponse(stamped, 400, 'Bad Request', { toTag: 'malformed' });
    this.sendResponseText(peer, serializeMessage(response));
  }

  /** Rejects the request statelessly, so that a flood of requests doesn't use any memory. */
  #refuse(request: SipRequest, peer: SipPeer): void {
    const response = buildResponse(request, 503, 'Service Unavailable', { toTag: 'overload' });
    this.sendResponseText(peer, serializeMessage(response));
  }

  #createServer(request: SipRequest, peer: SipPeer, bytes: number, key: string): ReceivedRequest {
    const deps: ServerTransactionDeps = {
      clock: this.#deps.clock,
      timers: this.#deps.timers,
      reliable: isReliable(peer.protocol),
      send: (text) => this.sendResponseText(peer, text),
      onAckTimeout: () => received.onAckTimeout(),
      onAnswerTimeout: () => received.onAnswerTimeout(),
      onTerminated: () => {
        this.#servers.delete(key);
        received.onTerminated();
      },
    };
    const transaction =
      request.method === 'INVITE'
        ? new InviteServerTransaction(deps)
        : new NonInviteServerTransaction(deps);
    const received: ReceivedRequest = {
      request,
      peer,
      bytes,
      transaction,
      onAckTimeout: () => undefined,
      onAnswerTimeout: () => undefined,
      onTerminated: () => undefined,
    };
    this.#servers.set(key, received);
    return received;
  }

  #receiveAck(ack: SipRequest, peer: SipPeer, bytes: number): void {
    const invite = this.#servers.get(serverKey(ack, 'INVITE'));
    // The ACK for a failure has the same branch as the INVITE, so it's handled here (RFC 3261
    // section 17.2.1).
    if (invite?.transaction instanceof InviteServerTransaction) {
      if (invite.transaction.state === 'completed') {
        invite.transaction.acknowledge();
        return;
      }
      if (invite.transaction.state === 'confirmed') return;
    }
    this.#user?.onAck(ack, peer, bytes);
  }

  #receiveCancel(received: ReceivedRequest): void {
    const invite = this.#servers.get(serverKey(received.request, 'INVITE'));
    this.#user?.onCancel(received, invite);
  }
}

function hasAddresses(message: SipResponse): boolean {
  return (
    headerValue(message, 'From') !== undefined &&
    headerValue(message, 'To') !== undefined &&
    headerValue(message, 'Call-ID') !== undefined
  );
}

/**
 * Removes any bytes beyond Content-Length, because datagrams may be longer (RFC 3261 section 18.3).
 */
function trimBody<Message extends SipRequest | SipResponse>(message: Message): Message {
  const length = Number(headerValue(message, 'Content-Length') ?? message.body.length);
  if (!Number.isInteger(length) || length < 0 || length >= message.body.length) return message;
  return { ...message, body: message.body.slice(0, length) };
}

/**
 * See RFC 3261 section 17.2.3. The key includes the sent-by because two peers may happen to choose
 * the same branch.
 */
function serverKey(request: SipRequest, method: string): string {
  const value = headerValue(request, 'Via') ?? '';
  const via = parseVia(value);
  const branch = via?.parameters.get('branch');
  const sentBy = `${via?.host ?? ''}:${via?.port ?? ''}`;
  if (branch?.startsWith('z9hG4bK') === true) return `${branch} ${sentBy} ${method}`;
  // In RFC 2543 branches aren't unique, so the key consists of everything that a retransmission has
  // in common with the original request.
  const cseq = parseCseq(headerValue(request, 'CSeq') ?? '')?.number ?? 0;
  const callId = headerValue(request, 'Call-ID') ?? '';
  return `${callId} ${cseq} ${headerValue(request, 'From') ?? ''} ${sentBy} ${method}`;
}
