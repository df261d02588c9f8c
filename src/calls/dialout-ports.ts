// Between the HTTP edge and the dial-out work: how a request is handed in, how its route is checked, how a call is ended.

import type { CallId, DialoutRequest, DialTarget } from './call-types.ts';

export type Submission = {
  readonly appId: string;
  readonly accountId: string;
  readonly botId: string;
  readonly request: DialoutRequest;
  /** The caller's headers for notifications; encrypted before they are stored. */
  readonly notifyHeaders?: Readonly<Record<string, string>>;
  readonly idempotency?: { readonly key: string; readonly requestHash: string };
};

/** The answer to a dial-out request; stored with its idempotency key. */
export type DialoutAnswer = {
  readonly sid: string;
  readonly callId: string;
  readonly conversationId: string;
};

export type SubmitResult =
  | { readonly kind: 'accepted'; readonly answer: DialoutAnswer }
  /** The same idempotency key and the same request came before. */
  | { readonly kind: 'replayed'; readonly answer: DialoutAnswer }
  /** The same idempotency key with another request. */
  | { readonly kind: 'conflict' }
  | { readonly kind: 'full'; readonly retryAfterS: number }
  /** A dependency is down; nothing was accepted. */
  | { readonly kind: 'unavailable'; readonly what: string; readonly retryAfterS: number };

export type Intake = { submit(submission: Submission): Promise<SubmitResult> };

/** Checks at the edge that a target can be routed, so that a bad request is a 400 and not a failed call. */
export type RoutePlanner = {
  plan(
    target: DialTarget,
    trunk: string | undefined,
  ):
    | {
        readonly ok: true /** The trunk that will carry it; absent for a direct `sip:` call. */;
        readonly trunk?: string;
      }
    | { readonly ok: false; readonly field: 'target' | 'trunk'; readonly message: string };
};

export type CallControl = {
  /** Cancels or hangs up wherever the call is in its life. `ended`: it had ended before. */
  end(callId: CallId): Promise<'ending' | 'ended' | 'unknown'>;
};
