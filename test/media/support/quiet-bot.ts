// A bot that hears nothing, and says only what the test gives it.

import type { BotStream } from '../../../src/media/stream-port.ts';

export const quietBot: BotStream = {
  prepare: () => undefined,
  answer: () => undefined,
  hear: () => undefined,
  sendDigit: () => undefined,
  sendAmd: () => undefined,
  sendTransferFailed: () => undefined,
  returnMark: () => undefined,
  tick: () => undefined,
  stop: () => undefined,
};
