// What a dialer application can read about a call afterwards: the session that the last
// notification names.

import { expect, test } from 'vitest';
import { coversOnAny } from '../specification/covers.ts';
import { eventually } from '../support/eventually.ts';
import { startLaptop } from '../support/laptop.ts';
import { forSuite } from '../support/opened.ts';

const personHangsUp = '+12025550101';

const laptop = forSuite(startLaptop);

async function conversation(sessionId: unknown, days?: object) {
  const { dialer } = laptop.gateway;
  return await dialer.request(
    'GET',
    `/contactcenter/api/v1/public/${dialer.botId}/conversations/sessions/${String(sessionId)}`,
    days,
    { accept: 'application/json', accountid: 'dev' },
  );
}

test('`completed` names the session of the call', { timeout: 120_000 }, async () => {
  coversOnAny('notifications.completed.body.sessionId');
  const { callId, conversationId } = await laptop.dial(`tel:${personHangsUp}`);
  const all = await laptop.receiver.untilEnded(callId, 40_000);
  const answered = all[0]?.['callConnectTime'];
  const completed = all.at(-1);
  const disconnected = completed?.['callDisconnectTime'];
  const today = String(answered).slice(0, 10);

  const session = await conversation(completed?.['sessionId'], { startDate: today });

  expect(session.status).toBe(200);
  expect(session.body).toMatchObject({
    _id: conversationId,
    conversationType: 'voice',
    status: 'CLOSED',
    participants: [
      {
        agentId: 'bot-1',
        queueId: 'sandbox',
        status: 'INACTIVE',
        startTimeStamp: answered,
        endTimeStamp: disconnected,
      },
      {
        name: personHangsUp,
        status: 'INACTIVE',
        startTimeStamp: answered,
        endTimeStamp: disconnected,
        endedChat: true,
      },
    ],
    dispositions: { status: 'completed', metaStatus: 'USER_CLOSED' },
    userInfo: { phoneNumber: personHangsUp },
  });
  expect((await conversation(completed?.['sessionId'], { endDate: '2020-01-01' })).status).toBe(
    404,
  );
});

test('the app `dev` owns what is published for an unregistered bot', async () => {
  const session = {
    _id: 'cv-1',
    sessionId: 'livechat/1',
    accountId: 'dev',
    conversationType: 'livechat',
    status: 'CLOSED',
  };
  laptop.nats.publish(`offhook.ingest.conversations.bot-1`, JSON.stringify(session));

  await eventually(
    async () => (await conversation(encodeURIComponent(session.sessionId))).status === 200,
    'the published session can be read',
  );
});
