// The documented notification is the one that is sent.

import { describe, expect, test } from 'vitest';
import { notificationSchema } from '../../src/api/notification-schema.ts';
import { notificationOf } from '../../src/calls/contract/event-table.ts';
import { factTeller } from '../support/call-facts.ts';

const teller = factTeller();

describe('the notification of the OpenAPI document', () => {
  test.each([
    ['Answered', teller.answered()],
    ['Call-In-Progress', teller.amd('amd_human_detected')],
    ['completed', teller.completed()],
    ['Failed', teller.failed()],
  ])('%s has the members that are described, and no other', (status, fact) => {
    const body = notificationOf(fact);

    expect(body?.status).toBe(status);
    expect(notificationSchema.strict().parse(body)).toEqual(body);
  });
});
