// Everything that other parties can put into a call is shown as text, never as markup: by the
// callee, the bot, the receiver, and the transcript.

import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import type { Page } from 'playwright-core';
import { eventually } from '../support/eventually.ts';
import { command } from './call-story.ts';
import { watchToday } from './figures.ts';
import { picture } from './pictures.ts';
import { markup, openCall, type Stage, say, untilEnded } from './stage.ts';

/** Markup without blanks. */
const tightMarkup = '<img/src=x/onerror=window.stranger=1>';

export async function strangersText(stage: Stage, page: Page): Promise<void> {
  await using receiver = await startHostileReceiver();
  await refusedCall(stage, page, receiver.url);
  await forgedCall(stage, page, await answeredCall(stage, page));
  await page.goto(`${stage.base}/console#/calls`);
  await page.locator('tr', { hasText: 'stranger' }).waitFor();
  await picture(page, 'calls-strangers');
  await expectText(page);
  await watchToday(stage, page, receiver.url.replace(/\/$/, ''));
  await expectText(page);
  say('what strangers write is text');
}

/** Markup in the callee's reason and headers, the receiver's answer, and the metadata. */
async function refusedCall(stage: Stage, page: Page, notifyurl: string): Promise<void> {
  const { callee, gateway } = stage;
  const { callId } = await gateway.dialer.dial({
    target: `sip:stranger@127.0.0.1:${callee.port}`,
    caller: "+1'-alert(1)-'",
    metadata: { [markup]: markup },
    notifyurl,
  });
  callee.reply(await callee.take('INVITE'), 486, markup, {
    headers: [`Subject: ${markup}`, `P-Asserted-Identity: "${markup}" <sip:x@y>`],
  });
  await page.goto(`${stage.base}/console#/calls/${callId}`);
  await page.locator('.story', { hasText: 'The line was busy.' }).waitFor();
  await page.locator('.facts', { hasText: '<img src=x' }).waitFor();
  await page.locator('.body', { hasText: '<img src=x' }).waitFor();
  await page.locator('.row.notification', { hasText: '500' }).first().waitFor();
  await openRows(page);
  await page.locator('.row .body', { hasText: 'P-Asserted-Identity' }).waitFor();
  await picture(page, 'call-strangers');
  await expectText(page);
}

/**
 * Markup in the transcript, the bot's marks and close reason, ids of commands, and the reason of a
 * refused transfer.
 */
async function answeredCall(stage: Stage, page: Page): Promise<string> {
  const { bot, callee, engine, gateway } = stage;
  const [calls, sessions] = [bot.connections.length, engine.sessions.length];
  const { callId } = await gateway.dialer.dial({
    target: 'tel:+12025550102',
    stream: { url: bot.url },
    machineDetection: 'detect',
    callControlParameter: { sttProvider: 'engine', sttLanguage: 'en-US' },
  });
  const connection = await bot.connection(calls);
  const session = await engine.session(sessions);
  await session.untilHeard(500);
  session.say(markup, { final: true, untilMs: 400 });
  connection.mark(markup);
  await eventually(() => connection.marks.includes(markup), 'the mark comes back');
  const sound = { command: 'play', sound: `https://127.0.0.1:9/${encodeURI(markup)}` };
  await command(stage, callId, sound, { 'idempotency-key': tightMarkup });
  const to = `sip:${tightMarkup.replace(/[<>/]/g, '')}@127.0.0.1:${callee.port}`;
  const transfer = { command: 'transfer', to, keepStream: true, onFailure: 'stay' };
  assert.equal(await command(stage, callId, transfer), 202);
  callee.reply(await callee.take('INVITE'), 486, markup);
  await page.goto(`${stage.base}/console#/calls/${callId}`);
  await page.locator('.row.event', { hasText: 'transfer-failed' }).getByText('<img').waitFor();
  await page.locator('.row.bot', { hasText: 'mark <img' }).waitFor();
  await page.locator('.row.words', { hasText: '<img' }).waitFor();
  await page.locator('.note-lane .tick', { hasText: '<img' }).first().waitFor();
  await page.locator('.verdicts', { hasText: '<img' }).waitFor();
  await page.locator('.ladder.second', { hasText: '<img' }).waitFor();
  await openRows(page);
  await page.locator('.row .body', { hasText: tightMarkup }).waitFor();
  await expectText(page);
  connection.socket.close(1_000, markup.slice(0, 120));
  await untilEnded(page);
  await openRows(page);
  await expectText(page);
  return callId;
}

