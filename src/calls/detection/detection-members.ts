// The member of the dial-out request that says how soon detection may call somebody a person.

import { z } from 'zod';

export const detectionPaces = ['fast', 'careful'] as const;
export type DetectionPace = (typeof detectionPaces)[number];

/**
 * After this much silence, waiting longer hardly reveals any more machines. src/amd/README.md shows
 * the curve.
 */
const carefulSilenceMs = 2_500;

export const detectionMember = z
  .enum(detectionPaces)
  .default('fast')
  .describe(
    '`fast`: the verdict "human" comes about 0.7 s after a hello, and a later event may correct it; `careful`: it needs 2.5 s of silence, in which most recorded greetings would continue or beep',
  );

export function paceSettings(pace: DetectionPace): { readonly personAfterSilenceMs?: number } {
  return pace === 'careful' ? { personAfterSilenceMs: carefulSilenceMs } : {};
}
