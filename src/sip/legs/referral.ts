// Sends REFER in a dialog of this process, and reads the NOTIFYs that report its result (RFC 3515).
// Carriers differ:
// - Some accept it and report each response of the call that they make.
// - Some report only the end of that call.
// - Some hang up and report nothing (RFC 4488 even allows them to announce that).
// - Some accept it and then send nothing.

import type { ReferEvent } from '../../calls/ports.ts';
import type { EngineLink } from '../engine/engine-link.ts';
import type {
  ReceivedRequest,
  RequestOptions,
  Responder,
  SentRequest,
} from '../engine/srf-types.ts';
import { statusOfFragment } from '../sip-headers.ts';
import type { Credentials } from '../trunks/routing.ts';
import { withCredentials } from './invite.ts';
import { beginTransaction, type TransactionResult } from './transaction.ts';

/** Every SIP stack gives up a request that is not answered within 64*T1 (RFC 3261, 17.1.2.2). */
const answerTimeoutMs = 32_500;

export type ReferralOptions = {
  readonly link: EngineLink;
  readonly dialogId: string;
  /**
   * Remote target of the dialog. The engine knows it, but the answer to a challenge must name it.
   */
  readonly requestUri: string | undefined;
  readonly referTo: string;
  readonly referredBy: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly credentials: Credentials | undefined;
  readonly timeoutMs: number;
  readonly now: () => Date;
};

export class Referral {
  readonly #options: ReferralOptions;
  readonly #report: (event: ReferEvent) => void;
  /**
   * asked: the far end accepted the REFER. over: the one final event was sent, or the dialog has
   * ended.
   */
  #state: 'asking' | 'asked' | 'over' = 'asking';
  readonly #timer: NodeJS.Timeout;
  /** CSeq numbers of this REFER. A REFER that was challenged and repeated has more than one. */
  readonly #ids = new Set<string>();
  /** Set by the answer to the REFER, or by a NOTIFY that overtook it. */
  #subscription: 'none' | 'active' | 'terminated' = 'none';

  constructor(options: ReferralOptions, report: (event: ReferEvent) => void) {
    this.#options = options;
    this.#report = report;
    this.#timer = setTimeout(() => this.#giveUp(), options.timeoutMs);
    this.#ask();
  }

  /** True while NOTIFYs are expected. */
  get isSubscribed(): boolean {
    return this.#subscription === 'active';
  }

  hasId(id: string): boolean {
    return this.#ids.has(id);
  }

  /** Stops the referral, because the dialog has ended or another referral has begun in it. */
  stop(): void {
    this.#state = 'over';
    clearTimeout(this.#timer);
  }

  /** Handles a NOTIFY. It may come before the answer to the REFER (RFC 3515, section 2.4.4). */
  onNotify(request: ReceivedRequest, response: Responder): void {
    if (!/^refer\s*(;|$)/i.test(request.get('Event') ?? '')) {
      response.send(489);
      return;
    }
    response.send(200);
    const status = statusOfFragment(request.body);
    const isLast = /^terminated\b/i.test(request.get('Subscription-State') ?? '');
    const isFinal = status !== undefined && status.code >= 200;
    // Some carriers omit `terminated` in their last NOTIFY.
    this.#subscription = isLast || isFinal ? 'terminated' : 'active';
    if (isFinal) this.#conclude(status);
    else if (isLast) this.#end({ kind: 'unheard', reason: 'The referral ended without a status' });
    else this.#progress(status?.code ?? 100);
  }

  #ask(): void {
    const { link, timeoutMs } = this.#options;
    const wait = {
      until: 'answered' as const,
      timeoutMs: Math.min(answerTimeoutMs, timeoutMs),
      onSent: (request: SentRequest) => this.#noteId(request.get('CSeq')),
    };
    // Carriers send a BYE right behind their 202. Which of the two is handled first decides the
    // outcome of the call, so the answer is handled synchronously.
    beginTransaction(link, this.#request(), wait, (result) => this.#onAnswer(result));
  }

  #noteId(cseq: string | undefined): void {
    const id = /^\d+/.exec(cseq ?? '')?.[0];
    if (id !== undefined) this.#ids.add(id);
  }

