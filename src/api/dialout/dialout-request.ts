// From the body of a dial-out request to what the intake takes, or every reason why not. Works on the raw body first
// (spellings, misspellings), then member by member, then across members.

import { createHash } from 'node:crypto';
import type { z } from 'zod';
import { misspellings } from '../../calls/contract/misspellings.ts';
import type { SubmittedRequest } from '../../calls/dialout-ports.ts';
import type { RequestedStream } from '../../calls/stream.ts';
import type { TransferPlan } from '../../calls/transfer.ts';
import type { MemberError } from '../../http/problem.ts';
import { canonicalJson } from '../../http/stored-json.ts';
import { describeIssues } from '../../lib/issues.ts';
import type { App } from '../../store/apps/app-directory.ts';
import type { Bot } from '../../store/apps/bot-directory.ts';
import type { ApiServices } from '../services.ts';
import { callControlSchema, dialoutSchema, timersSchema } from './dialout-schema.ts';
import { checkNotifyHeaders } from './notify-headers.ts';
import { planErrors, planSoundErrors, screeningSchema, voicemailSchema } from './plan-requests.ts';
import { resolveStream, streamSchema } from './stream-request.ts';
import { bridgeSchema, resolveBridge } from './transfer-request.ts';

export type ParsedDialout =
  | {
      readonly ok: true;
      readonly request: SubmittedRequest;
      readonly notifyHeaders?: Readonly<Record<string, string>>;
      /** SHA-256 of what was asked for, whatever the spelling: the same for a repeated request. */
      readonly requestHash: string;
    }
  | { readonly ok: false; readonly errors: readonly MemberError[] };

/** Documented name → the other spelling that callers use. */
const otherSpellings = [
  ['botId', 'bot'],
  ['notifyurl', 'notifyUrl'],
  ['machineDetection', 'machinedetection'],
] as const;

/** Members that have members of their own, all of which the gateway knows. */
const nestedSchemas = {
  timers: timersSchema,
  stream: streamSchema,
  voicemail: voicemailSchema,
  screening: screeningSchema,
  bridge: bridgeSchema,
  callControlParameter: callControlSchema,
} as const;

/** What a request may name. */
export type Known = Pick<
  ApiServices,
  'routes' | 'speechToTextProviders' | 'isNotifiable' | 'isSoundReachable' | 'streams'
>;

/** For whom: the bot of the path; the body may call it by either of its names. */
export type Asking = {
  readonly bot: Pick<Bot, 'botId' | 'streamId' | 'accountId' | 'stream'>;
  readonly app: Pick<App, 'appId' | 'streamSecrets'>;
};

export function parseDialout(body: unknown, asking: Asking, known: Known): ParsedDialout {
  const { bot } = asking;
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return { ok: false, errors: [{ path: '', message: 'must be a JSON object' }] };
  }
  const { members, errors } = canonicalSpelling(withBotId(body as Members, bot));
  const parsed = dialoutSchema.safeParse(members, { error: describeIssues });
  for (const issue of parsed.error?.issues ?? []) {
    errors.push({ path: issue.path.join('.'), message: issue.message });
  }
  const botId = members['botId'];
  if (typeof botId === 'string' && botId !== bot.botId) {
    errors.push({ path: 'botId', message: 'differs from the bot in the path' });
  }
  if (!parsed.success) return { ok: false, errors };

  return acrossMembers(parsed.data, { ...known, ...asking }, errors);
}

