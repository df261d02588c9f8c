// One call with everything in it: a transcript, a bot that sends marks and clears, commands, and a
// transfer to a person.

import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { eventually } from '../support/eventually.ts';
import { picture } from './pictures.ts';
import { accessible, fits, type Stage, say } from './stage.ts';

const agent = 'tel:+12025550105';

/** Returns the id of the call. */
export async function watchStory(stage: Stage, page: Page): Promise<string> {
  const callId = await startStory(stage);
  await page.goto(`${stage.base}/console#/calls/${callId}`);
  await page.locator('.row.bot', { hasText: 'mark greeting' }).getByText('returned').waitFor();
  await page.locator('.row.bot', { hasText: 'clear' }).getByText('not played').waitFor();
  await page.locator('.row.words', { hasText: '“Hello, Anna.”' }).waitFor();
  await page.locator('.row.command', { hasText: 'dtmf 12' }).getByText('by app-dev').waitFor();
  await page.locator('.row.command.bad', { hasText: 'play sound:none' }).waitFor();
  for (const text of ['Hello,', 'mark greeting', 'dtmf 12']) {
    await page.locator('.note-lane .tick', { hasText: text }).waitFor();
  }
  // Reads both from one picture, because it is drawn anew during the call.
  const [hello, anna] = (await page.evaluate(
    `[...document.querySelectorAll('.note-lane.words .tick')].map((one) => one.getBoundingClientRect().x)`,
  )) as readonly number[];
  assert.ok(
    hello !== undefined && anna !== undefined && hello < anna,
    'words stand at their times',
  );
  say('the bot’s marks and clears, commands and words stand beside the waveform and in the list');

  await command(stage, callId, { command: 'transfer', to: agent, keepStream: true });
  await page.locator('.mark', { hasText: 'transfer-answered' }).waitFor();
  const second = page.locator('.ladder.second');
  await second.getByText('INVITE + SDP', { exact: true }).waitFor();
  await second.getByText('200 OK (INVITE) + SDP').waitFor();
  const [ours, theirs] = [
    await second.first().boundingBox(),
    await page.locator('.ladder:not(.second)').first().boundingBox(),
  ];
  assert.ok(ours && theirs && ours.x + ours.width <= theirs.x + 1, 'each leg has its own lane');
  await accessible(page, 'a bridged call');
  await picture(page, 'call-bridged-live');
  await page.locator('.row.sip', { hasText: 'second leg' }).first().waitFor();
  await stage.gateway.dialer.end(callId);
  await page.locator('.status', { hasText: 'Completed' }).waitFor();
  // After the call, the database returns the same data.
  await eventually(async () => (await kept(stage, page, callId)) === 'all', 'the call is stored');
  await page.reload();
  await second.getByText('200 OK (INVITE) + SDP').waitFor();
  await page.locator('.row.words', { hasText: '“Hello, Anna.”' }).waitFor();
  await picture(page, 'call-bridged');
  await page.setViewportSize({ width: 390, height: 844 });
  await fits(page);
  await accessible(page, 'a bridged call on a phone');
  await page.setViewportSize({ width: 1280, height: 900 });
  say('both legs of a bridge have their ladder');
  return callId;
}

async function startStory(stage: Stage): Promise<string> {
  const { bot, engine, gateway } = stage;
  const { callId } = await gateway.dialer.dial({
    target: 'tel:+12025550102',
    stream: { url: bot.url },
    machineDetection: 'detect',
    callControlParameter: { sttProvider: 'engine', sttLanguage: 'en-US' },
  });
  const connection = await bot.connection();
  const session = await engine.session();
  await session.untilHeard(900);
  session.send({
    ...{ type: 'Results', start: 0, duration: 0.9, is_final: true },
    channel: {
      alternatives: [
        {
          transcript: 'Hello, Anna.',
          words: [
            { word: 'hello', punctuated_word: 'Hello,', start: 0.2, end: 0.5 },
            { word: 'anna', punctuated_word: 'Anna.', start: 0.55, end: 0.85 },
          ],
        },
      ],
    },
  });
  connection.say(new Uint8Array(4_000).fill(0x20));
  connection.mark('greeting');
  await eventually(() => connection.marks.includes('greeting'), 'the mark comes back');
  connection.say(new Uint8Array(40_000).fill(0x30));
  connection.mark('never heard');
  connection.clear();
  await eventually(() => connection.marks.length === 2, 'what was cleared comes back');
  await command(stage, callId, { command: 'dtmf', digits: '12' });
  await command(stage, callId, { command: 'play', sound: 'sound:none' });
  return callId;
}

export async function command(
  { gateway: { dialer } }: Stage,
  callId: string,
  body: object,
  headers: Record<string, string> = {},
): Promise<number> {
  const path = `/api/public/bot/${dialer.botId}/calls/${callId}/commands`;
  return (await dialer.request('POST', path, body, headers)).status;
}

async function kept({ base }: Stage, page: Page, callId: string): Promise<string> {
  const answer = await page.request.get(`${base}/console/api/calls/${callId}/capture`);
  const { audio, notes, sip } = (await answer.json()) as Record<string, unknown>;
  return audio && notes && sip ? 'all' : 'some';
}
