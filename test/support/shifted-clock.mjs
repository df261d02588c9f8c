// Shifts the wall clock of the process that imports it. The file that OFFHOOK_TEST_CLOCK names
// holds the shift in milliseconds, and may change at any time. Timers and monotonic clocks stay as
// they are. `node --import` runs this module in the main thread and in every worker.

import { readFileSync } from 'node:fs';

const lookEveryMs = 20;
const file = process.env['OFFHOOK_TEST_CLOCK'] ?? '';
const RealDate = Date;
let shiftMs = 0;

const look = () => {
  try {
    shiftMs = Number(readFileSync(file, 'utf8'));
  } catch {
    // The test is over and has removed the file.
  }
};
const now = () => RealDate.now() + shiftMs;

look();
setInterval(look, lookEveryMs).unref();
globalThis.Date = new Proxy(RealDate, {
  construct: (target, parts, newTarget) =>
    Reflect.construct(target, parts.length === 0 ? [now()] : parts, newTarget),
  apply: () => new RealDate(now()).toString(),
  get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
});
