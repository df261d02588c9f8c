// Puts messages on streams, and waits until the server says that it has them. All share one subscription and one timer: a request
// of the NATS client costs a timer, an Error with its stack and a handful of promises each, and a call makes eight.

import { type ApiError, JetStreamApiError } from '@nats-io/jetstream';
import {
  createInbox,
  headers,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  type Subscription,
} from '@nats-io/transport-node';

const acknowledgeTimeoutMs = 5_000;
/** What the server says in place of an acknowledgement where no stream has the subject. */
const noResponders = 503;

export type PutOptions = {
  /** Stored once under it, for as long as the stream remembers ids. */
  readonly id?: string;
  /** Stored only while this is the sequence of the subject's last message; 0: while there is none. */
  readonly expectedLastSequence?: number;
  readonly headers?: Readonly<Record<string, string | undefined>>;
};

type Acknowledgement = {
  readonly stream?: string;
  readonly seq?: number;
  readonly error?: ApiError;
};

type Pending = {
  readonly resolve: (sequence: number) => void;
  readonly reject: (reason: unknown) => void;
  readonly dueAt: number;
};

export class AcknowledgedPublishing {
  readonly #nats: NatsConnection;
  readonly #timeoutMs: number;
  readonly #inbox = createInbox();
  /** By their number, the oldest first: all are given the same time. */
  readonly #pending = new Map<number, Pending>();
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
   * Its sequence in the stream, which has it by then.
   * @throws JetStreamApiError where the stream refuses it; Error where it is not known to be stored.
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
      });
      this.#timer ??= setTimeout(() => this.#expire(), this.#timeoutMs);
    });
  }

  /** No acknowledgement will come: the connection that it was to come on is gone. */
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
        // The server has ended it (its permissions were changed): the next message asks for it anew.
        this.#acknowledgements = undefined;
        this.abandon(error);
      },
    });
  }

  #onAcknowledged(message: Msg): void {
    const number = Number(message.subject.slice(this.#inbox.length + 1));
    const pending = this.#pending.get(number);
    // It is late, and was given up.
    if (pending === undefined) return;
    this.#pending.delete(number);
    try {
      pending.resolve(sequenceOf(message));
    } catch (error) {
      pending.reject(error);
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
      reject(new Error(`not acknowledged by NATS in ${this.#timeoutMs} ms`));
    }
  }
}

/** @throws where it says that nothing was stored. */
function sequenceOf(message: Msg): number {
  if (message.data.length === 0 && message.headers?.code === noResponders) {
    throw new Error('no stream has this subject');
  }
  const { stream, seq, error } = message.json<Acknowledgement>();
  if (error !== undefined) throw new JetStreamApiError(error);
  if (stream === undefined || seq === undefined) throw new Error('not an acknowledgement');
  return seq;
}

function headersOf({ id, expectedLastSequence, headers: more = {} }: PutOptions): MsgHdrs {
  const all = headers();
  if (id !== undefined) all.set('Nats-Msg-Id', id);
  if (expectedLastSequence !== undefined) {
    all.set('Nats-Expected-Last-Subject-Sequence', String(expectedLastSequence));
  }
  for (const [name, value] of Object.entries(more)) if (value !== undefined) all.set(name, value);
  return all;
}