  #onAnswer(result: TransactionResult): void {
    if (result.kind === 'response' && result.status < 300) {
      if (this.#subscription === 'none') this.#subscription = 'active';
      this.#progress(result.status);
      return;
    }
    const at = this.#options.now();
    if (result.kind === 'response') {
      const reason = result.byStack === true ? 'No answer to REFER' : 'REFER refused';
      const kind = result.byStack === true ? 'stack' : 'response';
      this.#end({ kind: 'failed', failure: { at, sipStatus: result.status, reason, kind } });
      return;
    }
    const reason = result.kind === 'refused' ? result.reason : 'No answer to REFER';
    this.#end({ kind: 'failed', failure: { at, reason, kind: 'transport' } });
  }

  #request(): RequestOptions {
    const { dialogId, requestUri, referTo, referredBy, headers, credentials } = this.#options;
    const request: RequestOptions = {
      method: 'REFER',
      stackDialogId: dialogId,
      ...(requestUri === undefined ? {} : { uri: requestUri }),
      headers: {
        ...headers,
        'Refer-To': referTo,
        ...(referredBy === undefined ? {} : { 'Referred-By': referredBy }),
      },
    };
    if (credentials === undefined) return request;
    const handling = { isWanted: () => this.#state === 'asking', onTooLarge: () => undefined };
    return withCredentials(request, credentials, handling);
  }

  #progress(sipStatus: number): void {
    if (this.#state === 'over') return;
    this.#state = 'asked';
    this.#report({ kind: 'progress', sipStatus });
  }

  #conclude({ code, reason }: { readonly code: number; readonly reason: string }): void {
    if (code < 300) {
      this.#end({ kind: 'taken over' });
      return;
    }
    const at = this.#options.now();
    this.#end({ kind: 'failed', failure: { at, sipStatus: code, reason, kind: 'response' } });
  }

  /**
   * Stops listening to this subscription: a later NOTIFY without an id belongs to the next REFER.
   */
  #giveUp(): void {
    this.#subscription = 'terminated';
    if (this.#state === 'asked') {
      this.#end({ kind: 'unheard', reason: 'The far end reported nothing about the referral' });
      return;
    }
    const at = this.#options.now();
    const failure = { at, reason: 'No answer to REFER', kind: 'transport' } as const;
    this.#end({ kind: 'failed', failure });
  }

  #end(event: ReferEvent): void {
    if (this.#state === 'over') return;
    this.stop();
    this.#report(event);
  }
}

/**
 * The REFERs of one dialog, one after the other. A NOTIFY belongs to one of them (RFC 3515, section
 * 2.4.6). From the second REFER on, the NOTIFY names the CSeq of its REFER in `Event: refer;id=`. A
 * NOTIFY without an id belongs to the first referral that is not over.
 *
 * If the dialog had only one REFER, every NOTIFY belongs to it. Some carriers pass on the ids of
 * their next hop, and never report a second REFER.
 */
export class Referrals {
  /** Its length is bounded by the number of transfers that a call may have. */
  readonly #all: Referral[] = [];

  /** Sends the next REFER. The previous referral reports nothing more. */
  begin(options: ReferralOptions, report: (event: ReferEvent) => void): void {
    this.stop();
    this.#all.push(new Referral(options, report));
  }

  /**
   * Handles a NOTIFY.
   * @returns false if it belongs to no referral: no REFER was sent, or no REFER has its id
   */
  onNotify(request: ReceivedRequest, response: Responder): boolean {
    const [first] = this.#all;
    if (first === undefined) return false;
    const referral = this.#all.length === 1 ? first : this.#referralOf(idOf(request));
    referral?.onNotify(request, response);
    return referral !== undefined;
  }

  /** Stops the last referral, because the dialog has ended or another referral begins. */
  stop(): void {
    this.#all.at(-1)?.stop();
  }

  #referralOf(id: string | undefined): Referral | undefined {
    if (id !== undefined) return this.#all.find((referral) => referral.hasId(id));
    return this.#all.find(({ isSubscribed }) => isSubscribed) ?? this.#all.at(-1);
  }
}

function idOf(request: ReceivedRequest): string | undefined {
  return /;\s*id\s*=\s*"?([^;\s"]+)/i.exec(request.get('Event') ?? '')?.[1];
}