/** What the members are to the rest of the world: headers, providers, routes. */
function acrossMembers(
  { notifyHeaders, ...wanted }: z.output<typeof dialoutSchema>,
  { app, bot, ...known }: Known & Asking,
  found: readonly MemberError[],
): ParsedDialout {
  const { routes, streams } = known;
  const errors = [...found];
  const headers = checkNotifyHeaders(notifyHeaders ?? {});
  if (!headers.ok) errors.push(...headers.errors);
  errors.push(...namedErrors(wanted, known));
  const route = routes.plan(wanted.target, wanted.trunk, bot.accountId);
  if (!route.ok) errors.push({ path: route.field, message: route.message });
  const detects = wanted.machineDetection !== 'disabled';
  const stream = resolveStream(wanted.stream, { bot, app, detects, streams });
  if (!stream.ok) errors.push(...stream.errors);
  const trunk = route.ok ? route.trunk : undefined;
  const ofCall = { caller: wanted.caller, trunk, accountId: bot.accountId, routes };
  const plan = resolveBridge(wanted.bridge, ofCall, wanted.machineDetection);
  if (!plan.ok) errors.push(...plan.errors);
  errors.push(...planErrors(wanted, wanted.machineDetection));
  if (errors.length > 0 || !headers.ok || !stream.ok || !plan.ok) return { ok: false, errors };

  return {
    ok: true,
    request: toRequest(wanted, trunk, { ...stream, ...plan }),
    ...(notifyHeaders === undefined ? {} : { notifyHeaders: headers.headers }),
    // Before the default trunk is filled in: a repeated request stays the same when that default changes.
    requestHash: createHash('sha256')
      .update(canonicalJson({ ...wanted, notifyHeaders: headers.headers }))
      .digest('hex'),
  };
}

/** What they name, by itself. */
function namedErrors(
  wanted: Wanted,
  { speechToTextProviders, isNotifiable, isSoundReachable }: Known,
): readonly MemberError[] {
  const errors = [...planSoundErrors(wanted, isSoundReachable)];
  if (wanted.notifyurl !== undefined && !isNotifiable(new URL(wanted.notifyurl))) {
    errors.push({
      path: 'notifyurl',
      message:
        'must not be a private, local or reserved address that NOTIFY_ALLOWED_NETWORKS lacks',
    });
  }
  if (wanted.notifyurl === undefined && (wanted.notifyEvents ?? []).length > 0) {
    errors.push({ path: 'notifyEvents', message: 'needs notifyurl, where the events are sent' });
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

type Wanted = Omit<z.output<typeof dialoutSchema>, 'notifyHeaders'>;

/** What members come to together. */
type Resolved = { readonly stream?: RequestedStream; readonly bridge?: TransferPlan };

function toRequest(
  wanted: Wanted,
  trunk: string | undefined,
  { stream, bridge }: Resolved,
): SubmittedRequest {
  const { thresholdWordCount, amdEventsSubscription, callControlParameter } = wanted;
  const { notifyEvents = [] } = wanted;
  return {
    target: wanted.target,
    caller: wanted.caller,
    ...(wanted.notifyurl === undefined ? {} : { notifyUrl: wanted.notifyurl }),
    ringTimeoutMs: wanted.timeoutInMs,
    ...(wanted.queueTimeoutMs === undefined ? {} : { queueTimeoutMs: wanted.queueTimeoutMs }),
    ...(trunk === undefined ? {} : { trunk }),
    metadata: wanted.metadata,
    machineDetection: wanted.machineDetection,
    amd: {
      timers: wanted.timers,
      ...(thresholdWordCount === undefined ? {} : { thresholdWordCount }),
      ...(callControlParameter === undefined ? {} : { speechToText: callControlParameter }),
    },
    ...(stream === undefined ? {} : { stream }),
    ...(wanted.voicemail === undefined ? {} : { voicemail: wanted.voicemail }),
    ...(wanted.screening === undefined ? {} : { screening: wanted.screening }),
    ...(bridge === undefined ? {} : { bridge }),
    ...(amdEventsSubscription === undefined
      ? {}
      : { amdEventsSubscription: [...new Set(amdEventsSubscription)] }),
    ...(notifyEvents.length === 0 ? {} : { notifyEvents }),
  };
}

type Members = Readonly<Record<string, unknown>>;

/** Names of the bot become its id before anything is compared: a repeated request may use the other one. */
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
  errors.push(...misspellings(members, dialoutSchema.shape, ''));
  for (const [name, { shape }] of Object.entries(nestedSchemas)) {
    errors.push(...misspellings(members[name], shape, `${name}.`));
  }
  return { members, errors };
}
