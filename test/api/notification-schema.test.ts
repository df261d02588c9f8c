// The notifications that are sent match their documentation.

import { describe, expect, test } from 'vitest';
import { eventNotificationSchema, notificationSchema } from '../../src/api/openapi.ts';
import { notificationOf } from '../../src/calls/contract/event-table.ts';
import { selectedEventTypes } from '../../src/calls/contract/notify-events.ts';
import { eventBuilder } from '../support/call-events.ts';

const builder = eventBuilder();

describe('the notification of the OpenAPI document', () => {
  test.each([
    ['Answered', builder.answered()],
    ['Call-In-Progress', builder.amd('amd_human_detected')],
    ['completed', builder.completed()],
    ['Failed', builder.failed()],
  ])('describes exactly the members of %s', (status, event) => {
    const body = notificationOf(event);

    expect(body?.status).toBe(status);
    expect(notificationSchema.strict().parse(body)).toEqual(body);
  });

  test.each(selectedEventTypes)(
    'describes exactly the members of a notification of the event %s',
    (type) => {
      const body = notificationOf(builder.selected(type));

      expect(eventNotificationSchema.strict().parse(body)).toEqual(body);
      expect(notificationSchema.safeParse(body).success).toBe(false);
    },
  );
});
