// Sends REFER in one of our dialogs, and reads the NOTIFYs that report the result (RFC 3515).
// Carriers differ:
// - Some accept the REFER, and report each response to the call that they make.
// - Some only report the end of that call.
// - Some hang up without reporting anything (RFC 4488 even lets them announce that).
// - Some accept the REFER and then never send anything.

import type { ReferEvent } from '../../calls/ports.ts';
import type { DigestClient } from '../digest/digest-client.ts';
import type { EngineLink } from '../engine/engine-link.ts';
import type {
  ReceivedRequest,
  RequestOptions,
  Responder,
  SentRequest,
} from '../engine/srf-types.ts';
import { statusOfFragment } from '../sip-headers.ts';
import { beginTransaction, type TransactionResult } from './transaction.ts';

/**
 * Every SIP stack gives up on a request that gets no response within 64*T1 (RFC 3261, 17.1.2.2).
 */
const answerTimeoutMs = 32_500;

export type ReferralOptions = {
  readonly link: EngineLink;
  readonly dialogId: string;
  readonly referTo: string;
  readonly referredBy: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** Answers challenges. Undefined if the trunk has no credentials. */
  readonly digest: DigestClient | undefined;
  readonly timeoutMs: number;
  readonly now: () => Date;
};

export class Referral {
  readonly #options: ReferralOptions;
  readonly #report: (event: ReferEvent) => void;
  /**
   * - asked: the far end has accepted the REFER.
   * - over: we've sent the one final event, or the dialog has ended.
   */
  #state: 'asking' | 'asked' | 'over' = 'asking';
  readonly #timer: NodeJS.Timeout;
  /**
   * CSeq numbers of this REFER. There is more than one if the REFER was challenged and repeated.
   */
  readonly #ids = new Set<string>();
  /** Set by the response to the REFER, or by a NOTIFY that overtook the response. */
  #subscription: 'none' | 'active' | 'terminated' = 'none';

  constructor(options: ReferralOptions, report: (event: ReferEvent) => void) {
    this.#options = options;
    this.#report = report;
    this.#timer = setTimeout(() => this.#giveUp(), options.timeoutMs);
    this.#sendRefer();
  }

  /** True while NOTIFYs are expected. */
  get isSubscribed(): boolean {
    return this.#subscription === 'active';
  }

  hasId(id: string): boolean {
    return this.#ids.has(id);
  }

  /** Stops the referral, because its dialog has ended or another referral has started there. */
  stop(): void {
    this.#state = 'over';
    clearTimeout(this.#timer);
  }

  /** Handles a NOTIFY. It may arrive before the response to the REFER (RFC 3515, section 2.4.4). */
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

  #sendRefer(): void {
    const { link, timeoutMs } = this.#options;
    const wait = {
      until: 'answered' as const,
      timeoutMs: Math.min(answerTimeoutMs, timeoutMs),
      onSent: (request: SentRequest) => this.#noteId(request.get('CSeq')),
      authentication: {
        client: this.#options.digest,
        isWanted: () => this.#state === 'asking',
      },
    };
    // Carriers send a BYE right after their 202. The call's outcome depends on which of these two
    // messages we handle first, so we handle the response synchronously.
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
    const { dialogId, referTo, referredBy, headers } = this.#options;
    return {
      method: 'REFER',
      stackDialogId: dialogId,
      headers: {
        ...headers,
        'Refer-To': referTo,
        ...(referredBy === undefined ? {} : { 'Referred-By': referredBy }),
      },
    };
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
   * Gives up and stops listening, because from now on, a NOTIFY without an id belongs to the next
   * REFER.
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
 * All REFERs in one dialog, one after another. Each NOTIFY belongs to one of these (RFC 3515,
 * section 2.4.6). From the second REFER on, the NOTIFY contains the CSeq of its REFER in `Event:
 * refer;id=`. A NOTIFY without an id belongs to the first referral that is still subscribed.
 *
 * If there has been only one REFER, every NOTIFY belongs to it, regardless of its id. Some carriers
 * pass on their next hop's ids, and never report a second REFER.
 */
export class Referrals {
  /** Bounded by the maximum number of transfers per call. */
  readonly #all: Referral[] = [];

  /** Sends the next REFER. The previous referral doesn't report anything after that. */
  begin(options: ReferralOptions, report: (event: ReferEvent) => void): void {
    this.stop();
    this.#all.push(new Referral(options, report));
  }

  /**
   * Handles a NOTIFY.
   * @returns false if the NOTIFY doesn't belong to a referral, i.e. if we haven't sent a REFER or
   * none of our REFERs has this id
   */
  onNotify(request: ReceivedRequest, response: Responder): boolean {
    const [first] = this.#all;
    if (first === undefined) return false;
    const referral = this.#all.length === 1 ? first : this.#referralOf(idOf(request));
    referral?.onNotify(request, response);
    return referral !== undefined;
  }

  /** Stops the last referral, because the dialog has ended or another referral is starting. */
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
