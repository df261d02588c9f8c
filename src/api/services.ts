// What the HTTP edge needs from the rest, in one place. `app.ts` fills it in; tests may script it.

import type { CallId, DialoutRequest, DialTarget } from '../calls/call-types.ts';
import type { CallQueries } from '../interactions/call-queries.ts';
import type { AppDirectory } from '../store/app-directory.ts';

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

export type HealthCheck = {
  readonly name: string;
  check(): Promise<{ readonly ok: boolean; readonly detail?: string }>;
};

export type ApiServices = {
  readonly apps: AppDirectory;
  readonly intake: Intake;
  readonly routes: RoutePlanner;
  readonly control: CallControl;
  readonly calls: CallQueries;
  /** For /ready: the database, NATS, the SIP engine. */
  readonly health: readonly HealthCheck[];
};
