// The settings and services that src/app needs to open the parts.

import type { Clock } from '../calls/ports.ts';
import type { Config } from '../config.ts';
import type { SandboxCallSummary } from '../embedded/sandbox/sandbox-call.ts';
import type { Closers } from '../lib/closers.ts';
import type { Logger } from '../lib/logger.ts';
import type { CallWatcher } from '../terminal/call-lines.ts';
import type { Tracing } from '../tracing/tracing.ts';

export type Environment = {
  readonly config: Config;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly closers: Closers;
  /** See `AppOptions` in `app.ts`. */
  readonly onFatal: (error: Error) => void;
  readonly watcher: CallWatcher | undefined;
  readonly onCallStarted: () => void;
  /** Undefined if no collector is configured. */
  readonly tracing: Tracing | undefined;
  readonly onSandboxCallEnded: (summary: SandboxCallSummary) => void;
};
