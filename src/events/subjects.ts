// The names of all subjects, streams and buckets.

import type { CallEventType } from '../calls/contract/call-event.ts';

/**
 * Dots and wildcards would change the meaning of a subject. White space and control characters
 * would break NATS's text protocol.
 */
const token = /^[^\s.*>\p{Cc}]{1,200}$/u;

export function isSubjectToken(text: string): boolean {
  return token.test(text);
}

export type CallAddress = {
  readonly accountId: string;
  readonly botId: string;
  readonly callId: string;
};

/** @throws RangeError if a token isn't valid in a subject, although the API should have checked */
export function callSubject(prefix: string, address: CallAddress, type: CallEventType): string {
  return `${subjectOfCall(prefix, address)}.${type}`;
}

/**
 * Returns the wildcard for all events of a call.
 *
 * @throws RangeError if a token isn't valid in a subject
 */
export function callSubjects(prefix: string, address: CallAddress): string {
  return `${subjectOfCall(prefix, address)}.*`;
}

function subjectOfCall(prefix: string, { accountId, botId, callId }: CallAddress): string {
  const tokens = [accountId, botId, callId];
  for (const part of tokens) {
    if (!isSubjectToken(part)) throw new RangeError('not a subject token');
  }
  return `${prefix}.call.${tokens.join('.')}`;
}

/** @throws RangeError if a token isn't valid in a subject */
export function alertSubject(prefix: string, accountId: string, appId: string): string {
  if (![accountId, appId].every(isSubjectToken)) throw new RangeError('not a subject token');
  return `${prefix}.alert.${accountId}.${appId}`;
}

/** @throws RangeError if the account's id isn't valid in a subject */
export function campaignAlertSubject(prefix: string, accountId: string): string {
  return alertSubject(prefix, accountId, 'campaigns');
}

/** @throws RangeError if the account's id isn't valid in a subject */
export function recordingAlertSubject(prefix: string, accountId: string): string {
  return alertSubject(prefix, accountId, 'recordings');
}

export function commandSubject(prefix: string, callId: string): string {
  return `${prefix}.command.${callId}`;
}

/** Subject for requests to end a leg. The requesting node can't reach the leg's SIP engine. */
export function legSubject(prefix: string): string {
  return `${prefix}.legs.end`;
}

/** Subject for requesting captures of a process's calls. `ownerId` may contain dots. */
export function captureSubject(prefix: string, ownerId: string): string {
  return `${prefix}.capture.${Buffer.from(ownerId).toString('base64url')}`;
}

/**
 * Subject for asking a process to cancel calls to numbers that have been suppressed. `ownerId` may
 * contain dots.
 */
export function cancelSubject(prefix: string, ownerId: string): string {
  return `${prefix}.cancel.${Buffer.from(ownerId).toString('base64url')}`;
}

/** Subject for asking a process whether it's alive. `ownerId` may contain dots. */
export function aliveSubject(prefix: string, ownerId: string): string {
  return `${prefix}.alive.${Buffer.from(ownerId).toString('base64url')}`;
}

/** Subject for hints that a source has queued calls. We also poll the database once a second. */
export function hintSubject(prefix: string): string {
  return `${prefix}.hint.dial`;
}

/** Subject for hints that calling rules have changed. What a node remembers expires in seconds. */
export function rulesHintSubject(prefix: string): string {
  return `${prefix}.hint.rules`;
}

/** The kinds of resources that external producers publish for the companion. */
export const ingestKinds = ['messages', 'conversations', 'testruns'] as const;
export type IngestKind = (typeof ingestKinds)[number];

/** @param bot a bot's id or alias, or `*` for every bot */
export function ingestSubject(prefix: string, kind: IngestKind, bot: string): string {
  return `${prefix}.ingest.${kind}.${bot}`;
}

export function deadLetterSubject(prefix: string, consumer: string): string {
  return `${prefix}.dead.${consumer}`;
}

export function streamNames(prefix: string) {
  return {
    calls: `${prefix}_calls`,
    dead: `${prefix}_dead`,
    alerts: `${prefix}_alerts`,
    ingest: `${prefix}_ingest`,
    /**
     * Bot flows open `call-context` by this name. A gateway with a different prefix on the same
     * NATS server must not share the bucket.
     */
    contextBucket: prefix === 'offhook' ? 'call-context' : `${prefix}-call-context`,
    /** Test runners store their files under this name. The same holds for the prefix. */
    resultBucket: prefix === 'offhook' ? 'test-results' : `${prefix}-test-results`,
  } as const;
}
