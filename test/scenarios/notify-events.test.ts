// An application that uses only notifications and HTTP plays a prompt, receives the key, and
// connects the person. An application that selects no events gets the same notifications as before.

import { readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { type PublishedEvent, startLaptop } from '../support/laptop.ts';
import { forSuite } from '../support/opened.ts';
import { isTerminal, type Notification, signatureIsRight } from '../support/receiver.ts';

const numbers = {
  personPressesOne: 'tel:+12025550107',
  agent: 'tel:+12025550105',
  personHangsUp: 'tel:+12025550101',
  noAnswer: 'tel:+12025550121',
} as const;

const prompt = new URL('../../src/embedded/sandbox/audio/press-one.wav', import.meta.url);

const laptop = forSuite(startLaptop);
beforeAll(async () => {
  const { runtime, dialer } = laptop.gateway;
  const response = await fetch(`${runtime.httpUrl}/api/public/sounds/menu`, {
    method: 'PUT',
    headers: { auth: dialer.token, 'content-type': 'audio/wav' },
    body: new Uint8Array(await readFile(prompt)),
  });
  expect(response.status).toBe(200);
});

const hasStatus = ({ type }: PublishedEvent) =>
  ['answered', 'amd', 'completed', 'failed'].includes(type);

/**
 * Waits for the end of the call on NATS. The receiver gets its notification over another
 * connection, so either may come first.
 */
async function publishedOf(callId: string): Promise<readonly PublishedEvent[]> {
  const eventsOfCall = () => laptop.events.filter((event) => event.callId === callId);
  await eventually(
    () => eventsOfCall().some(({ type }) => type === 'completed' || type === 'failed'),
    'the end of the call is published',
  );
  return eventsOfCall();
}

function expectSigned(callId: string): void {
  const secret = laptop.gateway.dialer.app.webhookSecret;
  const received = laptop.receiver.received.filter(({ body }) => body.callId === callId);
  for (const each of received) expect(signatureIsRight(each, secret)).toBe(true);
}

/** Does what a customer's application does at each notification of the call with the menu. */
async function react(menuCallId: string, notification: Notification): Promise<void> {
  const { dialer } = laptop.gateway;
  const { callId, status, event } = notification;
  if (callId !== menuCallId) return;
  const path = `/api/public/bot/${dialer.botId}/calls/${callId}/commands`;
  const selectedEvent = event as PublishedEvent | undefined;
  if (status === 'Answered') {
    await dialer.request('POST', path, { command: 'play', sound: 'sound:menu', id: 'menu' });
  } else if (selectedEvent?.type === 'dtmf' && selectedEvent.data['digit'] === '1') {
    await dialer.request('POST', path, { command: 'transfer', to: numbers.agent, id: 'agent' });
  }
}

describe('notifications', { concurrent: true, timeout: 120_000 }, () => {
  test('of selected events are enough to offer a menu and connect a person', async () => {
    const selected = ['ringing', 'dtmf', 'playback-*', 'transfer-*'];
    const reactions: Promise<void>[] = [];
    const placed = laptop.dial(numbers.personPressesOne, {
      machineDetection: 'disabled',
      notifyEvents: selected,
    });
    laptop.receiver.onReceived(({ body }) => {
      reactions.push(placed.then((call) => react(call.callId, body)));
    });
    const { callId, sid, conversationId } = await placed;
    const all = await laptop.receiver.untilEnded(callId, 60_000);
    await Promise.all(reactions);
    const published = await publishedOf(callId);

    expect(all.map(({ sequence }) => sequence)).toEqual(all.map((_, index) => index + 1));
    expect(all.map(isTerminal)).toEqual(all.map((_, index) => index === all.length - 1));
    const types = all.flatMap(({ event }) => (event as PublishedEvent | undefined)?.type ?? []);
    expect(types).toEqual([
      ...['ringing', 'playback-started', 'playback-finished', 'dtmf'],
      ...['transfer-ringing', 'transfer-answered', 'transfer-completed'],
    ]);
    expect(all.at(-1)).toMatchObject({ status: 'completed', transfer: { outcome: 'completed' } });
    // Each notification has the content, the order and the id of its event on NATS.
    const notified = published.filter((event) => hasStatus(event) || types.includes(event.type));
    expect(all.map(({ eventId }) => eventId)).toEqual(notified.map(({ id }) => id));
    expect(notified.map(({ data }) => data['notificationSequence'])).toEqual(
      all.map(({ sequence }) => sequence),
    );
    for (const [index, body] of all.entries()) {
      const event = notified[index] as PublishedEvent & { readonly time: string };
      if (body.status !== 'Event') continue;
      expect(body).toEqual({
        ...{ status: 'Event', conversationId, eventId: event.id, sequence: index + 1 },
        event: expect.objectContaining({ ...event, sid, conversationId }) as object,
        ...{ timestamp: event.time, callId, sid, botId: 'bot-1' },
      });
    }
    expectSigned(callId);
  });

  test('of every event begin at the acceptance and end with the call, even if nobody answers', async () => {
    const { callId } = await laptop.dial(numbers.noAnswer, {
      ...{ notifyEvents: ['*'], timeoutInMs: 2_000, machineDetection: 'disabled' },
    });
    const all = await laptop.receiver.untilEnded(callId);

    const notified = all.map(({ status, event }) =>
      status === 'Event' ? (event as PublishedEvent).type : status,
    );
    expect(notified).toEqual(['queued', 'dialing', 'ringing', 'Failed']);
    expect(all.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4]);
    expect((await publishedOf(callId)).map(({ id }) => id)).toEqual(
      all.map(({ eventId }) => eventId),
    );
    expectSigned(callId);
  });

  test('of a call that selects no events stay as they were', async () => {
    const { callId } = await laptop.dial(numbers.personHangsUp, {
      machineDetection: 'disabled',
    });
    const all = await laptop.receiver.untilEnded(callId);
    const published = await publishedOf(callId);

    const [first, last] = [
      ['status', 'conversationId', 'reason', 'reasonCode', 'callConnectTime'],
      ['eventId', 'sequence', 'timestamp', 'callId', 'sid', 'botId'],
    ];
    const durations = ['ringDurationInMS', 'connectDurationInMS'];
    const end = ['callDuration', 'duration', 'callDurationMs', 'callDisconnectTime', 'sessionId'];
    expect(all.map((body) => Object.keys(body))).toEqual([
      [...first, ...durations, ...last],
      [...first, ...durations, ...end, 'outcome', 'quality', 'cause', ...last],
    ]);
    expect(all.map(({ status, sequence }) => [status, sequence])).toEqual([
      ['Answered', 1],
      ['completed', 2],
    ]);
    for (const event of published) {
      expect('notificationSequence' in event.data).toBe(hasStatus(event));
    }
    expectSigned(callId);
  });

  test('of an unknown event are refused with the names of the known events', async () => {
    const { dialer } = laptop.gateway;
    const path = `/api/1.1/public/bot/${dialer.botId}/V2/contactcenter/dialout`;
    const body = { target: numbers.noAnswer, caller: '+12025550199', botId: dialer.botId };
    const response = await dialer.request('POST', path, {
      ...{ ...body, notifyurl: laptop.receiver.url, notifyEvents: ['rings'] },
    });

    expect(response).toMatchObject({
      status: 400,
      body: { errors: [{ path: 'notifyEvents.0', message: expect.stringContaining('ringing') }] },
    });
  });
});
