// Records calls that use only what is in the specification: each event and notification body that
// leaves the process, byte for byte.

import { notificationOf } from '../../src/calls/contract/event-table.ts';
import { scriptCall } from './scripted-call.ts';

type Call = ReturnType<typeof scriptCall>;

const ways: readonly ((call: Call) => Promise<void> | void)[] = [
  (call) => call.fail({ sipStatus: 486, reason: 'Busy Here' }),
  async (call) => {
    call.ring();
    await call.answer();
    call.amd('amd_human_detected', { reason: 'short-greeting', words: 1, confidence: 0.93 });
    call.amd('amd_stopped', { reason: 'human' });
    call.advance(4_321);
    call.remoteBye();
  },
  async (call) => {
    call.ring(183, 'sdp');
    call.advance(1_500);
    await call.answer();
    call.amd('amd_machine_detected', { reason: 'long-greeting', words: 12, confidence: 0.97 });
    call.amd('amd_machine_stopped_speaking', { reason: 'tone', pauseMs: 40 });
    call.amd('amd_tone_detected', { reason: 'beep', tone: { hz: 1_000, ms: 400 } });
    call.amd('amd_stopped', { reason: 'tone' });
    call.actor.send({ type: 'command.end', command: { by: 'application' } });
  },
  async (call) => {
    await call.answer();
    call.leg().observe({ kind: 'dtmf', digit: '5', durationMs: 120 });
    call.amd('amd_error', { reason: 'media-failed' });
    call.amd('amd_stopped', { reason: 'media-failed' });
    call.media().observe({ kind: 'failed', reason: 'media worker died' });
  },
];

export async function recordCalls(): Promise<string> {
  const lines: string[] = [];
  for (const [index, way] of ways.entries()) {
    for (const machineDetection of ['detect', 'disconnect', 'disabled'] as const) {
      const call = scriptCall({ request: { machineDetection } });
      await call.sent();
      await way(call);
      await call.settle();
      call.advance(10_000_000);
      await call.settle();
      for (const event of call.stored) {
        const body = notificationOf(event);
        lines.push(JSON.stringify({ way: index, machineDetection, event, body }));
      }
    }
  }
  return `${lines.join('\n')}\n`;
}
