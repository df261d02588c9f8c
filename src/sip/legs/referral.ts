// REFER in a dialog of ours, and the NOTIFYs that say what came of it (RFC 3515). Each carrier has its own way: some take it
// and tell each response of the call that they make, some tell only its end, some hang up and say nothing (RFC 4488 even allows to
// announce that), some take it and fall silent.

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

/** A request that is not answered is given up by every stack after 64*T1 (RFC 3261, 17.1.2.2). */
const longestAnswerMs = 32_500;

export type ReferralOptions = {
  readonly link: EngineLink;
  readonly dialogId: string;
  /** The dialog's remote target: the engine knows it, what answers a challenge must name it. */
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
  readonly #tell: (event: ReferEvent) => void;
  /** asked: the REFER was taken. over: its one end was told, or the dialog is no more. */
  #state: 'asking' | 'asked' | 'over' = 'asking';
  readonly #timer: NodeJS.Timeout;
  /** The numbers of its CSeq: it has another one where it was challenged. */
  readonly #ids = new Set<string>();
  /** By the answer to the REFER, or the NOTIFY that overtook it. */
  #subscription: 'none' | 'active' | 'terminated' = 'none';

  constructor(options: ReferralOptions, tell: (event: ReferEvent) => void) {
    this.#options = options;
    this.#tell = tell;
    this.#timer = setTimeout(() => this.#giveUp(), options.timeoutMs);
    this.#ask();
  }

  /** NOTIFYs are to be expected. */
  get isSubscribed(): boolean {
    return this.#subscription === 'active';
  }

  hasId(id: string): boolean {
    return this.#ids.has(id);
  }

  /** The dialog has ended, or another referral has begun in it. */
  stop(): void {
    this.#state = 'over';
    clearTimeout(this.#timer);
  }

  /** May come before the answer to the REFER (RFC 3515, section 2.4.4). */
  onNotify(request: ReceivedRequest, response: Responder): void {
    if (!/^refer\s*(;|$)/i.test(request.get('Event') ?? '')) {
      response.send(489);
      return;
    }
    response.send(200);
    const status = statusOfFragment(request.body);
    const isLast = /^terminated\b/i.test(request.get('Subscription-State') ?? '');
    const isFinal = status !== undefined && status.code >= 200;
    // Some carriers leave out `terminated` with the last word.
    this.#subscription = isLast || isFinal ? 'terminated' : 'active';
    if (isFinal) this.#conclude(status);
    else if (isLast) this.#end({ kind: 'unheard', reason: 'The referral ended without a status' });
    else this.#progress(status?.code ?? 100);
  }

  #ask(): void {
    const { link, timeoutMs } = this.#options;
    const wait = {
      until: 'answered' as const,
      timeoutMs: Math.min(longestAnswerMs, timeoutMs),
      onSent: (request: SentRequest) => this.#noteId(request.get('CSeq')),
    };
    // Carriers send a BYE right behind their 202: which of the two came first decides what the call has come to.
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
    this.#tell({ kind: 'progress', sipStatus });
  }

  #conclude({ code, reason }: { readonly code: number; readonly reason: string }): void {
    if (code < 300) {
      this.#end({ kind: 'taken over' });
      return;
    }
    const at = this.#options.now();
    this.#end({ kind: 'failed', failure: { at, sipStatus: code, reason, kind: 'response' } });
  }

  /** What it says from here on is not listened to: a NOTIFY without an id is of the next REFER. */
  #giveUp(): void {
    this.#subscription = 'terminated';
    if (this.#state === 'asked') {
      this.#end({ kind: 'unheard', reason: 'Nothing was heard of the referral' });
      return;
    }
    const at = this.#options.now();
    const failure = { at, reason: 'No answer to REFER', kind: 'transport' } as const;
    this.#end({ kind: 'failed', failure });
  }

  #end(event: ReferEvent): void {
    if (this.#state === 'over') return;
    this.stop();
    this.#tell(event);
  }
}

/**
 * The REFERs of one dialog, one after the other. A NOTIFY belongs to one of them (RFC 3515, section 2.4.6): from the second REFER
 * on it names the CSeq of its REFER in `Event: refer;id=`; without an id it belongs to the first that is not over. If a dialog had
 * one REFER, every NOTIFY is taken: some carriers pass on the ids of their next hop, and never report a second REFER.
 */
export class Referrals {
  /** As many as a call may have transfers. */
  readonly #all: Referral[] = [];

  /** The one before is not heard of any more. */
  begin(options: ReferralOptions, tell: (event: ReferEvent) => void): void {
    this.stop();
    this.#all.push(new Referral(options, tell));
  }

  /** False: nothing was referred, and so nothing is subscribed to. */
  onNotify(request: ReceivedRequest, response: Responder): boolean {
    const [first] = this.#all;
    if (first === undefined) return false;
    const referral = this.#all.length === 1 ? first : this.#of(idOf(request));
    referral?.onNotify(request, response);
    return referral !== undefined;
  }

  /** The dialog has ended, or another referral begins. */
  stop(): void {
    this.#all.at(-1)?.stop();
  }

  #of(id: string | undefined): Referral | undefined {
    if (id !== undefined) return this.#all.find((referral) => referral.hasId(id));
    return this.#all.find(({ isSubscribed }) => isSubscribed) ?? this.#all.at(-1);
  }
}

function idOf(request: ReceivedRequest): string | undefined {
  return /;\s*id\s*=\s*"?([^;\s"]+)/i.exec(request.get('Event') ?? '')?.[1];
}
