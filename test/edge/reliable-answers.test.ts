// A 200 without SDP. The answer may have come in a provisional response of the same dialog (RFC
// 3262, section 5).

import { describe, expect, onTestFinished, test } from 'vitest';
import { answer, openTrunkWorld } from '../sip/trunk-world.ts';
import type { RawCallee, RawMessage } from '../support/raw-callee.ts';

const reliable = (rseq: number) => ['Require: 100rel', `RSeq: ${rseq}`];
const otherAnswer = answer.replace('30000', '30002');

async function invited() {
  const world = await openTrunkWorld({ gateways: 1 });
  onTestFinished(() => world[Symbol.asyncDispose]());
  const [callee] = world.gateways;
  if (callee === undefined) throw new Error('no gateway');
  const { observer } = world.place();
  const invite = await callee.take('INVITE');
  return { callee, invite, observer };
}

async function answerReliably(
  callee: RawCallee,
  invite: RawMessage,
  { tag = 'callee', body = answer, rseq = 1 } = {},
): Promise<void> {
  callee.reply(invite, 183, 'Session Progress', { tag, body, headers: reliable(rseq) });
  callee.reply(await callee.take('PRACK'), 200, 'OK', { tag });
}

describe('a 200 without SDP', () => {
  test('confirms the answer of a reliable 183', async () => {
    const { callee, invite, observer } = await invited();
    await answerReliably(callee, invite);

    callee.reply(invite, 200, 'OK');

    expect((await observer.until('answered')).sdp).toBe(answer);
  });

  test('does not confirm the SDP of an unreliable 183 that followed the reliable one', async () => {
    const { callee, invite, observer } = await invited();
    await answerReliably(callee, invite);
    callee.reply(invite, 183, 'Session Progress', { body: otherAnswer });

    callee.reply(invite, 200, 'OK');

    expect((await observer.until('answered')).sdp).toBe(answer);
  });

  test('confirms what an UPDATE changed since the answer', async () => {
    const { callee, invite, observer } = await invited();
    await answerReliably(callee, invite);
    callee.request(invite, 'UPDATE', { body: otherAnswer });
    await callee.takeResponse(200);

    callee.reply(invite, 200, 'OK');

    expect((await observer.until('answered')).sdp).toBe(otherAnswer);
  });

  test('confirms the answer of an unreliable 183, because some carriers send no other', async () => {
    const { callee, invite, observer } = await invited();
    callee.reply(invite, 183, 'Session Progress', { body: answer });

    callee.reply(invite, 200, 'OK');

    expect((await observer.until('answered')).sdp).toBe(answer);
  });

  test('fails the call if only another branch of the fork has answered', async () => {
    const { callee, invite, observer } = await invited();
    callee.reply(invite, 183, 'Session Progress', { tag: 'other', body: answer });

    callee.reply(invite, 200, 'OK', { tag: 'callee' });

    expect((await observer.until('failed')).failure).toMatchObject({
      kind: 'unusable',
      reason: 'OK without SDP',
    });
  });

  test('confirms the answer of its own branch, whatever another branch sent since', async () => {
    const { callee, invite, observer } = await invited();
    callee.reply(invite, 183, 'Session Progress', { tag: 'callee', body: answer });
    callee.reply(invite, 183, 'Session Progress', { tag: 'other', body: otherAnswer });

    callee.reply(invite, 200, 'OK', { tag: 'callee' });

    expect((await observer.until('answered')).sdp).toBe(answer);
  });

  test('fails the call if there was no answer at all', async () => {
    const { callee, invite, observer } = await invited();
    callee.reply(invite, 180, 'Ringing');

    callee.reply(invite, 200, 'OK');

    expect((await observer.until('failed')).failure.kind).toBe('unusable');
  });
});
