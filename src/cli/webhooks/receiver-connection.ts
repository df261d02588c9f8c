// Sends notifications to the receiver under test. The notifications are signed like the gateway's,
// or deliberately wrong.

import { Agent, request } from 'undici';
import { mergeHeaders, signatureHeaders } from '../../notifier/signature.ts';
import { version } from '../../version.ts';

/** The gateway waits for a response just as long. */
const defaultTimeoutMs = 10_000;
/** We don't read more than this, because the expected response is a single word. */
const maxAnswerBytes = 4_096;

/** What a receiver says it did, either as text or in the `result` field of a JSON response. */
export const resultWords = ['applied', 'duplicate', 'late', 'held'] as const;
export type ResultWord = (typeof resultWords)[number];

export type Answer =
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly ms: number;
      /** Undefined if the receiver doesn't say what it did. */
      readonly result: ResultWord | undefined;
    }
  | { readonly kind: 'unreachable'; readonly error: string };

export type SendOptions = {
  /**
   * Default: the receiver's secret. Several secrets produce the signatures of a rotation, and with
   * an empty list, the notification isn't signed.
   */
  readonly secrets?: readonly string[];
  /** The body to sign. Default: the body that is sent. */
  readonly signedBody?: string;
  /** Age of the signature's timestamp. Default: 0. */
  readonly ageS?: number;
};

export type Prepared = {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

export class ReceiverConnection {
  readonly #url: string;
  readonly secret: string;
  readonly #timeoutMs: number;
  readonly #agent = new Agent({ connections: 8 });
  slowestMs = 0;

  constructor(url: string, secret: string, timeoutMs = defaultTimeoutMs) {
    this.#url = url;
    this.secret = secret;
    this.#timeoutMs = timeoutMs;
  }

  prepare(eventId: string, body: string, options: SendOptions = {}): Prepared {
    const { secrets = [this.secret], signedBody = body, ageS = 0 } = options;
    const timestampS = Math.floor(Date.now() / 1_000) - ageS;
    const signatures =
      secrets.length === 0
        ? {}
        : signatureHeaders({ eventId, timestampS, body: signedBody, secrets });
    const headers = mergeHeaders(
      {},
      { 'content-type': 'application/json', 'user-agent': `Offhook/${version}`, ...signatures },
    );
    return { headers, body };
  }

  async send({ headers, body }: Prepared): Promise<Answer> {
    const startedAt = performance.now();
    const signal = AbortSignal.timeout(this.#timeoutMs);
    try {
      const answer = await request(this.#url, {
        method: 'POST',
        headers,
        body,
        dispatcher: this.#agent,
        signal,
      });
      const ms = Math.round(performance.now() - startedAt);
      this.slowestMs = Math.max(this.slowestMs, ms);
      const result = parseResult(await readStart(answer.body));
      return { kind: 'answered', status: answer.statusCode, ms, result };
    } catch (error) {
      const late = `no answer within ${this.#timeoutMs} ms`;
      return { kind: 'unreachable', error: signal.aborted ? late : errorCode(error) };
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

async function readStart(body: AsyncIterable<unknown>): Promise<string> {
  let text = '';
  for await (const chunk of body) {
    text += String(chunk);
    if (text.length > maxAnswerBytes) break;
  }
  return text;
}

function parseResult(text: string): ResultWord | undefined {
  const word = text.trim().startsWith('{') ? readResultField(text) : text.trim();
  return resultWords.find((known) => known === word);
}

function readResultField(text: string): unknown {
  try {
    return (JSON.parse(text) as { readonly result?: unknown }).result;
  } catch {
    return undefined;
  }
}

function errorCode(error: unknown): string {
  const { code, name } = error as NodeJS.ErrnoException;
  return code ?? name;
}
