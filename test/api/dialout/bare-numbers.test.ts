// Numbers without `+` in requests and transfers. The number that is dialled is the one that the
// answer returns, and that the limits of the app apply to.

import { describe, expect, test } from 'vitest';
import { readCommand } from '../../../src/calls/contract/command.ts';
import type { NumberReading } from '../../../src/calls/target/number-reading.ts';
import type { CallDetails } from '../../../src/interactions/call-queries.ts';
import { app, dial, minimal, type ProblemDocument, startHarness, token } from '../support.ts';

async function withApp(reading: NumberReading, allowedPrefixes?: readonly string[]) {
  const limits = allowedPrefixes === undefined ? {} : { limits: { allowedPrefixes } };
  const asked: unknown[] = [];
  const harness = await startHarness({
    apps: {
      find: async () => app({ ...reading, ...limits }),
      findByApiKey: async () => undefined,
    },
    commands: {
      run: async (_callId, command) => {
        asked.push(command);
        return { ok: true, state: 'answered' };
      },
    },
  });
  harness.call = { state: 'answered' } as unknown as CallDetails;
  const command = async (body: object) =>
    await harness.server.inject({
      method: 'POST',
      url: '/api/public/bot/st-1/calls/call-0d9c4c52-9a63-4a7e-a7ab-0f1b5a9f7f10/commands',
      headers: { auth: await token() },
      payload: { id: 'one', ...body },
    });
  return Object.assign(harness, { asked, command });
}

const key = { 'idempotency-key': 'order-1' };
const national = { ...minimal, target: 'tel:2025550110' };
const dialled = { kind: 'tel', number: '12025550110' };

describe('a number without + in a dial-out request', () => {
  test('is a 400 that names both settings where nobody says how to read it', async () => {
    await using harness = await withApp({});
    const response = await dial(harness, { ...national, bridge: { to: 'tel:2025550105' } });

    expect(response.statusCode).toBe(400);
    const { errors } = response.json<ProblemDocument>();
    expect(errors?.map(({ path }) => path)).toEqual(['target', 'bridge.to']);
    for (const { message } of errors ?? []) {
      expect(message).toContain('defaultCountry');
      expect(message).toContain('bareNumbers');
    }
  });

  test.each<[string, NumberReading, object, string]>([
    ['its request', {}, { defaultCountry: 'US' }, '12025550110'],
    ['its app', { defaultCountry: 'US' }, {}, '12025550110'],
    ['its request (another setting)', {}, { bareNumbers: 'international' }, '2025550110'],
    ['its app (another setting)', { bareNumbers: 'international' }, {}, '2025550110'],
    [
      'its request instead of its app',
      { bareNumbers: 'international' },
      { defaultCountry: 'US' },
      '12025550110',
    ],
    [
      'its request instead of its app (settings exchanged)',
      { defaultCountry: 'US' },
      { bareNumbers: 'international' },
      '2025550110',
    ],
  ])('is read by the setting of %s, and returned', async (_who, reading, more, number) => {
    await using harness = await withApp(reading);
    const bridge = { to: 'tel:2025550105', on: 'answered' };
    expect((await dial(harness, { ...national, bridge, ...more })).statusCode).toBe(200);

    const to = number.replace(/10$/, '05');
    expect(harness.submissions).toMatchObject([
      {
        request: { target: { kind: 'tel', number }, bridge: { to: { kind: 'tel', number: to } } },
        remarks: { target: `tel:+${number}`, bridge: { to: `tel:+${to}` } },
      },
    ]);
  });

  test('is returned also if it is valid with a +, but not if it was written with one', async () => {
    await using harness = await withApp({});
    await dial(harness, { ...minimal, target: 'tel:1-202-555-0110' });
    await dial(harness, { ...minimal, target: 'tel:+1-202-555-0110' });

    expect(harness.submissions.map(({ request }) => request.target)).toEqual([dialled, dialled]);
    expect(harness.submissions.map(({ remarks }) => remarks)).toEqual([
      { target: 'tel:+12025550110' },
      undefined,
    ]);
  });

  test('makes the same request for an idempotency key as with its +, whichever setting reads it', async () => {
    await using harness = await withApp({ defaultCountry: 'US' });
    await dial(harness, national, key);
    await dial(harness, { ...national, defaultCountry: 'CA' }, key);
    await dial(harness, { ...minimal, target: 'tel:+12025550110' }, key);

    const hashes = harness.submissions.map(({ idempotency }) => idempotency?.requestHash);
    expect(hashes).toHaveLength(3);
    expect(new Set(hashes).size).toBe(1);
  });

  test('is refused with a message about the setting that cannot read it', async () => {
    await using harness = await withApp({ defaultCountry: 'US' });
    const response = await dial(harness, { ...minimal, target: 'tel:911' });

    expect(response.json<ProblemDocument>().errors).toEqual([
      {
        path: 'target',
        message: 'is not a number in US (defaultCountry); write it with + and the country code',
      },
    ]);
  });

  test('is returned in the answer as the intake returns it', async () => {
    await using harness = await withApp({});
    const answer = { sid: 's', callId: 'c', conversationId: 'v' };
    const remarks = { target: 'tel:+12025550110', ignored: ['language'] };
    harness.result = { kind: 'replayed', answer: { ...answer, ...remarks } };
    const response = await dial(harness, minimal, key);

    expect(response.json()).toEqual({ ...answer, ...remarks });
  });
});

describe('a number without + in a transfer', () => {
  const transfer = { command: 'transfer', to: 'tel:2025550105' };

  test('is a 400 that names both settings where nobody says how to read it', async () => {
    await using harness = await withApp({});
    const response = await harness.command(transfer);

    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({
      errors: [{ path: 'to', message: expect.stringMatching(/defaultCountry.*bareNumbers/) }],
    });
    expect(harness.asked).toEqual([]);
  });

  test.each<[NumberReading, object]>([
    [{ defaultCountry: 'US' }, {}],
    [{}, { defaultCountry: 'US' }],
    [{ bareNumbers: 'international' }, { defaultCountry: 'US' }],
  ])('is read by the setting of the app, or of the command: %j %j', async (reading, more) => {
    await using harness = await withApp(reading);
    const response = await harness.command({ ...transfer, ...more });

    expect(response.statusCode, response.body).toBe(202);
    expect(response.json()).toEqual({
      ok: true,
      commandId: 'one',
      state: 'answered',
      to: 'tel:+12025550105',
    });
    expect(harness.asked).toMatchObject([{ to: 'tel:+12025550105' }]);
  });

  test('is checked against the limits of the app as the number that is dialled', async () => {
    await using harness = await withApp({ defaultCountry: 'US' }, ['49']);

    expect((await harness.command(transfer)).statusCode).toBe(403);
    expect((await harness.command({ ...transfer, to: 'tel:+4930901820' })).statusCode).toBe(202);
  });

  test('is not returned if it was written with a +', async () => {
    await using harness = await withApp({ defaultCountry: 'US' });
    const response = await harness.command({ ...transfer, to: 'tel:+12025550105' });

    expect(response.json()).toEqual({ ok: true, commandId: 'one', state: 'answered' });
  });

  test('accepts only one of the two settings', () => {
    const both = { ...transfer, defaultCountry: 'US', bareNumbers: 'international' };

    expect(readCommand(both)).toMatchObject({ ok: false, errors: [{ path: 'bareNumbers' }] });
  });
});
