// The notes of a call: in order, bounded, and without secrets.

import { describe, expect, test } from 'vitest';
import { CallNotes } from '../../src/calls/capture/call-notes.ts';

describe('notes of a call', () => {
  test('record when a mark was set and when it returned, even if two marks share a name', () => {
    const notes = new CallNotes();
    notes.add({ kind: 'mark', at: 1, name: 'end' });
    notes.add({ kind: 'mark', at: 2, name: 'end' });
    notes.returnMark('end', 3);
    notes.returnMark('of another', 4);
    notes.returnMark('end', 5);

    expect(notes.view().notes).toEqual([
      { kind: 'mark', at: 1, name: 'end', returnedAt: 3 },
      { kind: 'mark', at: 2, name: 'end', returnedAt: 5 },
    ]);
  });

  test('stay below 64 KiB with those of the other thread, and keep the beginning and the end', () => {
    const notes = new CallNotes();
    for (let at = 0; at < 5_000; at += 1) notes.add({ kind: 'mark', at, name: '€'.repeat(3_000) });
    const { notes: kept, left } = notes.view();

    expect(Buffer.byteLength(JSON.stringify(kept))).toBeLessThan(32_768);
    expect([kept[0]?.at, kept.at(-1)?.at]).toEqual([0, 4_999]);
    expect(kept.length + left).toBe(5_000);
  });
});
