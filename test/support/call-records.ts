// Complete invented calls and events, for tests that store them.

import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import type { AcceptedCall, DialoutRequest } from '../../src/calls/call-types.ts';
import { defaultAmdTimers } from '../../src/calls/call-types.ts';
import {
  type CallEvent,
  callEventId,
  type TerminalEvent,
} from '../../src/calls/contract/call-event.ts';
import type { CallId } from '../../src/calls/contract/identity.ts';
import type { StoredLeg } from '../../src/calls/contract/stored-leg.ts';
import { insertRows } from './tables.ts';

export function acceptedCall(changes: Partial<AcceptedCall> = {}): AcceptedCall {
  const request: DialoutRequest = {
    target: { kind: 'tel', number: '14155550100' },
    caller: '14155550199',
    notifyUrl: 'http://127.0.0.1:9/notify',
    ringTimeoutMs: 60_000,
    queueTimeoutMs: 300_000,
    trunk: 'sandbox',
    metadata: { campaign: 'spring' },
    machineDetection: 'detect',
    amd: { timers: defaultAmdTimers },
  };
  return {
    callId: `call-${randomUUID()}` as CallId,
    sid: `sid-${randomUUID()}`,
    conversationId: randomUUID(),
    botId: 'bot-1',
    accountId: 'account-1',
    appId: 'app-1',
    request,
    acceptedAt: new Date('2026-03-01T10:00:00.123Z'),
    ...changes,
  };
}

/** Inserts a call in the state in which a process is dialling it. */
export async function insertCall(
  pool: Pick<Pool, 'query'>,
  changes: Partial<AcceptedCall> = {},
): Promise<AcceptedCall> {
  const call = acceptedCall(changes);
  const { acceptedAt } = call;
  const words = { state: 'dialing', status: 'dialing' };
  const row = { ...call, ...words, dialBefore: acceptedAt, dialStartedAt: acceptedAt };
  await insertRows(pool, 'calls', [row]);
  return call;
}

export const storedLeg: StoredLeg = {
  engine: '127.0.0.1:9022',
  sipCallId: 'sip-call-1',
  transactionId: 'transaction-1',
  requestUri: 'sip:14155550100@127.0.0.1',
};

export function answeredEventOf(call: AcceptedCall, time: string): CallEvent {
  return {
    ...identityOf(call),
    id: callEventId(call.callId, 'answered', 4),
    type: 'answered',
    time,
    eventSequence: 4,
    data: {
      callConnectTime: time,
      ringDurationInMS: 1_000,
      connectDurationInMS: 1_500,
      notificationSequence: 1,
    },
  };
}

export function endEventOf(
  call: AcceptedCall,
  changes: Partial<TerminalEvent['data']> & { readonly type?: TerminalEvent['type'] } = {},
): TerminalEvent {
  const { type = 'completed', ...data } = changes;
  const time = '2026-03-01T10:01:00.456Z';
  return {
    ...identityOf(call),
    id: callEventId(call.callId, type, 5),
    type,
    time,
    eventSequence: 5,
    data: {
      outcome: 'completed',
      reason: '200 OK',
      reasonCode: 'Caller-disconnected',
      sipStatus: 200,
      ringDurationInMS: 1_000,
      connectDurationInMS: 1_500,
      callDisconnectTime: time,
      notificationSequence: 2,
      ...data,
    },
  };
}

function identityOf({ callId, sid, conversationId, botId, accountId, appId }: AcceptedCall) {
  return { callId, sid, conversationId, botId, accountId, appId };
}
