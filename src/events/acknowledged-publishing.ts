// Publishes messages on streams and waits for the server's acknowledgements. Every call publishes
// eight messages, so all messages share one subscription and one timer. With the NATS client's own
// `request`, each message would need a timer, an Error with a stack trace and several promises.

import { type ApiError, JetStreamApiError } from '@nats-io/jetstream';
import {
  createInbox,
  headers,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  type Subscription,
} from '@nats-io/transport-node';

/** Within its duplicate window, a stream drops further messages with the same value. */
export const messageIdHeader = 'Nats-Msg-Id';
const acknowledgeTimeoutMs = 5_000;
/** The server replies with this status if no stream has the subject. */
const noResponders = 503;

export type PutOptions = {
  /** Message id. Within its duplicate window, the stream drops further messages with this id. */
  readonly id?: string;
  /**
   * The server stores the message only if the subject's last message has this sequence. 0 means
   * that the subject must be empty.
   */
  readonly expectedLastSequence?: number;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** Called if the stream already has a message with this id, and therefore drops this one. */
  readonly onDuplicate?: () => void;
};

/** What a stream has acknowledged. */
export type Acknowledged = {
  /** The last sequence. 0 if the stream hasn't acknowledged any message. */
  readonly sequence: number;
  /**
   * Set if the stream has given a message a sequence that it had given to another one before. It
   * has lost that message, and all that it had acknowledged after it. The lowest such sequence.
   */
  readonly reused?: number;
};

type Acknowledgement = {
  readonly stream?: string;
  readonly seq?: number;
  readonly duplicate?: boolean;
  readonly error?: ApiError;
};

type Pending = {
  readonly resolve: (sequence: number) => void;
  readonly reject: (reason: unknown) => void;
  readonly dueAt: number;
  readonly onDuplicate: (() => void) | undefined;
};

export class AcknowledgedPublishing {
  readonly #nats: NatsConnection;
  readonly #timeoutMs: number;
  readonly #inbox = createInbox();
  /**
   * Unacknowledged messages, by number. All have the same time-out, so the oldest expires first.
   */
  readonly #pending = new Map<number, Pending>();
  /**
   * For each stream what it has acknowledged, and the number of the last message that we had sent
   * by then. A later message gets a higher sequence, unless the stream has lost messages.
   */
  readonly #acknowledged = new Map<string, Acknowledged & { readonly lastSent: number }>();
  #last = 0;
  #timer: NodeJS.Timeout | undefined;
  #acknowledgements: Subscription | undefined;

  constructor(nats: NatsConnection, timeoutMs = acknowledgeTimeoutMs) {
    this.#nats = nats;
    this.#timeoutMs = timeoutMs;
    const abandon = (): void => this.abandon(new Error('the NATS connection is closed'));
    nats.closed().then(abandon, abandon);
  }

  /**
   * Publishes a message on its subject's stream and waits for the acknowledgement.
   *
   * @returns the message's sequence in the stream
   * @throws JetStreamApiError if the stream rejects the message, or Error if the message may not
   *   have been stored
   */
  put(subject: string, payload: string, options: PutOptions = {}): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#last += 1;
      const number = this.#last;
      const message = { headers: headersOf(options), reply: `${this.#inbox}.${number}` };
      if (this.#acknowledgements === undefined) this.#acknowledgements = this.#subscribe();
      this.#nats.publish(subject, payload, message);
      this.#pending.set(number, {
        ...{ resolve, reject },
        dueAt: performance.now() + this.#timeoutMs,
        onDuplicate: options.onDuplicate,
      });
      this.#timer ??= setTimeout(() => this.#expire(), this.#timeoutMs);
    });
  }

  acknowledged(stream: string): Acknowledged {
    return this.#acknowledged.get(stream) ?? { sequence: 0 };
  }

  /** Forgets what the stream has acknowledged, because it's known to have lost messages. */
  forgetAcknowledged(stream: string): void {
    this.#acknowledged.delete(stream);
  }

  /** Rejects all pending messages, because no acknowledgements arrive after a reconnect. */
  abandon(reason: Error): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { reject } of pending) reject(reason);
  }

  #subscribe(): Subscription {
    return this.#nats.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => {
        if (error === null) {
          this.#onAcknowledged(message);
          return;
        }
        // The server has ended the subscription, e.g. because permissions changed. We'll subscribe
        // again for the next message.
        this.#acknowledgements = undefined;
        this.abandon(error);
      },
    });
  }

  #onAcknowledged(message: Msg): void {
    const number = Number(message.subject.slice(this.#inbox.length + 1));
    const pending = this.#pending.get(number);
    // This acknowledgement arrived too late, i.e. `put` has already rejected.
    if (pending === undefined) return;
    this.#pending.delete(number);
    try {
      const { stream, sequence, isDuplicate } = acknowledgementOf(message);
      if (isDuplicate) pending.onDuplicate?.();
      else this.#note(stream, sequence, number);
      pending.resolve(sequence);
    } catch (error) {
      pending.reject(error);
    }
  }

  #note(stream: string, sequence: number, number: number): void {
    const known = this.#acknowledged.get(stream);
    const { sequence: before = 0, lastSent = 0, reused } = known ?? {};
    if (sequence > before) {
      this.#acknowledged.set(stream, { ...known, sequence, lastSent: this.#last });
    } else if (number > lastSent) {
      const lowest = Math.min(sequence, reused ?? sequence);
      this.#acknowledged.set(stream, { sequence, reused: lowest, lastSent: this.#last });
    }
  }

  #expire(): void {
    this.#timer = undefined;
    const now = performance.now();
    for (const [number, { reject, dueAt }] of this.#pending) {
      if (dueAt > now) {
        this.#timer = setTimeout(() => this.#expire(), dueAt - now);
        return;
      }
      this.#pending.delete(number);
      reject(new Error(`NATS did not acknowledge the message within ${this.#timeoutMs} ms`));
    }
  }
}

/** @throws if the reply doesn't acknowledge a stored message */
function acknowledgementOf(message: Msg): {
  readonly stream: string;
  readonly sequence: number;
  readonly isDuplicate: boolean;
} {
  if (message.data.length === 0 && message.headers?.code === noResponders) {
    throw new Error('no stream has this subject');
  }
  const { stream, seq, duplicate, error } = message.json<Acknowledgement>();
  if (error !== undefined) throw new JetStreamApiError(error);
  if (stream === undefined || seq === undefined) throw new Error('not an acknowledgement');
  return { stream, sequence: seq, isDuplicate: duplicate === true };
}

function headersOf({ id, expectedLastSequence, headers: more = {} }: PutOptions): MsgHdrs {
  const all = headers();
  if (id !== undefined) all.set(messageIdHeader, id);
  if (expectedLastSequence !== undefined) {
    all.set('Nats-Expected-Last-Subject-Sequence', String(expectedLastSequence));
  }
  for (const [name, value] of Object.entries(more)) if (value !== undefined) all.set(name, value);
  return all;
}
