// Builds the tables of the pages from the code that they describe.

import { callEvents, callEventTypes } from '../../src/calls/contract/call-event.ts';
import { changesContext, statusRows } from '../../src/calls/contract/event-table.ts';
import {
  type CallEnd,
  endAfterAnswer,
  endBeforeAnswer,
  endOfBotFailure,
  endOfExpiry,
  endOfFailure,
  endOfMachine,
  endOfMaxDuration,
  endOfReferral,
  endOfRefusal,
  endOfRemoteBye,
  endOfRingTimeout,
  endOfUnknown,
  endOfVoicemail,
  faultOf,
  outcomeBySipStatus,
} from '../../src/calls/life/call-outcome.ts';
import { callTerms } from '../../src/calls/rules/call-terms.ts';
import { configurationTable } from '../../src/config.ts';
import { sandboxNumbers } from '../../src/embedded/sandbox/sandbox-numbers.ts';
import { problemKinds } from '../../src/http/problem.ts';
import { leaseTimes } from '../../src/lib/lease-times.ts';
import { answerTimeoutMs } from '../../src/recovery/late-nodes.ts';

type Row = readonly string[];

function table(headings: Row, rows: readonly Row[]): string {
  return [headings, headings.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');
}

const code = (text: string): string => (text === '' ? '' : `\`${text}\``);

export const configuration = table(
  ['variable', 'default', ''],
  configurationTable().map(({ name, fallback, meaning }) => [code(name), code(fallback), meaning]),
);

const seconds = (ms: number): string => `${Number((ms / 1_000).toFixed(1))} s`;

export const lease = table(
  ['`NODE_LEASE_MS`', 'lease in the database', 'a dead node is noticed within'],
  [4_000, 8_000, 15_000].map((leaseMs) => {
    const { grantedMs, lookEveryMs } = leaseTimes(leaseMs);
    const noticedMs = grantedMs + lookEveryMs + answerTimeoutMs;
    return [String(leaseMs), seconds(grantedMs), seconds(noticedMs)];
  }),
);

export const sandbox = table(
  ['number', 'or', 'what happens'],
  sandboxNumbers.map(({ number, name, description }) => [
    code(`tel:${number}`),
    code(name),
    description,
  ]),
);

export const problems = table(
  ['`type`', 'status', '`title`'],
  Object.entries(problemKinds).map(([kind, { status, title }]) => [
    code(`urn:offhook:problem:${kind}`),
    String(status),
    title,
  ]),
);

/** Follows the end of the call, whose notification is the last one. */
const notNotified: ReadonlySet<string> = new Set(['recording-stored']);

export const events = table(
  ['event', 'when', 'members of `data`', '`status` of its notification', 'context'],
  callEventTypes.map((type) => {
    const { data } = callEvents[type];
    const statuses: Readonly<Record<string, { readonly status: string }>> = statusRows;
    return [
      code(type),
      data.description ?? '',
      Object.keys(data.shape)
        .filter((name) => !Object.hasOwn(callTerms, name))
        .filter((name) => name !== 'notificationSequence' || !notNotified.has(type))
        .map(code)
        .join(', '),
      notNotified.has(type) ? 'none' : code(statuses[type]?.status ?? 'Event'),
      changesContext(type) ? 'changes' : '',
    ];
  }),
);

const at = new Date(0);

function endOfStatus(sipStatus: number): CallEnd {
  return endOfFailure({ at, kind: 'response', sipStatus, reason: '' });
}

const listedStatuses = [...outcomeBySipStatus.keys()].sort((one, other) => one - other);

/** For each class, a status without a separate row, for example 499 for 4xx. */
const fallbacks = [3, 4, 5, 6].map((statusClass) => {
  const hasRows = listedStatuses.some((status) => Math.floor(status / 100) === statusClass);
  return [statusClass * 100 + 99, `${hasRows ? 'other ' : ''}${statusClass}xx`] as const;
});

/** Returns the rows for SIP statuses. Statuses with the same meaning share a row. */
function rowsOfStatuses(): readonly Row[] {
  const named = [...listedStatuses.map((each) => [each, String(each)] as const), ...fallbacks];
  const rows = new Map<string, { readonly end: CallEnd; readonly names: string[] }>();
  for (const [status, name] of named) {
    const end = endOfStatus(status);
    const meaning = `${end.outcome} ${faultOf(end)}`;
    const row = rows.get(meaning) ?? { end, names: [] };
    row.names.push(name);
    rows.set(meaning, row);
  }
  return [...rows.values()].map(({ end, names }) =>
    rowOf(`SIP status ${names.join(', ')}`, end, 'the status line'),
  );
}

/**
 * @param reason what the cell says if the reason differs from call to call. Default: the reason of
 * `end`.
 */
function rowOf(what: string, end: CallEnd, reason?: string): Row {
  return [
    what,
    reason ?? code(end.reason),
    code(end.reasonCode),
    code(end.outcome),
    code(faultOf(end) ?? ''),
  ];
}

const networkBlocked = {
  kind: 'response',
  sipStatus: 603,
  reason: 'Network Blocked',
  facts: { block: { raw: '' } },
} as const;
const failure = { by: 'gateway', reason: '' } as const;
const application = { by: 'application' } as const;
const failed = 'what failed';

export const outcomes = table(
  ['what happened', '`reason`', '`reasonCode`', '`outcome`', '`fault`'],
  [
    rowOf('the person hung up', endOfRemoteBye({ at })),
    rowOf('the bot or the dialer hung up', endAfterAnswer(application, at)),
    rowOf(
      'a machine answered, and `machineDetection` was `disconnect`, a plan left it no message, or a `bridge` waited for a person',
      endOfMachine(at),
    ),
    rowOf('a plan left its message', endOfVoicemail(at)),
    rowOf('referred to an agent', endOfReferral(at)),
    rowOf('the bot could not be reached, or did not come back', endOfBotFailure(at)),
    rowOf('`maxDurationMs` or `MAX_CALL_DURATION_MS` was reached', endOfMaxDuration(at)),
    rowOf(
      'after the answer, detection in `disconnect` mode, RTP, the SIP engine or the gateway failed',
      endAfterAnswer(failure, at),
      failed,
    ),
    ...rowsOfStatuses(),
    rowOf(
      'SIP status 603 that says that analytics blocked the call (see below)',
      endOfFailure({ at, ...networkBlocked }),
      'the status line',
    ),
    rowOf('no answer within `timeoutInMs`', endOfRingTimeout(at)),
    rowOf('the dialer cancelled the call', endBeforeAnswer(application, at)),
    rowOf(
      'no response within 32 s, a refused connection, a 200 OK without usable SDP, SRTP key or Contact',
      endOfFailure({ at, kind: 'stack', reason: '' }),
      'the status line',
    ),
    rowOf(
      'before the answer, no SIP engine or media port, or the gateway shut down',
      endBeforeAnswer(failure, at),
      failed,
    ),
    rowOf('not dialled within `queueTimeoutMs`', endOfExpiry(at)),
    rowOf(
      'a calling rule forbids the call, which `rule` names',
      endOfRefusal({ rule: 'suppressed' }, at),
      'which rule',
    ),
    rowOf(
      'the gateway died while it placed the call; it is not known whether a phone rang',
      endOfUnknown('lost', at),
      failed,
    ),
  ],
);
