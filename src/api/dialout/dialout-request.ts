// Parses the body of a dial-out request. The result is either a request that we can pass to the
// intake, or a list of all errors. We first check the raw body for second spellings and misspelt
// names, then each field, and finally the rules that concern several fields.

import { createHash } from 'node:crypto';
import type { z } from 'zod';
import { announcementErrors } from '../../calls/announcements/announcement-members.ts';
import { checkAddedHeaders } from '../../calls/caller/added-headers.ts';
import { callerDetailsOf } from '../../calls/caller/caller-members.ts';
import {
  mergeUnknown,
  namesOf,
  type UnknownMembers,
  unknownMembers,
} from '../../calls/contract/misspellings.ts';
import { paceSettings } from '../../calls/detection/detection-members.ts';
import type { DialoutRemarks, RoutePlanner, SubmittedRequest } from '../../calls/dialout-ports.ts';
import { optOutErrors } from '../../calls/opt-out/opt-out-members.ts';
import {
  planErrors,
  planSoundErrors,
  screeningMember,
  voicemailMember,
} from '../../calls/plans/plan-members.ts';
import type { RequestedRecording } from '../../calls/recording/recording.ts';
import { notNotifiable, resolveRecording } from '../../calls/recording/recording-request.ts';
import { consentMember } from '../../calls/rules/consent.ts';
import type { RequestedStream } from '../../calls/stream/stream.ts';
import { streamMember } from '../../calls/stream/stream-members.ts';
import { resolveStream } from '../../calls/stream/stream-request.ts';
import type { TransferPlan } from '../../calls/transfer/transfer.ts';
import { bridgeMember } from '../../calls/transfer/transfer-members.ts';
import { resolveBridge } from '../../calls/transfer/transfer-request.ts';
import type { MemberError } from '../../http/problem.ts';
import { canonicalJson } from '../../http/stored-json.ts';
import { describeIssues, detailedIssues } from '../../lib/issues.ts';
import { requestErrors } from '../../rules/request-checks.ts';
import type { App } from '../../store/apps/app-directory.ts';
import type { Bot } from '../../store/apps/bot-directory.ts';
import type { ApiServices } from '../services.ts';
import { withGlobalNumbers } from './bare-numbers.ts';
import {
  callControlSchema,
  dialoutSchema,
  recordingMember,
  timersSchema,
} from './dialout-schema.ts';
import { checkNotifyHeaders } from './notify-headers.ts';

export type ParsedDialout =
  | {
      readonly ok: true;
      readonly request: SubmittedRequest;
      readonly notifyHeaders?: Readonly<Record<string, string>>;
      /**
       * Returns the SHA-256 of the request's meaning, so a repeated request may spell its fields
       * differently. Most requests have no key and need no hash.
       */
      readonly requestHash: () => string;
      /** Remarks about the request, to be returned in the response. */
      readonly remarks?: DialoutRemarks;
    }
  | { readonly ok: false; readonly errors: readonly MemberError[] };

/** Documented names, each with a second spelling that we also accept. */
const otherSpellings = [
  ['botId', 'bot'],
  ['notifyurl', 'notifyUrl'],
  ['machineDetection', 'machinedetection'],
] as const;

const knownNames = new Map([
  ...namesOf(dialoutSchema.shape),
  ...otherSpellings.map(([documented, other]) => [other, documented] as const),
]);

/**
 * The known names of nested fields, keyed by the field that contains them. We don't check names in
 * `metadata`, parameters and headers, because clients choose those names.
 */
const nestedNames = Object.entries({
  timers: timersSchema,
  stream: streamMember,
  voicemail: voicemailMember,
  screening: screeningMember,
  recording: recordingMember,
  bridge: bridgeMember,
  consent: consentMember,
  callControlParameter: callControlSchema,
}).map(([name, { shape }]) => [name, namesOf(shape)] as const);

/** The services and limits to check a request against. */
export type RequestContext = Pick<
  ApiServices,
  | 'routes'
  | 'speechToTextProviders'
  | 'isNotifiable'
  | 'isSoundReachable'
  | 'streams'
  | 'maxCallDurationMs'
>;

/** The rule set that applies to a request; `unknown` if the request names one that isn't there. */
export type ApplyingRules = Awaited<ReturnType<ApiServices['rules']['find']>>;

/** The client's app, and the bot from the path. The body may use either of the bot's names. */
export type Requester = {
  readonly bot: Pick<Bot, 'botId' | 'streamId' | 'accountId' | 'stream' | 'recording'>;
  readonly app: Pick<App, 'defaultCountry' | 'bareNumbers'>;
  readonly ruleSet: ApplyingRules;
  /** Why the key of the recording can't be used. Undefined if it can, or without a key. */
  readonly keyProblem?: string | undefined;
};

