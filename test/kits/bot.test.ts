// Runs src/notifier/kits/bot.mjs beside a gateway: it learns who picked up, and hangs up on a
// machine.

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { run } from '../cli/support.ts';
import { eventually } from '../support/eventually.ts';
import { startLaptop } from '../support/laptop.ts';
import { forSuite } from '../support/opened.ts';
import { ticksLateOf, undisturbed } from '../support/undisturbed.ts';

const bot = fileURLToPath(new URL('../../src/notifier/kits/bot.mjs', import.meta.url));

const laptop = forSuite(startLaptop);

async function follow(target: string): Promise<{ readonly said: string; readonly callId: string }> {
  const { out: token } = await run('cli', ['token'], { DATA_DIR: laptop.gateway.dataDir }).finished;
  const { callId } = await laptop.dial(target, { metadata: { campaign: 'autumn' } });
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [bot, laptop.gateway.dialer.botId, callId],
    { env: { OFFHOOK_URL: laptop.gateway.runtime.httpUrl, OFFHOOK_TOKEN: token.trim() } },
  );
  return { said: stdout, callId };
}

const ticksLate = (): Promise<number> => ticksLateOf(laptop.gateway.runtime);

test('goes on talking to a person', async () => {
  await undisturbed(ticksLate, async () => {
    const { said } = await follow('tel:+12025550101');

    expect(said).toContain('"amd_human_detected"');
    expect(said).toContain('"metadata":{"campaign":"autumn"}');
    expect(said).toContain('a person');
  });
}, 180_000);

test('hangs up on a machine', async () => {
  await undisturbed(ticksLate, async () => {
    const { said, callId } = await follow('tel:+12025550110');
    const endOf = () =>
      laptop.events.find((event) => event.callId === callId && event.type === 'completed');
    await eventually(() => endOf() !== undefined, 'the end is published');

    expect(said).toContain('a machine: hung up');
    expect(endOf()?.data).toMatchObject({ reasonCode: 'Bot-disconnected' });
  });
}, 180_000);
