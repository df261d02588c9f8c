// A dial-out call as a conversation, in each of its states.

import { afterEach, describe, expect, test } from 'vitest';
import type { TerminalEvent } from '../../src/calls/contract/call-event.ts';
import { sessionIdOf } from '../../src/calls/life/call-events.ts';
import { publishedConversation } from '../../src/companion/conversations/conversation-schema.ts';
import { storeConversations } from '../../src/companion/conversations/published-conversations.ts';
import { acceptedCall, endEventOf } from '../support/call-records.ts';
import { databaseKinds } from '../support/databases.ts';
import { forSuite } from '../support/opened.ts';
import { insertRows } from '../support/tables.ts';
import { type Ask, startRig } from './support.ts';

const call = acceptedCall({ accountId: 'acme', botId: 'st-1' });
const sessionId = sessionIdOf(call);
const queued = { queueId: 'sandbox', queueName: 'sandbox', agentId: 'st-1', name: 'st-1' };
const times = {
  dialStartedAt: new Date('2026-03-01T10:00:01.000Z'),
  answeredAt: new Date('2026-03-01T10:00:10.500Z'),
  endedAt: new Date('2026-03-01T10:01:00.456Z'),
};

/** The columns of a call that ended with this event. */
function endColumns({ data }: TerminalEvent) {
  const { outcome, reason, reasonCode, machineDetection: verdict } = data;
  return { outcome, reason, reasonCode, ...(verdict === undefined ? {} : { verdict }) };
}

describe.each(databaseKinds)('a dial-out call as a conversation on %s', (kind) => {
  const rig = forSuite(() => startRig(kind));
  afterEach(() => rig.clear());

  const store = async (changes: object = {}) => {
    const unread = { dialBefore: call.acceptedAt, state: 'of no concern', status: 'here' };
    await insertRows(rig.database.pool, 'calls', [{ ...call, ...unread, ...changes }]);
  };
  const get = (ask: Ask = {}, session = sessionId) =>
    rig.ask(
      'GET',
      `/contactcenter/api/v1/public/st-1/conversations/sessions/${session}`,
      undefined,
      { ...ask, headers: { accept: 'application/json', accountid: 'acme', ...ask.headers } },
    );

  test('waits in the queue of its trunk', async () => {
    await store();

    expect((await get()).json()).toEqual({
      _id: call.conversationId,
      participants: [
        { ...queued, queueStartTime: '2026-03-01T10:00:00.123Z', status: 'INACTIVE' },
        { name: '+14155550100', status: 'INACTIVE' },
      ],
      transferDetails: [],
      conversationType: 'voice',
      status: 'ACTIVE',
      summary: [],
      dispositions: {},
      userInfo: { phoneNumber: '+14155550100' },
      notes: [],
    });
  });

  test('has two active participants while it is up', async () => {
    const { endedAt: _later, ...sofar } = times;
    await store(sofar);

    const startTimeStamp = '2026-03-01T10:00:10.500Z';
    expect((await get()).json()).toMatchObject({
      status: 'ACTIVE',
      participants: [
        { ...queued, status: 'ACTIVE', assignedAt: '2026-03-01T10:00:01.000Z', startTimeStamp },
        { name: '+14155550100', status: 'ACTIVE', startTimeStamp },
      ],
    });
  });

  test.each([
    ['Caller-disconnected', 'USER_CLOSED', [undefined, true]],
    ['Bot-disconnected', 'BOT_CLOSED', [true, undefined]],
    ['Gateway-disconnected', 'SYSTEM_CLOSED', [undefined, undefined]],
  ] as const)(
    'that ended with %s has the metaStatus %s',
    async (reasonCode, metaStatus, endedChat) => {
      const end = endEventOf(call, { reasonCode, machineDetection: 'amd_human_detected' });
      await store({ ...times, ...endColumns(end) });

      const session = (await get()).json<{ participants: { endedChat?: boolean }[] }>();

      expect(session).toMatchObject({
        status: 'CLOSED',
        participants: [
          { status: 'INACTIVE', endTimeStamp: '2026-03-01T10:01:00.456Z' },
          { status: 'INACTIVE', endTimeStamp: '2026-03-01T10:01:00.456Z' },
        ],
        dispositions: {
          status: 'completed',
          remarks: '200 OK',
          metaStatus,
          dispositionSets: [
            { dispositionsSet: 'machineDetection', dispositionCodes: 'amd_human_detected' },
          ],
        },
      });
      expect(session.participants.map((participant) => participant.endedChat)).toEqual(endedChat);
    },
  );

  test('that was not answered is closed without a start', async () => {
    const end = endEventOf(call, {
      type: 'failed',
      outcome: 'busy',
      reason: '486 Busy Here',
      reasonCode: 'Busy here',
    });
    await store({ ...times, answeredAt: null, ...endColumns(end) });

    const session = (await get()).json<{ participants: object[] }>();

    expect(session).toMatchObject({
      status: 'CLOSED',
      dispositions: {
        status: 'busy',
        remarks: '486 Busy Here',
        dispositionSets: [],
        metaStatus: 'NOT_ANSWERED',
      },
    });
    for (const participant of session.participants) {
      expect(participant).not.toHaveProperty('startTimeStamp');
      expect(participant).not.toHaveProperty('endTimeStamp');
      expect(participant).not.toHaveProperty('endedChat');
    }
  });

  test('to a SIP address has no phone number, and no queue without a trunk', async () => {
    const { trunk: _none, ...request } = call.request;
    await store({
      request: { ...request, target: { kind: 'sip', user: 'ada', host: 'example.com' } },
    });

    const session = (await get()).json<{ participants: object[] }>();

    expect(session).toMatchObject({
      participants: [{}, { name: 'ada@example.com' }],
      userInfo: {},
    });
    expect(session.participants[0]).not.toHaveProperty('queueId');
  });

  test('falls on the days from its request to its end', async () => {
    await store({ ...times, ...endColumns(endEventOf(call)) });
    const on = async (query: Record<string, string>) => (await get({ query })).statusCode;

    expect(await on({ startDate: '2026-03-01', endDate: '2026-03-01' })).toBe(200);
    expect(await on({ startDate: '2026-03-02' })).toBe(404);
    expect(await on({ endDate: '2026-02-28' })).toBe(404);
    expect(await on({ endDate: '2026-02-28', timeZoneOffset: '660' })).toBe(200);
  });

  test('belongs to its account and bot', async () => {
    await store();

    const rival = await get({ as: rig.rival, headers: { accountid: 'rival' } });
    expect(rival.statusCode).toBe(404);
    await rig.database.pool.query("update calls set bot_id = 'st-2'");
    expect((await get()).statusCode).toBe(404);
    await rig.database.pool.query("update calls set bot_id = 'st-1'");
    expect((await get()).statusCode).toBe(200);
    expect((await get({}, call.callId)).statusCode).toBe(404);
  });

  test('that was passed on to agents is returned as the contact center published it', async () => {
    await store();
    const body = publishedConversation.parse({
      sessionId,
      accountId: 'acme',
      _id: 'of-the-contact-center',
      conversationType: 'voice',
      status: 'ACTIVE',
    });
    const bot = { botId: 'st-1', accountId: 'acme' };
    await storeConversations(rig.database, [{ bot, body, version: 1 }]);

    expect((await get()).json()).toMatchObject({ _id: 'of-the-contact-center' });
  });
});
