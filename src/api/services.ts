// What the HTTP edge needs from the rest, in one place. `app.ts` fills it in; tests may script it.

import type { CallId } from '../calls/contract/identity.ts';
import type { CommandRouting, Intake, RoutePlanner } from '../calls/dialout-ports.ts';
import type { BotAddresses } from '../calls/stream/stream-request.ts';
import type { HealthCheck } from '../http/health-routes.ts';
import type { CallQueries } from '../interactions/call-queries.ts';
import type { LiveEvents } from '../live/live-events.ts';
import type { DeadLetters } from '../notifier/dead-letters.ts';
import type { SoundLibrary } from '../sounds/sound-store.ts';
import type { AppDirectory } from '../store/apps/app-directory.ts';
import type { BotDirectory } from '../store/apps/bot-directory.ts';

export type {
  DialoutAnswer,
  Intake,
  RoutePlanner,
  Submission,
  SubmitResult,
} from '../calls/dialout-ports.ts';

export type StreamServices = BotAddresses & {
  /**
   * Finds a call by the name under which its bot knows it.
   *
   * @returns undefined if no call has this name
   */
  callOf(callSid: string): Promise<StreamedCall | undefined>;
};

export type StreamedCall = {
  readonly callId: CallId;
  readonly appId: string;
  readonly accountSid: string;
};

export type ApiServices = {
  readonly apps: AppDirectory;
  readonly bots: BotDirectory;
  readonly intake: Intake;
  readonly routes: RoutePlanner;
  /** Names that a request's `callControlParameter.sttProvider` may say; undefined: any, and words are counted by ear. */
  readonly speechToTextProviders: ReadonlySet<string> | undefined;
  /** What `maxDurationMs` of a request may be at most. */
  readonly maxCallDurationMs: number;
  readonly commands: CommandRouting;
  readonly calls: CallQueries;
  readonly live: Pick<LiveEvents, 'follow'>;
  readonly deadLetters: DeadLetters;
  /** Whether notifications may be sent to the host of this URL; of a name that is only known when it is resolved. */
  readonly isNotifiable: (url: URL) => boolean;
  /** Whether calls may fetch this sound from the address in its URL; a `sound:<name>` they may. */
  readonly isSoundReachable: (reference: string) => boolean;
  readonly streams: StreamServices;
  readonly sounds: SoundLibrary;
  /** For /ready. */
  readonly health: readonly HealthCheck[];
};
