// Decides which of sipp's complaints count as faults. We don't blame anyone for a message that was
// repeated because a process stood still. Every other complaint counts.

import { describe, expect, test } from 'vitest';
import { parseMessages, withoutRepetitions } from './support/sipp-log.ts';

const head = (method: string) => `Call-ID: one@127.0.0.1\nCSeq: 1 ${method}\nContent-Length: 0\n`;
const request = (method: string) => `${method} sip:callee@127.0.0.1 SIP/2.0\n${head(method)}`;
const answer = (method: string) => `SIP/2.0 200 OK\n${head(method)}`;

type Logged = readonly ['sent' | 'received', atMs: number, text: string];

function log(...messages: readonly Logged[]) {
  const entries = messages.map(([direction, atMs, text]) => {
    const at = new Date(Date.UTC(2026, 0, 1) + atMs).toISOString();
    const bytes = direction === 'sent' ? '(12 bytes):' : '[12] bytes :';
    const ruler = `${'-'.repeat(47)} ${at.slice(0, 10)} ${at.slice(11, 23)}000`;
    return `${ruler}\nUDP message ${direction} ${bytes}\n\n${text}\n`;
  });
  return parseMessages(entries.join(''));
}

const complaint = (text: string) =>
  `2026-01-01\t00:00:01.0\t1.0: Continuing call on unexpected message for Call-Id 'one@127.0.0.1': while expecting 'BYE' (index 4), received '${text}'.\n`;

const [bye, ok, ack, invite] = [request('BYE'), answer('BYE'), request('ACK'), answer('INVITE')];

describe('a complaint about a repeated request', () => {
  const complaints = complaint(bye);

  test('is dropped if sipp stood still and then read both requests together', () => {
    const messages = log(['received', 0, bye], ['sent', 1, ok], ['received', 2, bye]);

    expect(withoutRepetitions(complaints, messages, true)).toBe('');
  });

  test('is dropped if the caller repeated the request once and may have stood still', () => {
    const messages = log(['received', 0, bye], ['sent', 1, ok], ['received', 501, bye]);

    expect(withoutRepetitions(complaints, messages)).toBe('');
    expect(withoutRepetitions(complaints, messages, true)).toBe(complaints);
  });

  test('is kept if the request was repeated twice after its answer', () => {
    const late: Logged[] = [501, 1_501].map((atMs) => ['received', atMs, bye]);
    const messages = log(['received', 0, bye], ['sent', 1, ok], ...late);

    expect(withoutRepetitions(complaints, messages)).toBe(complaints);
  });

  test('is dropped if the request was repeated before its answer', () => {
    const early: Logged[] = [0, 500, 1_500].map((atMs) => ['received', atMs, bye]);
    const messages = log(...early, ['sent', 1_600, ok]);

    expect(withoutRepetitions(complaints, messages, true)).toBe('');
  });
});

test('judges each complaint separately if sipp prints several on one line', () => {
  const dead = (text: string) =>
    `2026-01-01\t00:00:01.0\t1.0: Dead call one@127.0.0.1 (successful), received '${text}'`;
  const messages = log(['received', 0, bye], ['sent', 1, ok], ['received', 2, bye]);
  const printed = `The following events occurred:\n${dead(bye)}${dead(bye)}${dead(ack)}`;

  expect(withoutRepetitions(printed, messages, true)).toBe(dead(ack));
});

test('keeps a complaint about an unexpected request that arrived only once', () => {
  const messages = log(['received', 0, bye]);

  expect(withoutRepetitions(complaint(bye), messages)).toBe(complaint(bye));
});

describe('a complaint about a repeated ACK', () => {
  const acks: Logged[] = [2, 600].map((atMs) => ['received', atMs, ack]);

  test('is dropped if the answer was sent again', () => {
    const messages = log(['sent', 0, invite], ['sent', 500, invite], ...acks);

    expect(withoutRepetitions(complaint(ack), messages)).toBe('');
  });

  test('is kept if the answer was sent once', () => {
    const messages = log(['sent', 0, invite], ...acks);

    expect(withoutRepetitions(complaint(ack), messages)).toBe(complaint(ack));
  });

  test('is kept if it is the first ACK', () => {
    const messages = log(['sent', 0, invite], ['received', 1, ack]);

    expect(withoutRepetitions(complaint(ack), messages)).toBe(complaint(ack));
  });
});
