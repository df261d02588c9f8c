// A process dies in the middle of a call, at any point. SQL had committed any prefix of what the
// machine sent. The process may not have received the answer. The stream had any prefix of what SQL
// had. The next process, and the one after it if that one dies too, must complete the events
// exactly once.

import { describe, expect, test } from 'vitest';
import { selectedEventTypes } from '../../src/calls/contract/notify-events.ts';
import { defaultCallLimits } from '../../src/calls/life/call-setup.ts';
import { expectOneWholeStory } from '../support/crashed-call.ts';
import { DialoutWorld } from '../support/dialout-world.ts';
import { MortalOutbox, mortalOwner } from '../support/mortal-outbox.ts';
import { randomCall, randomOf } from '../support/random-call.ts';
import { acceptedCall } from '../support/scripted-call.ts';

const runs = 600;

/** Plays SQL and the stream for a call, a random part of it at a time. */
function playInfrastructure(outbox: MortalOutbox, random: () => number) {
  const below = (limit: number) => Math.floor(random() * limit);
  const [isSqlAway, isStreamAway, isSwift] = [random() < 0.1, random() < 0.2, random() < 0.5];
  const storeAll = (): void => {
    for (const does of ['begin', 'commit', 'confirm'] as const) outbox[does]();
  };
  const publish = (isLastConfirmed: boolean): void => {
    if (!isStreamAway) outbox.publish(below(4), isLastConfirmed);
  };
  const happenings: readonly (() => void)[] = [
    ...[storeAll, () => outbox.begin(), () => outbox.commit(), () => outbox.confirm()],
    ...[() => outbox.fail(), () => publish(true)],
  ];
  let stallsAtAnswer = !isSqlAway && random() < 0.4;
  return {
    goOn(): void {
      if (isSqlAway) return;
      for (let count = below(5); count > 0; count -= 1) happenings[below(happenings.length)]?.();
      if (isSwift) storeAll();
    },
    /**
     * Returns true at most once. From then on the process receives no answer for the stored step,
     * whether SQL has it or not.
     */
    stallsNow(): boolean {
      if (!stallsAtAnswer || !outbox.holdsAnswer()) return false;
      stallsAtAnswer = false;
      outbox.begin();
      if (random() < 0.5) outbox.commit();
      return true;
    },
    /**
     * The last moment. A statement under way may still be committed, although no process receives
     * its answer.
     */
    end(): void {
      publish(false);
      if (!isSqlAway && random() < 0.5) outbox.commit();
    },
  };
}

async function crash(seed: number) {
  const random = randomOf(seed);
  const world = new DialoutWorld();
  // The call of the machine is this one too: its id is the same each time.
  const notifyEvents = seed % 2 === 0 ? selectedEventTypes : [];
  const first = acceptedCall({ notifyEvents });
  world.accept(first);
  world.take(first.callId, mortalOwner);
  const outbox = new MortalOutbox(world, first);
  const played = randomCall(random, { outbox, notifyEvents });
  const { call } = played;
  await call.settle();
  const infrastructure = playInfrastructure(outbox, random);
  const steps = Math.floor(random() * 40);
  for (let done = 0; done < steps && !played.isOver(); done += 1) {
    await played.step();
    if (infrastructure.stallsNow()) {
      call.advance(defaultCallLimits.storeAnswerTimeoutMs);
      await call.settle();
    }
    infrastructure.goOn();
    if (random() < 0.5) await call.settle();
  }
  infrastructure.end();
  const talking = played.talking();
  call.actor.stop();
  return { world, outbox, row: world.row(first.callId), random, talking, log: call.log };
}

async function crashAndRecover(seed: number) {
  const crashed = await crash(seed);
  const { end, left, hungUp } = await expectOneWholeStory(crashed);
  // No far end is left in the call, also none that was talking when the process died.
  expect(hungUp).toEqual(expect.arrayContaining([...crashed.talking]));
  return { end, left, isReferred: crashed.log.includes('refer') };
}

describe('a process that dies in the middle of a call', () => {
  test('leaves events that the next process completes with exactly one end, without a gap', {
    timeout: 60_000,
  }, async () => {
    const ends = new Map<string, number>();
    const transfers = { bridge: 0, refer: 0 };
    for (let seed = 1; seed <= runs; seed += 1) {
      const { end, left, isReferred } = await crashAndRecover(seed).catch((error: unknown) => {
        throw new Error(`seed ${seed}`, { cause: error });
      });
      ends.set(end, (ends.get(end) ?? 0) + 1);
      if (left === 2) transfers.bridge += 1;
      if (isReferred) transfers.refer += 1;
    }
    // Both kinds of end must be common, or the runs would prove little. So must answers that were
    // given up.
    expect(Math.min(ends.get('completed') ?? 0, ends.get('failed') ?? 0)).toBeGreaterThan(
      runs / 10,
    );
    expect(Math.min(...Object.values(transfers))).toBeGreaterThan(runs / 200);
    expect(ends.get('doubted, completed')).toBeGreaterThan(runs / 100);
    expect(ends.get('doubted, failed')).toBeGreaterThan(runs / 100);
  });
});
