// sipp, an independent SIP implementation, calls and is called by drachtio-srf on the embedded
// engine. Each scenario ends with sipp's own verdict: exit code 0 means that every message was as
// the scenario requires.

import type Srf from 'drachtio-srf';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { type Sipp, type SippOptions, startSipp as startAnySipp } from '../../support/sipp.ts';
import {
  type Caller,
  type CallResult,
  hangUp,
  type PlacedCall,
  startCaller,
} from './sipp-caller.ts';

const startSipp = (options: SippOptions): Promise<Sipp> =>
  startAnySipp({ ...options, patientCaller: true });

describe.each(['udp', 'tcp'] as const)('sipp as callee over %s', (transport) => {
  let caller: Caller;
  let sipp: Sipp | undefined;

  beforeEach(async () => {
    caller = await startCaller();
  });

  afterEach(async () => {
    await caller[Symbol.asyncDispose]();
    await sipp?.stop();
  });

  async function callee(scenario: string, options: Partial<SippOptions> = {}): Promise<Sipp> {
    sipp = await startSipp({ scenario, transport, ...options });
    return sipp;
  }

  test('answers, and the engine hangs up', async () => {
    const far = await callee('answer-local-bye');

    const dialog = await answered(caller.place(far.uri()).result);
    await hangUp(dialog);

    expect(dialog.remote.sdp).toContain('m=audio');
    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });

  test('answers and hangs up', async () => {
    const far = await callee('answer-remote-bye');

    const dialog = await answered(caller.place(far.uri()).result);
    const bye = await once<Srf.SrfRequest>(dialog, 'destroy');

    expect(bye.method).toBe('BYE');
    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });

  test('rings, then answers; the application does not see the 100 Trying', async () => {
    const far = await callee('ringing-answer');

    const call = caller.place(far.uri());
    const dialog = await answered(call.result);
    await hangUp(dialog);

    expect(statusesOf(call)).toEqual([180]);
    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });

  test('sends early media, then answers', async () => {
    const far = await callee('early-media-answer');

    const call = caller.place(far.uri());
    const dialog = await answered(call.result);
    await hangUp(dialog);

    expect(statusesOf(call)).toEqual([183]);
    expect(call.provisionals[0]?.body).toContain('m=audio');
    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });

  test.each([
    '404 Not Found',
    '480 Temporarily Unavailable',
    '486 Busy Here',
    '503 Service Unavailable',
    '603 Decline',
  ])('refuses with %s and gets its ACK', async (status) => {
    const far = await callee('reject', { keys: { status } });

    const result = await caller.place(far.uri()).result;

    expect(result).toEqual(refusal(status));
    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });

  test('rings, then refuses', async () => {
    const far = await callee('ringing-reject', { keys: { status: '486 Busy Here' } });

    const call = caller.place(far.uri());

    expect(await call.result).toEqual(refusal('486 Busy Here'));
    expect(statusesOf(call)).toEqual([180]);
    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });

  test('redirects, and the engine does not follow', async () => {
    const far = await callee('redirect', { keys: { elsewhere: 'sip:other@127.0.0.1:9' } });

    const result = await caller.place(far.uri()).result;

    expect(result).toEqual(refusal('302 Moved Temporarily'));
    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });

  test('asks for credentials, gets the right ones and answers', async () => {
    const far = await callee('digest-www');

    const auth = { username: 'alice', password: 'wonderland' };
    const dialog = await answered(caller.place(far.uri(), { auth }).result);
    await hangUp(dialog);

    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });

  test('asks for credentials and refuses wrong ones', async () => {
    const far = await callee('digest-www');

    const auth = { username: 'alice', password: 'looking-glass' };
    const result = await caller.place(far.uri(), { auth }).result;

    expect(result).toEqual(refusal('403 Forbidden'));
    expect(await far.exited).toMatchObject({ code: 0 });
  });

  test('is behind a proxy that asks for credentials', async () => {
    const far = await callee('digest-proxy');

    const auth = { username: 'alice', password: 'wonderland' };
    const dialog = await answered(caller.place(far.uri(), { auth }).result);
    await hangUp(dialog);

    expect(await far.exited).toEqual({ code: 0, errors: '' });
    const texts = (await far.messages()).map(({ text }) => text);
    // If sipp stood still, it has received one of them twice.
    expect(new Set(texts.filter((text) => text.startsWith('INVITE '))).size).toBe(2);
  });

  test('rings until the engine cancels', async () => {
    const far = await callee('cancelled');

    const call = caller.place(far.uri());
    await call.ringing;
    await call.cancel();

    expect(await call.result).toEqual(refusal('487 Request Terminated'));
    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });

  test('answers while the CANCEL is on its way, and is acknowledged and hung up', async () => {
    const far = await callee('cancel-race');

    const call = caller.place(far.uri());
    await call.ringing;
    await call.cancel();
    const dialog = await answered(call.result);
    await once(dialog, 'destroy');

    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });

  test('puts the engine on hold and resumes', async () => {
    const far = await callee('hold-resume');

    const dialog = await answered(caller.place(far.uri()).result);
    const offers: string[] = [];
    const resumed = new Promise<void>((resolve) => {
      dialog.on('modify', (request, response) => {
        offers.push(/a=(sendonly|sendrecv)/.exec(request.body)?.[1] ?? 'none');
        response.send(200, { body: dialog.local.sdp });
        if (offers.length === 2) resolve();
      });
    });
    await resumed;
    await eventually(async () => (await sent(far, 'ACK')) === 2, 'both answers are acknowledged');
    await hangUp(dialog);

    expect(offers).toEqual(['sendonly', 'sendrecv']);
    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });

  test('sends digits by INFO', async () => {
    const far = await callee('info-dtmf');

    const dialog = await answered(caller.place(far.uri()).result);
    const digits: string[] = [];
    await new Promise<void>((resolve) => {
      dialog.on('info', (request, response) => {
        digits.push(/Signal=(.)/.exec(request.body)?.[1] ?? '');
        response.send(200);
        if (digits.length === 2) resolve();
      });
    });
    await eventually(async () => (await sent(far, 'INFO')) === 2, 'both digits are sent');
    await hangUp(dialog);

    expect(digits).toEqual(['5', '#']);
    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });
});

