// One call with everything in it: a transcript, a bot that sends marks and clears, commands, and a
// transfer to a person.

import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { eventually } from '../support/eventually.ts';
import { picture } from './pictures.ts';
import { accessible, fits, type Stage, say, untilEnded } from './stage.ts';

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
  await page.locator('.mark', { hasText: 'Transfer answered' }).waitFor();
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
  await untilEnded(page);
  // After the call, the database returns the same data.
  await eventually(async () => (await kept(stage, page, callId)) === 'all', 'the call is stored');
  await page.reload();
  await second.getByText('200 OK (INVITE) + SDP').waitFor();
  await page.locator('.row.words', { hasText: '“Hello, Anna.”' }).waitFor();
  await picture(page, 'call-bridged');
  await readStory(page);
  await moveCursor(page);
  await page.setViewportSize({ width: 390, height: 844 });
  await fits(page);
  await labelsApart(page);
  await accessible(page, 'a bridged call on a phone');
  await page.setViewportSize({ width: 1280, height: 900 });
  await labelsApart(page);
  say('both legs of a bridge have their ladder');
  return callId;
}

/** The sentences at the top, and the quality of the line. */
async function readStory(page: Page): Promise<void> {
  const story = (await page.locator('.story').textContent()) ?? '';
  assert.match(story, /connected to \+1 202 555 0105 for [\d.]+ s/);
  assert.match(story, /The application or its bot hung up after [\d.]+ s/);
  const quality = page.locator('.quality');
  await quality.getByText(/MOS [\d.]+ of 4\.5/).waitFor();
  await quality.getByText('content with such a line').waitFor();
  say('sentences tell what happened, and how the line sounded');
}

/** A row, the keyboard and the pointer move one cursor; the waveform and the rows show it. */
async function moveCursor(page: Page): Promise<void> {
  const cursor = page.getByRole('slider', { name: 'Cursor' });
  const at = async () => Number(await cursor.getAttribute('aria-valuenow'));
  assert.equal(await page.locator('.row.near').count(), 0);
  const answered = page.locator('.row.event', { hasText: 'Transfer answered' });
  await answered.hover();
  await page.locator('.row.event.near', { hasText: 'Transfer answered' }).waitFor();
  await page.locator('.instant', { hasText: 'Transfer answered' }).waitFor();
  const ofRow = await at();
  assert.ok(ofRow > 1_000, 'the cursor of the waveform is at the row');
  await page.mouse.move(1, 1);
  await page.locator('.cursor.idle').waitFor();
  await cursor.focus();
  await page.keyboard.press('End');
  const end = await at();
  assert.equal(end, Number(await cursor.getAttribute('aria-valuemax')));
  assert.equal(await page.locator('.row.reached').count(), 1);
  await page.keyboard.press('ArrowLeft');
  assert.equal(await at(), end - 100);
  await accessible(page, 'a cursor');
  const wave = await page.locator('.wave canvas').boundingBox();
  assert.ok(wave !== null);
  const lengthMs = Number(await cursor.getAttribute('aria-valuemax'));
  await page.mouse.move(wave.x + (wave.width * ofRow) / lengthMs, wave.y + 40);
  assert.ok(Math.abs((await at()) - ofRow) < 100, 'the pointer moves the cursor');
  await page.locator('.row.event.near', { hasText: 'Transfer answered' }).waitFor();
  await page.mouse.move(1, 1);
  assert.equal(await at(), end - 100);
  await page.locator('.row.words button').first().focus();
  await page.locator('.row.words.near').first().waitFor();
  say('one cursor runs through the waveform, the ladder and the events');
}

/** No label of the waveform touches another. */
async function labelsApart(page: Page): Promise<void> {
  const touching = async () =>
    (await page.evaluate(`(() => {
      const labels = [...document.querySelectorAll('.wave .lane-name, .wave .mark > span, .wave .axis span, .wave .tick:not(.bare)')]
        .map((one) => ({ text: one.textContent, box: one.getBoundingClientRect() }));
      const touch = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
      return labels.flatMap((a, index) => labels.slice(index + 1)
        .filter((b) => touch(a.box, b.box)).map((b) => a.text + ' touches ' + b.text));
    })()`)) as readonly string[];
  // The picture is drawn anew a frame after its width has changed.
  await eventually(async () => (await touching()).length === 0, 'labels are apart').catch(
    async () => assert.deepEqual(await touching(), []),
  );
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
