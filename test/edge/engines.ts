// Declares tests that only one of the two SIP engines can pass. `npm run test:drachtio` runs the
// tests on a real drachtio-server. Otherwise they run on the embedded engine.

import { test } from 'vitest';
import { drachtioBinary } from '../support/sip-engine.ts';

const isDrachtio = drachtioBinary !== undefined;

/** Declares a test that drachtio-server can't pass. Its title says why. */
export const onlyEmbedded = isDrachtio ? test.skip : test;

/**
 * Declares a test of something that only drachtio-server does. On the embedded engine it isn't
 * declared at all, because `npm test` skips nothing.
 */
export const onlyDrachtio = (title: string, run: () => Promise<void>): void => {
  if (isDrachtio) test(title, run);
};
