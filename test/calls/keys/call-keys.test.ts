// What a call does with the keys that it presses: it has them pressed by command, emits their
// event, and waits for them at its end.

import { expect, test } from 'vitest';
import { scriptCall } from '../../support/scripted-call.ts';

const keys = { commandId: 'menu', digits: '12', durationMs: 100 };

async function answeredCall() {
  const call = scriptCall({ request: { machineDetection: 'disabled' } });
  await call.sent();
  await call.answer();
  await call.settle();
  return call;
}

test('keys are pressed by command, and emitted as an event once they were pressed', async () => {
  const call = await answeredCall();
  call.actor.send({ type: 'command.media', command: { kind: 'press', keys } });
  expect(call.log).toContain('press menu');
  call
    .media()
    .observe({ kind: 'keysSent', report: { commandId: 'menu', digits: '12', complete: true } });
  call.remoteBye();
  await call.settle();

  expect(call.types()).toEqual(['dialing', 'answered', 'dtmf-sent', 'completed']);
  expect(call.stored.at(-2)?.data).toEqual({ commandId: 'menu', digits: '12', complete: true });
});

test('a call that ends meanwhile waits for the report of its keys', async () => {
  const call = await answeredCall();
  call.actor.send({ type: 'command.media', command: { kind: 'press', keys } });
  call.remoteBye();
  await call.settle();
  expect(call.log).toContain('stopPlayback');
  expect(call.endings()).toEqual([]);
  call
    .media()
    .observe({ kind: 'keysSent', report: { commandId: 'menu', digits: '1', complete: false } });
  await call.settle();

  expect(call.types().slice(-2)).toEqual(['dtmf-sent', 'completed']);
});

test('the wait for the report of the keys is bounded', async () => {
  const call = await answeredCall();
  call.actor.send({ type: 'command.media', command: { kind: 'press', keys } });
  call.remoteBye();
  await call.settle();
  call.advance(1_000);
  await call.settle();

  expect(call.types().slice(-2)).toEqual(['answered', 'completed']);
});