export function parseDialout(
  body: unknown,
  requester: Requester,
  context: RequestContext,
): ParsedDialout {
  const { bot, app } = requester;
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return { ok: false, errors: [{ path: '', message: 'must be a JSON object' }] };
  }
  const { members, errors } = canonicalSpelling(withBotId(body as Members, bot));
  const unknown = unknownIn(members);
  const numbers = withGlobalNumbers(members, app);
  const parsed = dialoutSchema.safeParse(numbers.members, { error: describeIssues });
  errors.push(...unknown.errors, ...numbers.errors);
  for (const { path, message } of detailedIssues(parsed.error?.issues ?? [])) {
    const member = path.join('.');
    // If we couldn't read a number, we have already reported a more precise error.
    if (!numbers.errors.some((error) => error.path === member))
      errors.push({ path: member, message });
  }
  const botId = members['botId'];
  if (typeof botId === 'string' && botId !== bot.botId) {
    errors.push({ path: 'botId', message: 'differs from the bot in the path' });
  }
  if (!parsed.success) return { ok: false, errors };

  const result = acrossMembers(parsed.data, requester, context, errors);
  if (!result.ok) return result;
  const ignored = unknown.ignored.length === 0 ? {} : { ignored: unknown.ignored };
  const remarks = { ...numbers.dialled, ...ignored };
  return Object.keys(remarks).length === 0 ? result : { ...result, remarks };
}

/**
 * Checks the rules that concern several fields or the gateway's configuration: headers, providers,
 * routes, streams, plans.
 */
function acrossMembers(
  {
    notifyHeaders,
    defaultCountry: _country,
    bareNumbers: _bare,
    ...wanted
  }: z.output<typeof dialoutSchema>,
  { bot, ruleSet, keyProblem }: Requester,
  context: RequestContext,
  found: readonly MemberError[],
): ParsedDialout {
  const { routes, streams, isSoundReachable, isNotifiable } = context;
  const errors = [...found];
  const headers = checkNotifyHeaders(notifyHeaders ?? {});
  if (!headers.ok) errors.push(...headers.errors);
  errors.push(...gatewayErrors(wanted, context));
  const route = routes.plan(wanted.target, wanted.trunk, bot.accountId, wanted.caller);
  if (!route.ok) errors.push({ path: route.field, message: route.message });
  const detects = wanted.machineDetection !== 'disabled';
  const stream = resolveStream(wanted.stream, { bot, detects, streams });
  if (!stream.ok) errors.push(...stream.errors);
  const checks = { isSoundReachable, isNotifiable, keyProblem };
  const recorded = resolveRecording(wanted.recording, { bot, detects, checks });
  if (!recorded.ok) errors.push(...recorded.errors);
  const trunk = route.ok ? route.trunk : undefined;
  errors.push(...headerErrors(wanted, route, routes));
  const { caller, callerName } = wanted;
  const callRoute = { caller, callerName, trunk, accountId: bot.accountId, routes };
  const plan = resolveBridge(wanted.bridge, callRoute, wanted.machineDetection);
  if (!plan.ok) errors.push(...plan.errors);
  errors.push(
    ...planErrors(wanted, wanted.machineDetection),
    ...optOutErrors(wanted),
    ...ruleErrors(wanted, ruleSet),
  );
  if (errors.length > 0 || !headers.ok || !stream.ok || !recorded.ok || !plan.ok) {
    return { ok: false, errors };
  }

  return {
    ok: true,
    request: toRequest(wanted, trunk, { ...stream, ...recorded, ...plan }),
    ...(notifyHeaders === undefined ? {} : { notifyHeaders: headers.headers }),
    // We leave the default trunk out of the hash. Otherwise a repeated request would no longer
    // match after the default has changed.
    requestHash: () =>
      createHash('sha256')
        .update(canonicalJson({ ...wanted, notifyHeaders: headers.headers }))
        .digest('hex'),
  };
}

function ruleErrors(wanted: Wanted, ruleSet: ApplyingRules): readonly MemberError[] {
  if (ruleSet === 'unknown') {
    return [{ path: 'rules', message: 'the account has no rule set of this name' }];
  }
  return requestErrors(wanted, ruleSet, new Date());
}

/** Without a route, we don't know the trunk, and only report what no trunk passes on. */
function headerErrors(
  wanted: Wanted,
  route: ReturnType<RoutePlanner['plan']>,
  routes: RoutePlanner,
): readonly MemberError[] {
  const trunk = route.ok ? route.trunk : undefined;
  const passes =
    route.ok && trunk === undefined
      ? undefined
      : (name: string) => trunk === undefined || routes.passes(trunk, name);
  return checkAddedHeaders(wanted, { mustPass: 'every', passes });
}

