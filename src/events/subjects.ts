// Every subject, stream, consumer and bucket name, in one place.

import type { CallEventType } from '../calls/contract/call-event.ts';

/** Dots and wildcards would widen a subject, white space and control characters would break the protocol line. */
const token = /^[^\s.*>\p{Cc}]{1,200}$/u;

export function isSubjectToken(text: string): boolean {
  return token.test(text);
}

export type CallAddress = {
  readonly accountId: string;
  readonly botId: string;
  readonly callId: string;
};

/** @throws RangeError when a token could break the subject; the API edge refuses those before. */
export function callSubject(prefix: string, address: CallAddress, type: CallEventType): string {
  const tokens = [address.accountId, address.botId, address.callId];
  for (const part of tokens) {
    if (!isSubjectToken(part)) throw new RangeError('not a subject token');
  }
  return `${prefix}.call.${tokens.join('.')}.${type}`;
}

/** @throws RangeError when a token could break the subject. */
export function alertSubject(prefix: string, accountId: string, appId: string): string {
  if (![accountId, appId].every(isSubjectToken)) throw new RangeError('not a subject token');
  return `${prefix}.alert.${accountId}.${appId}`;
}

export function commandSubject(prefix: string, callId: string): string {
  return `${prefix}.command.${callId}`;
}

/** Of legs that their own node cannot end. */
export function legSubject(prefix: string): string {
  return `${prefix}.legs.end`;
}

/** Of what a process has kept of its calls. Its name may hold dots. */
export function captureSubject(prefix: string, ownerId: string): string {
  return `${prefix}.capture.${Buffer.from(ownerId).toString('base64url')}`;
}

/** That calls of a source wait, for a process that has room. Nothing is lost with it: SQL is looked at every second. */
export function hintSubject(prefix: string): string {
  return `${prefix}.hint.dial`;
}

/** What producers outside tell the companion. */
export const ingestKinds = ['messages', 'conversations', 'testruns'] as const;
export type IngestKind = (typeof ingestKinds)[number];

/** `*` as the bot: of every bot. */
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
    /** `call-context` is what bot flows are told to open; another prefix on the same NATS must not share it. */
    contextBucket: prefix === 'offhook' ? 'call-context' : `${prefix}-call-context`,
  } as const;
}