/** Codes, addresses and words that no gateway writes, in the API's answers. */
async function forgedCall(stage: Stage, page: Page, callId: string): Promise<void> {
  const path = `**/console/api/public/calls/${callId}`;
  const log = `**/calls/${callId}/notifications`;
  const at = new Date(Date.now() - 60_000).toISOString();
  const events = [
    [markup, {}],
    ['amd', { amd: { event: 'amd_machine_detected', reason: markup, elapsedMs: 900 } }],
    ['stream-failed', { reason: markup, willRetry: false }],
    ['transfer-failed', { to: `sip:${markup}`, outcome: markup, reason: markup }],
    ['abandoned', { missing: markup }],
    ['opted-out', { by: markup }],
    ['playback-started', { source: markup, sound: markup }],
    ['playback-finished', { source: markup, sound: markup, reason: markup, playedMs: 1 }],
    ['recording-failed', { reason: markup }],
    [
      'completed',
      { outcome: 'gateway-failure', reason: markup, reasonCode: markup, abandoned: true },
    ],
  ].map(([type, data], index) => ({
    ...{ type, data, eventId: `forged-${index}`, eventSequence: index, time: at },
  }));
  const attempt = { attempt: 1, startedAt: at, durationMs: 1, error: markup, delivered: false };
  const notification = {
    ...{ eventId: 'forged', sequence: 1, state: 'failed', createdAt: at, failure: markup },
    ...{ body: { status: markup }, attempts: [attempt], replays: [{ replayedAt: at, by: markup }] },
  };
  const block = { by: markup, raw: markup };
  await page.route(path, async (route) => {
    const answer = await route.fetch();
    const call = (await answer.json()) as object;
    const forged = { reason: markup, reasonCode: markup, fault: markup, block, timeline: events };
    await route.fulfill({ response: answer, json: { ...call, ...forged } });
  });
  await page.route(log, (route) => route.fulfill({ json: { notifications: [notification] } }));
  await openCall(stage, page, callId);
  await page.locator('.story', { hasText: 'The bot did not come: <img' }).waitFor();
  await page.locator('.row.notification', { hasText: 'given up: <img' }).waitFor();
  await openRows(page);
  await page.locator('.parts', { hasText: 'sent again by <img' }).waitFor();
  await page.locator('.row.event', { hasText: 'Transfer failed' }).hover();
  await page.locator('.instant', { hasText: '<img' }).waitFor();
  await picture(page, 'call-forged');
  await expectText(page);
  for (const one of [path, log]) await page.unroute(one);
}

async function openRows(page: Page): Promise<void> {
  await page.evaluate(
    `document.querySelectorAll('.row > button[aria-expanded="false"]').forEach((one) => one.click())`,
  );
}

async function expectText(page: Page): Promise<void> {
  const found = await page.evaluate(
    "[String(globalThis.stranger), document.querySelectorAll('main img, main script').length]",
  );
  assert.deepEqual(found, ['undefined', 0]);
}

/** A receiver whose status line and answer are markup. */
async function startHostileReceiver() {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () =>
      socket.end(
        `HTTP/1.1 500 ${markup}\r\nX-Error: ${markup}\r\nContent-Length: ${markup.length}\r\n\r\n${markup}`,
      ),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    [Symbol.asyncDispose]: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
      }),
  };
}