/** Checks the fields that depend on this gateway's configuration: URLs, limits, providers. */
function gatewayErrors(
  wanted: Wanted,
  { speechToTextProviders, isNotifiable, isSoundReachable, maxCallDurationMs }: RequestContext,
): readonly MemberError[] {
  const errors = [
    ...planSoundErrors(wanted, isSoundReachable),
    ...announcementErrors(wanted, isSoundReachable),
  ];
  if (wanted.notifyurl !== undefined && !isNotifiable(new URL(wanted.notifyurl))) {
    errors.push({
      path: 'notifyurl',
      message: notNotifiable,
    });
  }
  if (wanted.notifyurl === undefined && (wanted.notifyEvents ?? []).length > 0) {
    errors.push({ path: 'notifyEvents', message: 'needs notifyurl, where the events are sent' });
  }
  if (wanted.maxDurationMs !== undefined && wanted.maxDurationMs > maxCallDurationMs) {
    const message = `must be at most ${maxCallDurationMs}, the MAX_CALL_DURATION_MS of this gateway`;
    errors.push({ path: 'maxDurationMs', message });
  }
  const provider = wanted.callControlParameter?.sttProvider;
  if (provider !== undefined && speechToTextProviders?.has(provider) === false) {
    errors.push({
      path: 'callControlParameter.sttProvider',
      message: 'no speech-to-text provider of this name is configured',
    });
  }
  return errors;
}

/** A checked request, minus the headers and the settings for reading numbers. */
type Wanted = Omit<
  z.output<typeof dialoutSchema>,
  'notifyHeaders' | 'defaultCountry' | 'bareNumbers'
>;

/** Results that we derive from several fields. */
type Resolved = {
  readonly stream?: RequestedStream;
  readonly recording?: RequestedRecording | false;
  readonly bridge?: TransferPlan;
};

function toRequest(
  wanted: Wanted,
  trunk: string | undefined,
  { stream, recording, bridge }: Resolved,
): SubmittedRequest {
  const { thresholdWordCount, amdEventsSubscription, callControlParameter } = wanted;
  const { notifyEvents = [] } = wanted;
  return {
    target: wanted.target,
    caller: wanted.caller,
    ...callerDetailsOf(wanted),
    ...(wanted.headers === undefined ? {} : { headers: wanted.headers }),
    ...(wanted.notifyurl === undefined ? {} : { notifyUrl: wanted.notifyurl }),
    ...timesOf(wanted),
    ...(trunk === undefined ? {} : { trunk }),
    metadata: wanted.metadata,
    ...rulesOf(wanted),
    machineDetection: wanted.machineDetection,
    amd: {
      timers: wanted.timers,
      ...paceSettings(wanted.detection),
      ...(thresholdWordCount === undefined ? {} : { thresholdWordCount }),
      ...(callControlParameter === undefined ? {} : { speechToText: callControlParameter }),
    },
    ...(stream === undefined ? {} : { stream }),
    ...announcementsOf(wanted),
    ...(wanted.voicemail === undefined ? {} : { voicemail: wanted.voicemail }),
    ...(wanted.screening === undefined ? {} : { screening: wanted.screening }),
    ...(recording === undefined ? {} : { recording }),
    ...(bridge === undefined ? {} : { bridge }),
    ...(amdEventsSubscription === undefined
      ? {}
      : { amdEventsSubscription: [...new Set(amdEventsSubscription)] }),
    ...(notifyEvents.length === 0 ? {} : { notifyEvents }),
  };
}

function announcementsOf({ abandonedSound, optOutKey, optOutSound }: Wanted) {
  return {
    ...(abandonedSound === undefined ? {} : { abandonedSound }),
    ...(optOutKey === undefined ? {} : { optOutKey }),
    ...(optOutSound === undefined ? {} : { optOutSound }),
  };
}

function rulesOf({ campaign, rules, consent, timeZone }: Wanted) {
  return {
    ...(campaign === undefined ? {} : { campaign }),
    ...(rules === undefined ? {} : { rules }),
    ...(consent === undefined ? {} : { consent }),
    ...(timeZone === undefined ? {} : { timeZone }),
  };
}

function timesOf({ timeoutInMs, queueTimeoutMs, maxDurationMs }: Wanted) {
  return {
    ringTimeoutMs: timeoutInMs,
    ...(queueTimeoutMs === undefined ? {} : { queueTimeoutMs }),
    ...(maxDurationMs === undefined ? {} : { maxDurationMs }),
  };
}

type Members = Readonly<Record<string, unknown>>;

/**
 * Replaces the bot's stream identifier with its id, because a repeated request may use either of
 * them.
 */
function withBotId(body: Members, { botId, streamId }: Pick<Bot, 'botId' | 'streamId'>): Members {
  if (streamId === undefined) return body;
  const named = ['botId', 'bot'].filter((name) => body[name] === streamId);
  return { ...body, ...Object.fromEntries(named.map((name) => [name, botId])) };
}

function canonicalSpelling(body: Members) {
  const members: Record<string, unknown> = { ...body };
  const errors: MemberError[] = [];
  for (const [documented, other] of otherSpellings) {
    if (members[other] === undefined) continue;
    if (members[documented] === undefined) members[documented] = members[other];
    else if (members[documented] !== members[other]) {
      errors.push({ path: other, message: `differs from ${documented}, which means the same` });
    }
    delete members[other];
  }
  return { members, errors };
}

function unknownIn(members: Members): UnknownMembers {
  return mergeUnknown([
    unknownMembers(members, knownNames),
    ...nestedNames.map(([name, known]) => unknownMembers(members[name], known, `${name}.`)),
  ]);
}
