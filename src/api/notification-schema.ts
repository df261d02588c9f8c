// The bodies that notify URLs receive, as the OpenAPI document has them.

import { z } from 'zod';
import { amdEvidence } from '../calls/contract/amd-event.ts';
import { exampleEvent } from '../calls/contract/event-examples.ts';
import { notificationOf } from '../calls/contract/event-table.ts';
import {
  notificationSchema as contract,
  eventNotificationSchema as eventContract,
} from '../calls/contract/notification.ts';

export const notificationSchema = contract
  // Receivers pass over what a later version adds.
  .extend({
    amd: z.looseObject(amdEvidence.shape).optional().describe('what an AMD event rests on'),
  })
  .meta({
    id: 'CallNotification',
    examples: [
      {
        eventId: 'evt-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10-end',
        sequence: 1,
        timestamp: '2026-11-20T09:00:02.120Z',
        callId: 'call-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10',
        sid: 'sid-6f1d2a4e-3c52-4f0e-8d0b-0a8c7f6d1e21',
        botId: 'st-1b2c3d',
        conversationId: '5a8f9f1e-7d5d-4c0c-9a50-2f6a7c1f3b42',
        status: 'Failed',
        reason: '486 Busy Here',
        reasonCode: 'Busy here',
        ringDurationInMS: 0,
        connectDurationInMS: 0,
        callDisconnectTime: '2026-11-20T09:00:02.120Z',
        outcome: 'busy',
        sipStatus: 486,
      },
    ],
  });

export const eventNotificationSchema = eventContract.meta({
  id: 'CallEventNotification',
  description: 'Which `data` goes with which `type` is in /asyncapi.json.',
  examples: [notificationOf(exampleEvent('dtmf', { notificationSequence: 2 }))],
});