describe.each(['udp', 'tcp'] as const)('sipp as caller over %s', (transport) => {
  test('calls, is answered and hangs up', async () => {
    await using caller = await startCaller();
    const ended = caller.answerNext();

    await using far = await startSipp({ scenario: 'call', transport, callTo: caller.address });

    expect(await ended).toBe('BYE');
    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });
});

describe('sipp as callee over udp, with loss', () => {
  test('gets the INVITE again after its first 200 is lost', async () => {
    await using caller = await startCaller();
    await using far = await startSipp({ scenario: 'lost-200' });

    const dialog = await answered(caller.place(far.uri()).result);
    await hangUp(dialog);

    expect(await far.exited).toEqual({ code: 0, errors: '' });
    expect(await received(far, 'INVITE')).toBeGreaterThan(1);
  });

  test('gets an ACK for each retransmitted 200, and the application sees one 200', async () => {
    await using caller = await startCaller();
    await using far = await startSipp({ scenario: 'lost-ack', repeats: false });

    const dialog = await answered(caller.place(far.uri()).result);
    await eventually(async () => (await received(far, 'ACK')) === 3, 'three ACKs came');
    await hangUp(dialog);

    expect(await far.exited).toEqual({ code: 0, errors: '' });
  });
});

describe('sipp under load', () => {
  test.each(['udp', 'tcp'] as const)(
    'takes two hundred calls over %s, twenty at once',
    async (transport) => {
      await using caller = await startCaller();
      await using far = await startSipp({
        scenario: 'load',
        transport,
        calls: 200,
      });

      const callers = Array.from({ length: 20 }, async () => {
        for (let call = 0; call < 10; call += 1) {
          const dialog = await answered(caller.place(far.uri()).result);
          await hangUp(dialog);
        }
      });
      await Promise.all(callers);

      expect(await far.exited).toEqual({ code: 0, errors: '' });
    },
  );

  test('hangs up by itself if the caller does not', async () => {
    await using caller = await startCaller();
    await using far = await startSipp({ scenario: 'load', calls: 5, hangUpAfterMs: 100 });

    const calls = Array.from({ length: 5 }, async () => {
      const dialog = await answered(caller.place(far.uri()).result);
      await once(dialog, 'destroy');
    });
    await Promise.all(calls);

    expect(await far.exited).toMatchObject({ code: 0 });
  });
});

async function answered(result: Promise<CallResult>): Promise<Srf.Dialog> {
  const settled = await result;
  if (settled.kind !== 'answered') throw new Error(`The call ended with ${settled.status}.`);
  return settled.dialog;
}

/**
 * Returns each status once. A side that stood still for half a second gets the INVITE again and
 * repeats its response.
 */
function statusesOf({ provisionals }: PlacedCall): readonly number[] {
  return [...new Set(provisionals.map(({ status }) => status))];
}

function refusal(statusLine: string): CallResult {
  return { kind: 'refused', status: Number(statusLine.slice(0, 3)), reason: statusLine.slice(4) };
}

function once<Event>(dialog: Srf.Dialog, event: string): Promise<Event> {
  return new Promise((resolve) => {
    dialog.once(event, (message: unknown) => resolve(message as Event));
  });
}

async function received(far: Sipp, method: string): Promise<number> {
  const messages = await far.messages();
  return messages.filter(
    ({ direction, text }) => direction === 'received' && text.startsWith(`${method} `),
  ).length;
}

/** Counts messages without retransmissions. */
async function sent(far: Sipp, method: string): Promise<number> {
  const messages = await far.messages();
  const texts = messages.flatMap(({ direction, text }) =>
    direction === 'sent' && text.startsWith(`${method} `) ? [text] : [],
  );
  return new Set(texts).size;
}
