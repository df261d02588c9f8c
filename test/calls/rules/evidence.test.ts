// What a call stores with its end for its record.

import { describe, expect, test } from 'vitest';
import { type CallEvidence, evidenceAfter } from '../../../src/calls/rules/evidence.ts';
import type { RequestedStream } from '../../../src/calls/stream/stream.ts';
import type { TransferPlan } from '../../../src/calls/transfer/transfer.ts';
import { rebuild } from '../../../src/recovery/rebuild.ts';
import {
  acceptedCall,
  type ScriptOptions,
  scriptCall,
  storedLeg,
} from '../../support/scripted-call.ts';

const bridge: TransferPlan = {
  ...{ to: { kind: 'tel', number: '15550177' }, mode: 'bridge', timeoutMs: 20_000 },
  ...{ caller: '15550199', keepStream: false, onFailure: 'hangup', on: 'person' },
};
const stream: RequestedStream = {
  ...{ url: 'wss://bot.example/audio', connect: 'answered', parameters: {} },
};
const sha256 = '0a'.repeat(32);

async function answeredCall(request: ScriptOptions['request'] = {}) {
  const call = scriptCall({ request });
  await call.sent();
  await call.answer();
  await call.settle();
  const plays = (playbackId: string, sound: string, hash = sha256): void => {
    const playback = { playbackId, source: 'command', sound } as const;
    const media = call.media();
    media.observe({ kind: 'playback', report: { kind: 'started', ...playback, sha256: hash } });
    const end = { kind: 'finished', reason: 'done', playedMs: 20 } as const;
    media.observe({ kind: 'playback', report: { ...playback, ...end } });
  };
  const botJoins = (): void =>
    call.media().observe({
      ...{ kind: 'stream', ordinal: 0, report: { kind: 'opened', connection: 1, openMs: 12 } },
    });
  const ends = async (): Promise<CallEvidence | undefined> => {
    call.remoteBye();
    call.advance(1_000);
    await call.settle();
    return call.endings()[0]?.evidence;
  };
  return { call, plays, botJoins, ends };
}

describe('the evidence of a call', () => {
  test('is absent if the call has none', async () => {
    const { call, ends } = await answeredCall();
    await ends();

    expect(call.endings()).toHaveLength(1);
    expect(call.endings()[0]).not.toHaveProperty('evidence');
  });

  test('names each sound once for each audio that was played under its name', async () => {
    const { call, plays, ends } = await answeredCall();
    const replaced = '0b'.repeat(32);
    plays('a', 'sound:offer');
    plays('b', 'sound:thanks');
    plays('c', 'sound:offer');
    plays('d', 'sound:offer', replaced);

    expect(await ends()).toEqual({
      sounds: [
        { name: 'sound:offer', sha256 },
        { name: 'sound:thanks', sha256 },
        { name: 'sound:offer', sha256: replaced },
      ],
    });
    // The hash is for the record only: events are the same as without it.
    const started = call.stored.find(({ type }) => type === 'playback-started');
    expect(started?.data).not.toHaveProperty('sha256');
  });

  test('says when a bot and an agent were connected to the person', async () => {
    const { call, botJoins, ends } = await answeredCall({ bridge, stream });
    const answeredAt = call.now().toISOString();
    botJoins();
    call.advance(2_000);
    call.amd('amd_human_detected');
    await call.settle();
    const leg = { ...storedLeg, dialogId: 'dialog-2' };
    call.secondLeg().observe({ kind: 'answered', sdp: 'sdp', leg, at: call.now() });
    await call.settle();
    const agentAt = call.now().toISOString();

    expect(await ends()).toEqual({
      connections: [
        { with: 'bot', at: answeredAt },
        { with: 'agent', at: agentAt, to: 'tel:+15550177' },
      ],
    });
  });

  test('has the first of a bot’s connections only', async () => {
    const { call, botJoins, ends } = await answeredCall({ stream });
    const answeredAt = call.now().toISOString();
    botJoins();
    call.advance(2_000);
    botJoins();

    expect(await ends()).toEqual({ connections: [{ with: 'bot', at: answeredAt }] });
  });

  test('is rebuilt from the events if the process dies, without the hashes of sounds', async () => {
    const { call, plays, botJoins } = await answeredCall({ stream });
    const answeredAt = call.now().toISOString();
    botJoins();
    plays('a', 'sound:offer');
    const { progress } = rebuild(
      {
        ...{ call: acceptedCall({ stream }), ownerId: 'gone' },
        ...{ events: call.stored, legs: [], answeredAt: call.now() },
      },
      [],
      { now: call.now(), loss: 'lost' },
    );

    expect(progress.evidence).toEqual({
      connections: [{ with: 'bot', at: answeredAt }],
      sounds: [{ name: 'sound:offer' }],
    });
  });

  test('is bounded, however many sounds a command plays', async () => {
    const { call, plays } = await answeredCall();
    plays('a', 'sound:offer');
    const started = call.stored.find(({ type }) => type === 'playback-started');
    if (started === undefined) throw new Error('the sound was not played');
    const hashes = Array.from({ length: 101 }, (_, index) => String(index));
    const evidence = hashes.reduce<CallEvidence>(
      (before, hash) => evidenceAfter(before, started, hash),
      {},
    );

    expect(evidence.sounds?.map((sound) => sound.sha256)).toEqual(hashes.slice(0, 100));
  });
});

test('a step with the first INVITE says when it left', async () => {
  const call = scriptCall();
  await call.sent();

  expect(call.steps).toMatchObject([{ events: [{ type: 'dialing' }], dialedAt: call.now() }]);
});
