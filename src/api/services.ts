// The services that the HTTP API needs from other modules. `src/app/app.ts` provides them.

import type { CallId } from '../calls/contract/identity.ts';
import type { CommandRouting, Intake, RoutePlanner, Suppressing } from '../calls/dialout-ports.ts';
import type { BotAddresses } from '../calls/stream/stream-request.ts';
import type { HealthCheck } from '../http/health-routes.ts';
import type { CallQueries } from '../interactions/call-queries.ts';
import type { LiveEvents } from '../live/live-events.ts';
import type { DeadLetters } from '../notifier/dead-letters.ts';
import type { StoredRecordings } from '../recording/recordings.ts';
import type { PublicServer } from '../servers/server-line.ts';
import type { SoundLibrary } from '../sounds/sound-store.ts';
import type { AppDirectory } from '../store/apps/app-directory.ts';
import type { BotDirectory } from '../store/apps/bot-directory.ts';
import type { CallCheck, CallToCheck } from '../store/rules/call-checks.ts';
import type { CallRecords } from '../store/rules/call-records.ts';
import type { Campaigns } from '../store/rules/campaigns.ts';
import type { CurrentRules } from '../store/rules/current-rules.ts';
import type { RemovedPerson } from '../store/rules/person-removal.ts';
import type { RuleSetStore } from '../store/rules/rule-sets.ts';
import type { Suppressions } from '../store/rules/suppressions.ts';

export type {
  DialoutAnswer,
  Intake,
  RoutePlanner,
  Submission,
  SubmitResult,
} from '../calls/dialout-ports.ts';

export type StreamServices = BotAddresses & {
  /**
   * Finds a call by the `callSid` that its bot received.
   *
   * @returns undefined if no call has this `callSid`
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
  /**
   * Accepted values for `callControlParameter.sttProvider`. Undefined if any name is accepted. With
   * a provider that isn't configured, detection estimates the number of words from the sound.
   */
  readonly speechToTextProviders: ReadonlySet<string> | undefined;
  /** Upper limit for a request's `maxDurationMs`. */
  readonly maxCallDurationMs: number;
  readonly commands: CommandRouting;
  readonly calls: CallQueries;
  readonly live: Pick<LiveEvents, 'follow'>;
  readonly deadLetters: DeadLetters;
  /**
   * Whether notifications may be sent to this URL's host. Always true for a host name, because we
   * check its addresses when we resolve it.
   */
  readonly isNotifiable: (url: URL) => boolean;
  /** Whether calls may fetch this sound from its URL. Always true for a `sound:<name>`. */
  readonly isSoundReachable: (reference: string) => boolean;
  /** Why recordings can't be encrypted for the account's key. Undefined if they can. */
  readonly keyProblem: (accountId: string, name: string) => Promise<string | undefined>;
  readonly streams: StreamServices;
  readonly sounds: SoundLibrary;
  readonly recordings: StoredRecordings;
  readonly suppressions: Omit<Suppressions, 'put'>;
  readonly suppressing: Suppressing;
  readonly ruleSets: RuleSetStore;
  readonly rules: {
    /**
     * Finds the rules that apply to a request.
     *
     * @param name the rule set that the request names. Undefined if it names none
     * @returns undefined if no rules apply; `unknown` if the account has no rule set of this name
     */
    find(
      accountId: string,
      name: string | undefined,
    ): Promise<CurrentRules | undefined | 'unknown'>;
    /** Says what the rules would decide about a call now. */
    check(call: CallToCheck): Promise<CallCheck>;
  };
  readonly records: CallRecords;
  readonly persons: {
    /** Removes what is stored about the calls to a number, given as E.164 digits. */
    remove(accountId: string, number: string): Promise<RemovedPerson>;
  };
  readonly campaigns: Campaigns;
  /** The checks that `/ready` runs. */
  readonly health: readonly HealthCheck[];
  /** The state of each server under the gateway, as `/ready` returns it. */
  readonly servers: () => readonly PublicServer[];
};
