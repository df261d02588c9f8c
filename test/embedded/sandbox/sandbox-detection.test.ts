// The gateway's own media and detection listen to the sandbox's callees over real RTP. The tests
// check the events that a dialer gets.

import { beforeAll, describe, expect, test } from 'vitest';
import { defaultAmdTimers } from '../../../src/calls/call-types.ts';
import type { CallId } from '../../../src/calls/contract/identity.ts';
import type { AmdEvent, AmdEventName } from '../../../src/calls/detection/amd-event.ts';
import type { SandboxName } from '../../../src/embedded/sandbox/sandbox-numbers.ts';
import { startSandboxThread } from '../../../src/embedded/sandbox/sandbox-thread.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { createMediaPort } from '../../../src/media/media-port.ts';
import { eventually } from '../../support/eventually.ts';
import { freePortRange } from '../../support/free-port.ts';
import { forSuite } from '../../support/opened.ts';
import { undisturbed } from '../../support/undisturbed.ts';
import { startCaller } from './support/caller.ts';

const sandbox = forSuite(() =>
  startSandboxThread({ sipHost: '127.0.0.1', logLevel: 'silent', nodeId: 'test' }),
);
const caller = forSuite(() => startCaller(sandbox));
const ports = forSuite(() => freePortRange(100));
const media = forSuite(() =>
  createMediaPort({
    host: '127.0.0.1',
    publicHost: '127.0.0.1',
    portMin: ports.portMin,
    portMax: ports.portMax,
    workers: 1,
    inactivityTimeoutMs: 30_000,
    silenceIntervalMs: 200,
    logger: silentLogger,
  }),
);
beforeAll(async () => {
  await media.ready();
});

/** Calls the callee and returns all detection events, up to `amd_stopped`. Then hangs up. */
async function eventsOf(name: SandboxName): Promise<AmdEvent[]> {
  const events: AmdEvent[] = [];
  const isStopped = () => events.at(-1)?.event === 'amd_stopped';
  const session = await media.open(`call-${name}` as CallId, {
    observe: (event) => {
      if (event.kind === 'amd') events.push(event.amd);
      if (event.kind === 'failed') expect.unreachable(event.reason);
    },
  });
  if (session === undefined) throw new Error('no media session');
  try {
    const call = await caller.place(name, { offer: session.offerSdp });
    void call.hungUp.then(() => session.send({ kind: 'stopDetection', reason: 'call-ended' }));
    const early = () => call.provisionals.find(({ status }) => status === 183);
    void eventually(() => early() !== undefined, '183', 3_000).then(
      () => session.applyAnswer(early()?.body ?? '', 'early'),
      () => undefined,
    );
    const { dialog } = await call.final;
    try {
      expect(session.applyAnswer(dialog?.remote.sdp ?? '', 'answer')).toBe('applied');
      session.send({ kind: 'detect', settings: { timers: defaultAmdTimers } });
      await eventually(isStopped, `${name}: detection stops`, 40_000);
    } finally {
      // Some callees have hung up by now. Their dialog has ended already, which is fine.
      dialog?.destroy({ headers: {} }, () => undefined);
    }
  } finally {
    session.close();
  }
  return events;
}

const ticksLate = async (): Promise<number> => (await media.statistics()).ticksLate;

describe.concurrent('detection of a callee', { timeout: 180_000 }, () => {
  test.each<[SandboxName, string, AmdEventName[]]>([
    ['person', 'human', ['amd_human_detected', 'amd_stopped']],
    ['person-after-ringback', 'human', ['amd_human_detected', 'amd_stopped']],
    ['person-hangs-up', 'call-ended', ['amd_human_detected', 'amd_stopped']],
    [
      'voicemail',
      'tone',
      ['amd_machine_detected', 'amd_machine_stopped_speaking', 'amd_tone_detected', 'amd_stopped'],
    ],
    [
      'voicemail-no-beep',
      'call-ended',
      ['amd_machine_detected', 'amd_machine_stopped_speaking', 'amd_stopped'],
    ],
    ['fax', 'fax-tone', ['amd_machine_detected', 'amd_stopped']],
    ['silence', 'no-speech', ['amd_no_speech_detected', 'amd_stopped']],
  ])('%s ends with %s', async (name, reason, expected) => {
    await undisturbed(ticksLate, async () => {
      const events = await eventsOf(name);

      expect(events.map(({ event }) => event)).toEqual(expected);
      expect(events.at(-1)?.reason).toBe(reason);
    });
  });
});
