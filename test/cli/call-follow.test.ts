// Tests `offhook call --follow` with late events. SQL has the end at once, and the stream delivers
// the rest of the timeline later.

import { writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { type CallOptions, placeCall } from '../../src/cli/calls/call-command.ts';
import { createCallTimeline } from '../../src/cli/calls/call-timeline.ts';
import { loadConfig } from '../../src/config.ts';
import type { TimelineEntry } from '../../src/interactions/call-queries.ts';
import { eventBuilder } from '../support/call-events.ts';
import { removeFolder, temporaryFolder } from './support.ts';

const types = ['queued', 'dialing', 'answered', 'amd', 'completed'];
const timeline: readonly TimelineEntry[] = types.map((type, index) => ({
  eventId: `evt-${index + 1}`,
  eventSequence: index + 1,
  type,
  time: `2026-01-01T00:00:0${index}.000Z`,
  data: {},
}));

/** Returns the entries with these sequences. */
function known(...sequences: readonly number[]): readonly TimelineEntry[] {
  return timeline.filter(({ eventSequence }) => sequences.includes(eventSequence));
}

describe('call --follow', () => {
  const cleanUps: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const cleanUp of cleanUps.splice(0)) await cleanUp();
  });

  /** Serves a call that has ended. Each request returns the next of these timelines. */
  async function gatewayWith(looks: readonly (readonly TimelineEntry[])[]): Promise<string> {
    let look = 0;
    const server: Server = createServer((request, response) => {
      response.setHeader('content-type', 'application/json');
      if (request.method === 'POST') {
        response.end(JSON.stringify({ sid: 'sid-1', callId: 'call-1', conversationId: 'c-1' }));
        return;
      }
      const shown = looks[Math.min(look, looks.length - 1)];
      look += 1;
      const outcome = { outcome: 'completed', reason: '200 OK', reasonCode: 'Caller-disconnected' };
      response.end(JSON.stringify({ state: 'ended', ...outcome, timeline: shown }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    cleanUps.push(async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  async function follow(httpUrl: string): Promise<readonly string[]> {
    const dataDir = await temporaryFolder();
    cleanUps.push(() => removeFolder(dataDir));
    const app = {
      ...{ appId: 'app-dev', jwtSecret: 'x'.repeat(64) },
      ...{ webhookSecret: 'whsec_x', streamSecret: 'x' },
    };
    await writeFile(join(dataDir, 'dev-app.json'), JSON.stringify(app));
    const lines: string[] = [];
    const options: CallOptions = {
      notify: 'http://127.0.0.1:9/',
      amd: 'detect',
      bot: 'bot-1',
      caller: '15559876543',
      follow: true,
    };
    await placeCall(
      {
        config: loadConfig({ DATA_DIR: dataDir }),
        gateway: async () => ({ httpUrl }),
        print: (line) => void lines.push(line),
        note: () => undefined,
        interrupted: new AbortController().signal,
      },
      'busy',
      options,
    );
    return lines;
  }

  test('prints events that reach the timeline after the call has ended, before the end', async () => {
    const httpUrl = await gatewayWith([known(1, 3, 5), known(1, 2, 3, 5), timeline]);

    const lines = await follow(httpUrl);

    expect(lines.slice(1, -1).map((line) => line.split(/ +/)[1])).toEqual(types);
    expect(lines.at(-1)).toBe('ended: completed (200 OK, Caller-disconnected)');
  });

  test('prints the duration of the call to the millisecond', async () => {
    const data = { ...eventBuilder().completed().data, callDurationMs: 7_982 };
    const told = timeline.map((entry) => (entry.type === 'completed' ? { ...entry, data } : entry));

    const lines = await follow(await gatewayWith([told]));

    expect(lines.at(-2)).toMatch(
      /completed +200 OK, Caller-disconnected, 7\.982 s, amd_human_detected$/,
    );
    expect(lines.at(-1)).toBe('ended: completed, amd_human_detected (200 OK, Caller-disconnected)');
  });
});

describe('a timeline that grows', () => {
  test('is printed once and in order; a gap holds back later events until it is filled', () => {
    const reader = createCallTimeline();

    expect(reader.take(known(1), 0)).toEqual(known(1));
    expect(reader.take(known(1, 3, 5), 250)).toEqual([]);
    expect(reader.waiting).toBe(true);
    expect(reader.take(known(1, 2, 3, 5), 500)).toEqual(known(2, 3));
    expect(reader.waiting).toBe(true);
    expect(reader.take(timeline, 750)).toEqual(known(4, 5));
    expect(reader.waiting).toBe(false);
  });

  test('is printed after 5 s if an event never comes', () => {
    const reader = createCallTimeline();

    expect(reader.take(known(1, 2, 3, 5), 1_000)).toEqual(known(1, 2, 3));
    expect(reader.take(known(1, 2, 3, 5), 5_980)).toEqual([]);
    expect(reader.take(known(1, 2, 3, 5), 6_000)).toEqual(known(5));
    expect(reader.waiting).toBe(false);
  });

  test('still prints an event that comes after the wait for it', () => {
    const reader = createCallTimeline();
    reader.take(known(1, 3), 0);
    reader.take(known(1, 3), 5_000);

    expect(reader.take(known(1, 2, 3, 4), 5_250)).toEqual(known(2, 4));
  });
});
