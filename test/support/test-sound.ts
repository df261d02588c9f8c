// Sounds with the members that a loader gives them.

import { createHash } from 'node:crypto';
import type { Sound } from '../../src/calls/playback/playback.ts';

export function testSound(name: string, mulaw: Uint8Array): Sound {
  const sha256 = createHash('sha256').update(mulaw).digest('hex');
  return { name, mulaw, sha256, durationMs: mulaw.length / 8 };
}
