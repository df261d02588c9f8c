// Tests the output of `npm run demo -- --json`.

import { expect, test } from 'vitest';
import { ticksLateOf, undisturbed } from '../support/undisturbed.ts';
import { type Finished, run } from './support.ts';

type Line = {
  readonly type: string;
  readonly verified?: boolean;
  readonly rawBody?: string;
  readonly body?: { readonly status: string };
  readonly headers?: Readonly<Record<string, string>>;
  readonly ok?: boolean;
  readonly conversation?: object;
  readonly calls?: readonly { readonly name: string; readonly problems: readonly string[] }[];
};

const testTimeoutMs = 300_000;
/** Late ticks of all demo runs so far. */
let ticksLate = 0;
let lookAtTicks = async (): Promise<number> => ticksLate;

async function runDemo(): Promise<Finished> {
  // Other variables must not matter.
  const demo = run('demo', ['--json'], {
    DATABASE_URL: 'postgres://127.0.0.1:1/none',
    NATS_URL: 'nats://127.0.0.1:1',
    TRUNKS_FILE: '/nowhere/trunks.yaml',
    STT_PROVIDERS_FILE: '/nowhere/providers.yaml',
    STREAM_ALLOWED_NETWORKS: 'none',
    MAX_CONCURRENT_CALLS: '1',
  });
  const { httpUrl } = JSON.parse(await demo.line()) as { readonly httpUrl: string };
  const before = ticksLate;
  lookAtTicks = async () => {
    ticksLate = before + (await ticksLateOf({ httpUrl }));
    return ticksLate;
  };
  const finished = await demo.finished;
  // The demo ended by itself. Its last lines remain to be read.
  lookAtTicks = async () => ticksLate;
  return finished;
}

test(
  'the demo shows a person, a conversation, a voicemail, a transfer and a busy call, all signed, as JSON lines',
  async () => {
    await undisturbed(
      () => lookAtTicks(),
      async () => {
        const { code, out, err } = await runDemo();

        expect(err).toBe('');
        const lines = out
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line) as Line);
        const notifications = lines.filter(({ type }) => type === 'notification');
        expect(lines[0]?.type).toBe('started');
        expect(lines.filter(({ type }) => type === 'call')).toHaveLength(5);
        expect(notifications.length).toBeGreaterThanOrEqual(19);
        for (const { verified, rawBody, body, headers } of notifications) {
          expect(verified).toBe(true);
          expect(JSON.parse(rawBody ?? '')).toEqual(body);
          expect(headers?.['gateway-signature']).toMatch(/^t=\d+,v1=[0-9a-f]{64}$/);
        }
        const summary = lines.at(-1);
        expect(summary).toMatchObject({ type: 'summary', ok: true });
        expect(summary?.calls?.map(({ name, problems }) => [name, problems])).toEqual([
          ['person', []],
          ['talker', []],
          ['voicemail', []],
          ['person-presses-1', []],
          ['busy', []],
        ]);
        // Each side heard all that the other said, and the bot fell silent when it was interrupted.
        expect(summary?.conversation).toMatchObject({
          bot: { turns: 3, interruptions: 1, linesSaid: 3, code: 1000 },
          talker: { turns: 3, answers: 1, silencedAfterMs: expect.any(Number) },
          message: { correlation: expect.closeTo(1, 1) },
          transfer: {
            person: { turns: expect.any(Number), answers: 1 },
            agent: { turns: expect.any(Number), answers: 1 },
            msToTwoWayAudio: expect.any(Number),
          },
        });
        expect(code).toBe(0);
      },
      { testTimeoutMs },
    );
  },
  testTimeoutMs,
);
