// Runs the commands of the recipes page exactly as written, against a gateway as on a laptop.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { readFile, symlink } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { makeDataDir, startGateway } from '../support/gateway-process.ts';
import { forSuite } from '../support/opened.ts';
import { startTestS3 } from '../support/s3-server.ts';
import { ticksLateOf, undisturbed } from '../support/undisturbed.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(`${root}/src/api/recipes.md`, 'utf8');
/** Defines `npx` so that `npx offhook` runs this build, whether or not it is linked. */
const npx = `npx() { shift; '${process.execPath}' '${root}/dist/cli.js' "$@"; }`;

const folder = forSuite(async () => {
  const made = await makeDataDir();
  // The recipes read sounds of the repository, and write into the working folder.
  await symlink(`${root}/src`, `${made.path}/src`);
  return made;
});
const bucket = forSuite(startTestS3, (opened) => opened.stop());
const gateway = forSuite(
  () =>
    startGateway(folder.path, {
      RECORDING_STORE: `s3://${bucket.target.bucket}/${bucket.target.prefix}`,
      S3_ENDPOINT: bucket.target.endpoint ?? '',
      S3_REGION: bucket.target.region,
      AWS_ACCESS_KEY_ID: bucket.target.accessKeyId,
      AWS_SECRET_ACCESS_KEY: bucket.target.secretAccessKey,
    }),
  (opened) => opened.terminate(),
);

async function run(title: string): Promise<string> {
  const section = page.split('\n## ').find((text) => text.startsWith(`${title}\n`)) ?? '';
  const [, block = ''] = /^```sh\n(.*?)^```/ms.exec(section) ?? [];
  const script = block.replaceAll('http://127.0.0.1:3000', gateway.runtime.httpUrl);
  const child = spawn('bash', ['-ec', `${npx}\n${script}`], {
    cwd: folder.path,
    env: { PATH: process.env['PATH'], DATA_DIR: folder.path },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  }
  const [code] = await once(child, 'close');
  expect([code, output]).toEqual([0, output]);
  return output;
}

/**
 * Runs a recipe whose result depends on who picked up. Repeats it if the gateway stood still,
 * because the gateway then hears a different answer.
 */
function heard(recipe: () => Promise<void>): Promise<void> {
  return undisturbed(() => ticksLateOf(gateway.runtime), recipe, { testTimeoutMs: 120_000 });
}

describe('a recipe', { concurrent: true, timeout: 120_000 }, () => {
  test('leaves a message', async () => {
    await heard(async () => {
      const output = await run('Leave a message');

      expect(output).toContain('playback-started');
      expect(output).toMatch(/playback-finished.*done/);
      expect(output).toMatch(/completed.*Bot-disconnected/);
    });
  });

  test("connects a person to an agents' queue", async () => {
    const output = await run("Connect to an agents' queue");

    expect(output).toMatch(/transfer-ringing.*transfer-answered.*transfer-completed/s);
    expect(output).toMatch(/completed +.*Bot-disconnected/);
  });

  test('lets a person press 1 for an agent', async () => {
    await heard(async () => {
      const output = await run('Press 1 for a person');

      const inOrder = ['amd amd_human_detected', 'play: taken', 'dtmf 1', 'transfer: taken'];
      const found = inOrder.map((line) => output.indexOf(`\n${line}\n`));
      expect(found).toEqual(found.toSorted((one, other) => one - other));
      expect(found).not.toContain(-1);
      const [, summary = '{}'] = /^completed completed\n(.*)$/m.exec(output) ?? [];
      expect(JSON.parse(summary)).toMatchObject({
        ...{ to: 'tel:+12025550105', mode: 'bridge', outcome: 'completed' },
        msToTwoWayAudio: expect.any(Number),
      });
    });
  });

  test('plays a sound during a call', async () => {
    const output = await run('Play something in mid-call');

    expect(output).toMatch(/"name":"please-hold"/);
    expect(output).toMatch(/playing sound:please-hold \(cmd-/);
    expect(output).toMatch(/"ok":true,"commandId":"silence-1","state":"answered"/);
  });

  test("calls under the FTC's rule", async () => {
    await heard(async () => {
      const output = await run("A campaign under the FTC's rule");

      expect(output).toMatch(/not permitted: hours, not before/);
      expect(output).toMatch(/not permitted: suppressed/);
      expect(output).toMatch(/abandoned .*agent missing/);
      expect(output).toMatch(/ftc .*people \d+, connected \d+, abandoned [1-9]/);
      expect(output).toMatch(/"trailer": ?true/);
    });
  });

  test('records with a notice', async () => {
    await heard(async () => {
      const output = await run('Record with a notice');

      expect(output).toMatch(/playback-finished.*sound:recorded, done.*recording-started/s);
      expect(output).toMatch(/recording-stopped.*completed/s);
    });
  });

  test('pauses a recording while a card is keyed in', async () => {
    const output = await run('Pause while a card is keyed in');

    expect(output).toMatch(/recording-paused.*dtmf-sent +\*{4}.*recording-resumed/s);
    expect(output.replaceAll('dtmf "$call" 4711', '')).not.toMatch(/dtmf-sent.*4711/);
  });

  test('records into a bucket, for a key that only its owner has', async () => {
    const output = await run('Record into your own bucket, with your own key');

    expect(output).toMatch(/call\.wav\.enc \(encrypted for crm-2026\)/);
    const wav = await readFile(`${folder.path}/call.wav`);
    expect(wav.subarray(0, 4).toString()).toBe('RIFF');
    // Two channels of three seconds.
    expect(wav.length).toBeGreaterThan(2 * 8_000);
  });

  test("calls under Ofcom's rule", async () => {
    await heard(async () => {
      const output = await run("A campaign under Ofcom's rule");

      expect(output).toMatch(/ofcom .*abandoned [1-9], estimate 0\.0: 100\.00 %/);
    });
  });
});
