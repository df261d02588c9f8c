// Formats the records of calls as NDJSON or CSV. Each file ends with a line that counts its records
// and has the SHA-256 of everything before that line, so that a file can be checked years later.

import { createHash } from 'node:crypto';
import { uriOfTarget } from '../../calls/target/dial-target.ts';
import { csvLine } from '../../interactions/call-csv.ts';
import type { CallRecord } from '../../store/rules/call-records.ts';

export const recordFormats = ['ndjson', 'csv'] as const;
export type RecordFormat = (typeof recordFormats)[number];

/** Yields the parts of a file, one for each batch of records. */
export async function* exportOf(
  batches: AsyncIterable<readonly CallRecord[]>,
  format: RecordFormat,
): AsyncGenerator<string> {
  const { header, line, trailer } = writers[format];
  const hash = createHash('sha256');
  let records = 0;
  const hashed = (text: string): string => {
    hash.update(text);
    return text;
  };
  let beginning = header;
  for await (const batch of batches) {
    records += batch.length;
    yield hashed(beginning + batch.map((record) => line(exported(record))).join(''));
    beginning = '';
  }
  yield hashed(beginning) + trailer(records, hash.digest('hex'));
}

type Exported = ReturnType<typeof exported>;
type Cell = string | number | undefined;

/** Returns the members of a record, in the order of the export. Those without a value are null. */
function exported(record: CallRecord) {
  const { accepted_at: acceptedAt, dialed_at: dialedAt, ringing_at: ringingAt } = record;
  const { answered_at: answeredAt, ended_at: endedAt, evidence } = record;
  return {
    callId: record.call_id,
    acceptedAt: acceptedAt.toISOString(),
    appId: record.app_id,
    botId: record.bot_id,
    trunk: record.trunk,
    ...calleeOf(record),
    caller: record.caller,
    callerName: record.caller_name,
    dialedAt: dialedAt?.toISOString(),
    ringingAt: ringingAt?.toISOString(),
    answeredAt: answeredAt?.toISOString(),
    endedAt: endedAt.toISOString(),
    ringMs: msBetween(ringingAt, answeredAt ?? endedAt),
    talkMs: msBetween(answeredAt, endedAt),
    outcome: record.outcome,
    reasonCode: record.reason_code,
    verdict: record.verdict,
    campaign: record.campaign,
    timeZone: record.time_zone,
    consent: record.consent,
    ruleSet: record.rule_set,
    ruleSetVersion: record.rule_set_version,
    rule: record.rule,
    ftcOutcome: record.ftc_outcome,
    ofcomOutcome: record.ofcom_outcome,
    ...evidence,
  };
}

function calleeOf({ number, target }: Pick<CallRecord, 'number' | 'target'>) {
  return {
    number: number === null ? null : `+${number}`,
    target: target === null ? `tel:+${number}` : uriOfTarget(target),
  };
}

/** @returns undefined if the first time is, and never less than 0, although clocks step back */
function msBetween(from: Date | null, to: Date): number | undefined {
  return from === null ? undefined : Math.max(0, to.getTime() - from.getTime());
}

/** Members without a value are left out. */
function withoutNull(_name: string, value: unknown): unknown {
  return value === null ? undefined : value;
}

/** Members that are one column each. */
const plainColumns = [
  ...(['callId', 'acceptedAt', 'appId', 'botId', 'trunk', 'number', 'target'] as const),
  ...(['caller', 'callerName', 'dialedAt', 'ringingAt', 'answeredAt', 'endedAt'] as const),
  ...(['ringMs', 'talkMs', 'outcome', 'reasonCode', 'verdict', 'campaign', 'timeZone'] as const),
  ...(['ruleSet', 'ruleSetVersion', 'rule', 'ftcOutcome', 'ofcomOutcome'] as const),
] satisfies readonly (keyof Exported)[];

const otherColumns = {
  consentBasis: ({ consent }) => consent?.basis,
  consentAt: ({ consent }) => consent?.at,
  consentReference: ({ consent }) => consent?.reference,
  // A name has no blank: it is sound:<name> or a URL.
  sounds: ({ sounds = [] }) =>
    sounds.map(({ name, sha256 }) => (sha256 === undefined ? name : `${name} ${sha256}`)).join(' '),
  connectedTo: ({ connections = [] }) =>
    connections.map((connection) => connection.with).join(' ') || 'nobody',
  connectedAt: ({ connections = [] }) => connections.map(({ at }) => at).join(' '),
  abandonedAt: ({ abandoned }) => abandoned?.at,
  abandonedMissing: ({ abandoned }) => abandoned?.missing,
  optedOutAt: ({ optedOut }) => optedOut?.at,
  optedOutBy: ({ optedOut }) => optedOut?.by,
  announcedAt: ({ recording }) => recording?.announcedAt,
  announcement: ({ recording }) => {
    const { name, sha256 = '' } = recording?.announcement ?? {};
    return name === undefined ? undefined : `${name} ${sha256}`.trim();
  },
  recordedFrom: ({ recording }) => recording?.startedAt,
  recordedUntil: ({ recording }) => recording?.endedAt,
  transferredTo: ({ connections = [] }) => connections.flatMap(({ to }) => to ?? []).join(' '),
} satisfies Readonly<Record<string, (record: Exported) => Cell>>;

const writers: Readonly<
  Record<
    RecordFormat,
    {
      readonly header: string;
      readonly line: (record: Exported) => string;
      readonly trailer: (records: number, sha256: string) => string;
    }
  >
> = {
  ndjson: {
    header: '',
    line: (record) => `${JSON.stringify(record, withoutNull)}\n`,
    trailer: (records, sha256) => `${JSON.stringify({ trailer: true, records, sha256 })}\n`,
  },
  csv: {
    header: csvLine([...plainColumns, ...Object.keys(otherColumns)]),
    line: (record) =>
      csvLine([
        ...plainColumns.map((name) => record[name] ?? undefined),
        ...Object.values(otherColumns).map((cell) => cell(record)),
      ]),
    trailer: (records, sha256) => `# records=${records} sha256=${sha256}\r\n`,
  },
};
