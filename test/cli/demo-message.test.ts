// Tests how the demo judges the message that its mailbox recorded.

import { describe, expect, test } from 'vitest';
import { leftMessageIn, problemsOfMessage } from '../../src/cli/demo/message.ts';
import type { SandboxCallSummary } from '../../src/embedded/sandbox/sandbox-call.ts';
import { readMulawBytes, recordingUrl } from '../../src/embedded/sandbox/wav-file.ts';

const message = readMulawBytes(recordingUrl('bot-message'));
const silence = (ms: number) => new Uint8Array(ms * 8).fill(0xff);

function mailbox(...parts: readonly Uint8Array[]): SandboxCallSummary {
  const recorded = Uint8Array.from(Buffer.concat(parts));
  return { name: 'voicemail', end: 'caller-hung-up', packetsSent: 1, packetsReceived: 1, recorded };
}

describe('a recorded message', () => {
  test('is found where it begins', () => {
    const left = leftMessageIn(mailbox(silence(120), message, silence(200)));

    expect(left).toMatchObject({ startsAfterMs: 120, correlation: expect.closeTo(1, 3) });
    expect(problemsOfMessage(left)).toEqual([]);
  });

  test.each([
    ['begins late', message.subarray(8_000)],
    ['ends early', message.subarray(0, 12_000)],
  ])('that %s is reported', (_name, part) => {
    const left = leftMessageIn(mailbox(silence(120), part, silence(2_500)));

    expect(problemsOfMessage(left)).toEqual(['the mailbox has not recorded the whole message']);
  });

  test('that contains no message is reported', () => {
    expect(problemsOfMessage(leftMessageIn(mailbox(silence(2_000))))).not.toEqual([]);
    const { recorded: _recorded, ...other } = mailbox();
    expect(leftMessageIn(other)).toBeUndefined();
    expect(problemsOfMessage(undefined)).toEqual(['the mailbox recorded nothing']);
  });
});
