// A stream by command is checked for its call: where bots may be, and whether its app still exists
// to sign. The query of the URL is encrypted.

import { beforeEach, describe, expect, test } from 'vitest';
import type { CallingApp } from '../../../src/calls/dialout-ports.ts';
import type { CallMachineEvent } from '../../../src/calls/life/call-setup.ts';
import { type StreamingPorts, streamHandler } from '../../../src/calls/stream/stream-command.ts';
import { acceptedCall } from '../../support/call-records.ts';
import { liveCall } from '../../support/live-call.ts';

const call = acceptedCall();

let known: CallingApp | undefined | Error;
beforeEach(() => {
  known = {};
});

const ports: Pick<StreamingPorts, 'apps' | 'streams'> = {
  apps: {
    find: async () => {
      if (known instanceof Error) throw known;
      return known;
    },
  },
  streams: {
    isReachable: ({ hostname }) => hostname !== '10.0.0.1',
    seal: (botId, url) => ({ url: url.split('?')[0] ?? '', sealedQuery: `sealed for ${botId}` }),
  },
};

async function judge(members: {
  readonly url: string;
  readonly parameters?: Readonly<Record<string, string>>;
}) {
  const sent: CallMachineEvent[] = [];
  const live = liveCall(call, (event) => sent.push(event));
  const asked = { live, commandId: 'bot', ports: { ...ports, registry: { live: () => live } } };
  const reply = await streamHandler.execute({ command: 'stream', ...members }, asked);
  const [event] = sent;
  if (event?.type === 'command.stream') return { ok: true, stream: event.stream };
  return { ok: false, refusal: reply };
}

const url = 'wss://bot.example/audio?key=s3cret';
const judged = {
  ok: true,
  stream: {
    ...{ url: 'wss://bot.example/audio', sealedQuery: `sealed for ${call.botId}` },
    ...{ connect: 'answered', parameters: { a: 'b' } },
  },
};

describe('a stream by command', () => {
  test('is encrypted for the bot of the call', async () => {
    expect(await judge({ url, parameters: { a: 'b' } })).toEqual(judged);
  });

  test('is refused at an address where no bot may be', async () => {
    const refused = await judge({ url: 'wss://10.0.0.1/?key=s3cret' });

    expect(refused).toMatchObject({
      refusal: {
        code: 'invalid',
        errors: [{ path: 'url', message: expect.stringContaining('STREAM_ALLOWED_NETWORKS') }],
      },
    });
    expect(JSON.stringify(refused)).not.toContain('s3cret');
  });

  test('is refused if the app was revoked, because nothing could sign the stream', async () => {
    known = undefined;

    expect(await judge({ url })).toMatchObject({
      refusal: { errors: [{ path: 'url', message: `the app ${call.appId} is revoked` }] },
    });
  });

  test('is accepted while SQL does not answer: opening it reads the app again', async () => {
    known = new Error('SQL is unreachable');

    expect(await judge({ url, parameters: { a: 'b' } })).toEqual(judged);
  });
});
