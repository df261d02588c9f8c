// What the API says of sounds.

import { z } from 'zod';
import { soundName } from '../calls/contract/sound-reference.ts';
import { timestamp } from '../calls/contract/timestamp.ts';

const soundExample = {
  name: 'spring-offer',
  durationMs: 12_480,
  bytes: 99_840,
  createdAt: '2026-11-20T09:00:00.000Z',
  updatedAt: '2026-11-20T09:00:00.000Z',
};

export const soundParams = z.object({
  soundName: soundName.describe(
    'letters, digits, "_" and "-"; requests name the sound `sound:<name>`',
  ),
});

/** The bytes as they came; what they have to be is said where they are read. */
export const wavFile = z.unknown().meta({
  type: 'string',
  format: 'binary',
  description:
    'a WAV file: PCM of 8 to 32 bits, float, µ-law or A-law, 8 to 48 kHz, one or two channels, which are mixed; 10 MiB and 10 minutes at most',
});

export const soundSchema = z
  .object({
    name: z.string(),
    durationMs: z.number(),
    bytes: z.number().int().describe('as it is stored: µ-law of 8 kHz'),
    createdAt: timestamp,
    updatedAt: timestamp.describe('of the last upload; calls dialled since then play that one'),
  })
  .meta({ id: 'Sound', examples: [soundExample] });

export const soundsSchema = z
  .object({ sounds: z.array(soundSchema).describe('by name, 1,000 at most') })
  .meta({ id: 'Sounds', examples: [{ sounds: [soundExample] }] });

export const soundRemovalSchema = z
  .object({ name: z.string(), removed: z.literal(true) })
  .meta({ id: 'SoundRemoval', examples: [{ name: 'spring-offer', removed: true }] });
