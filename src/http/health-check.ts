// What `/ready` asks of each part.

export type HealthCheck = {
  readonly name: string;
  /** What it means when it does not pass. It is public: nothing of the inside. */
  readonly failure: string;
  /** The gateway does without it for a while: no reason not to be ready, but named by this among what is `degraded`. */
  readonly degradedAs?: string;
  check(): Promise<{ readonly ok: boolean; readonly detail?: string }>;
};
