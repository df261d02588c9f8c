// The part of `npm run test:compose` whose only network is loopback.

import { readFile } from 'node:fs/promises';
import { FarEnd } from '../../support/far-end.ts';
import { startReceiver } from '../../support/receiver.ts';
import { makeCheckout } from './checkout.ts';
import { startEngine } from './engine.ts';
import { buildStandIns } from './images.ts';
import { run, say } from './run.ts';
import { scenario } from './scenario.ts';

const [, , cache = ''] = process.argv;

await run('ip', ['link', 'set', 'lo', 'up']);
const engine = await startEngine(cache);
const checkout = await makeCheckout();
const farEnd = await FarEnd.start();
const receiver = await startReceiver();
try {
  await buildStandIns(cache);
  await scenario({ cache, checkout, farEnd, receiver });
  say('every step works');
} catch (error) {
  const show = async (what: Promise<string>) => say(await what.catch(String));
  await show(checkout.compose('ps', '-a'));
  await show(checkout.compose('logs', '--no-color', '--tail', '15'));
  await show(readFile(engine.logFile, 'utf8').then((text) => text.slice(-4_000)));
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  process.exitCode = 1;
} finally {
  await checkout.compose('down', '-v', '-t', '5').catch(() => undefined);
  await farEnd[Symbol.asyncDispose]();
  await receiver.close();
  await checkout[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
}
process.exit();
