// Declares tests that only one of the two SIP engines can pass. TEST_DRACHTIO names the binary of a
// drachtio-server; without it, the tests run on the embedded engine.

import { test } from 'vitest';

const isDrachtio = (process.env['TEST_DRACHTIO'] ?? '') !== '';

/** Declares a test that drachtio-server can't pass. Its title says why. */
export const onlyEmbedded = isDrachtio ? test.skip : test;
