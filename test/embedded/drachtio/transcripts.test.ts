// The contract. For each scenario recorded between drachtio-srf and the real drachtio-server, the
// embedded engine sends the same on the control connection and on the wire, apart from intended
// differences.

import { readdirSync } from 'node:fs';
import { afterAll, describe, expect, test } from 'vitest';
import { startSipEngine } from '../../../src/embedded/drachtio/engine.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { patientClock } from '../../support/patient-clock.ts';
import { DELIBERATE_DIFFERENCES, type DeliberateDifference } from './transcripts/differences.ts';
import { readRecording } from './transcripts/recording.ts';
import { type Difference, type EngineUnderTest, replay } from './transcripts/replay.ts';

const FOLDER = new URL('../../fixtures/drachtio/', import.meta.url);
const SCENARIOS = readdirSync(FOLDER)
  .filter((name) => name.endsWith('.control.txt'))
  .map((name) => name.slice(0, -'.control.txt'.length))
  .sort();

/** Recordings that no replay can follow, each with its reason. */
const NOT_REPLAYED: Readonly<Record<string, string>> = {};

/**
 * Scenarios in which the server's own timers act. They run this many times faster than recorded.
 */
const TIMED_SPEEDS: Readonly<Record<string, number>> = {
  bye_silent: 25,
  cancel_before_provisional: 25,
  invite_in_noack: 25,
  no_answer: 25,
  no_answer_tcp: 25,
  ring_forever: 50,
  session_timer: 50,
};

/** The recorder shows only whole frames. This connection sent a length of six digits. */
const UNRECORDED = { raw_errors: { connection: 21, bytes: '123456#id1|ping' } } as const;

const occurred = new Set<DeliberateDifference>();

describe('the embedded engine speaks like drachtio-server', () => {
  test('in every recording, or with a reason why not', () => {
    expect(SCENARIOS).toHaveLength(63);
    expect(SCENARIOS).toEqual(
      expect.arrayContaining([...Object.keys(NOT_REPLAYED), ...Object.keys(TIMED_SPEEDS)]),
    );
  });

  test.concurrent.for(SCENARIOS.filter((name) => NOT_REPLAYED[name] === undefined))(
    '%s',
    async (scenario) => {
      const listed = DELIBERATE_DIFFERENCES.filter(
        (entry) => entry.scenario === 'all' || entry.scenario === scenario,
      );
      const messages = (aspect: string) =>
        listed.filter((entry) => entry.aspect === aspect).map((entry) => entry.message);

      const found = await replay(readRecording(FOLDER, scenario), engineUnderTest(scenario), {
        timed: TIMED_SPEEDS[scenario] !== undefined,
        absent: messages('absent'),
        added: messages('added'),
        ...(scenario === 'raw_errors' ? { unrecorded: UNRECORDED.raw_errors } : {}),
      });

      const unlisted = found.filter((difference) => {
        const entry = listed.find((candidate) => covers(candidate, difference));
        if (entry !== undefined) occurred.add(entry);
        return entry === undefined;
      });
      expect(unlisted.map(describeDifference)).toEqual([]);
      const stale = listed.filter((entry) => entry.scenario !== 'all' && !occurred.has(entry));
      expect(stale, 'listed differences that no longer occur').toEqual([]);
    },
  );

  afterAll(() => {
    const stale = DELIBERATE_DIFFERENCES.filter(
      (entry) => entry.scenario === 'all' && !occurred.has(entry),
    );
    expect(stale, 'listed differences that no longer occur').toEqual([]);
  });
});

function describeDifference({ message, aspect, recorded, live }: Difference): string {
  return `${message}: ${aspect}: recorded ${JSON.stringify(recorded)}, live ${JSON.stringify(live)}`;
}

function covers(entry: DeliberateDifference, difference: Difference): boolean {
  const pattern = entry.message.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*');
  return new RegExp(`^${pattern}$`).test(difference.message) && entry.aspect === difference.aspect;
}

function engineUnderTest(scenario: string): EngineUnderTest {
  const speed = TIMED_SPEEDS[scenario];
  let engine: Awaited<ReturnType<typeof startSipEngine>> | undefined;
  let ports = { sipPort: 0, controlPort: 0 };
  return {
    start: async () => {
      engine = await startSipEngine({
        sipHost: '127.0.0.1',
        controlHost: '127.0.0.1',
        ...ports,
        secret: 'cymru',
        logger: silentLogger,
        clock: patientClock(speed),
      });
      ports = { sipPort: engine.sipPort, controlPort: engine.controlPort };
      return ports;
    },
    stop: async () => {
      await engine?.close();
      engine = undefined;
    },
  };
}
