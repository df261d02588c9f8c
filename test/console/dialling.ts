// The dial form when an answer is lost or the gateway refuses: the form keeps what was typed, a
// retry sends the same request, and no phone is called twice without a question.

import assert from 'node:assert/strict';
import type { Page, Request } from 'playwright-core';
import { picture } from './pictures.ts';
import { accessible, type Stage, say, signInBy } from './stage.ts';

const dialout = '**/contactcenter/dialout';

export async function dialWithCare(stage: Stage): Promise<void> {
  const context = await stage.open();
  const page = await context.newPage();
  await signInBy(stage.gateway, page, stage.base);
  await retryAfterLostAnswer(stage, page);
  await editAfterLostAnswer(stage, page);
  await lostAnswerOfAnotherForm(stage, page);
  await refusal(page);
  await context.close();
}

/** The form keeps what was typed instead of its defaults, and sends it again under the same key. */
async function retryAfterLostAnswer(stage: Stage, page: Page): Promise<void> {
  const typed = { Target: '+12025550140', Caller: '+15550001111', Bot: 'typed-bot' };
  await open(stage, page, typed);
  const requests = collectDialouts(page);
  await loseNextAnswer(page);
  await press(page, 'Place the call');
  await page.getByRole('alert').getByText('no phone is called twice').waitFor();
  await picture(page, 'dial-answer-lost');
  await accessible(page, 'a dial form whose answer was lost');
  await expectFields(page, typed);
  await press(page, 'Place the call');
  await page.waitForURL(/#\/calls\/call-/);
  const [first, second, ...more] = requests.map(sent);
  assert.equal(more.length, 0);
  assert.deepEqual(second, first, 'the retry is the same request under the same key');
  assert.equal(await placedTo(stage, typed.Target), 1);
  say('a retry after a lost answer sends what was typed, again, under the same key');
}

/**
 * An edit makes the request another call: the page asks first, and can send the earlier request
 * again.
 */
async function editAfterLostAnswer(stage: Stage, page: Page): Promise<void> {
  const target = '+12025550141';
  await open(stage, page, { Target: target, Caller: '+15550002222' });
  const requests = collectDialouts(page);
  await loseNextAnswer(page);
  await press(page, 'Place the call');
  await page.getByRole('alert').getByText('no phone is called twice').waitFor();
  await page.getByLabel('Caller').fill('+15550003333');
  await press(page, 'Place the call');
  await page.getByRole('alert').getByText("we don't know whether the call was placed").waitFor();
  await page.getByRole('alert').getByText(target).waitFor();
  await picture(page, 'dial-question');
  await accessible(page, 'a dial form that asks');
  assert.equal(requests.length, 1, 'nothing is sent before the answer');
  // The form is changed back to the request that was sent: this is a retry without a question.
  await page.getByLabel('Caller').fill('+15550002222');
  await page.getByRole('button', { name: 'Place another call' }).waitFor({ state: 'detached' });
  await page.getByLabel('Caller').fill('+15550003333');
  await press(page, 'Place the call');
  await press(page, 'Send the earlier request');
  await page.waitForURL(/#\/calls\/call-/);
  assert.deepEqual(sent(requests[1]), sent(requests[0]));
  assert.equal(await placedTo(stage, target), 1);
  say('an edit after a lost answer asks, and the earlier request can be sent again');

  await open(stage, page, { Target: '+12025550142' });
  await loseNextAnswer(page);
  await press(page, 'Place the call');
  await page.getByRole('alert').getByText('no phone is called twice').waitFor();
  await page.getByLabel('Target').fill('+12025550143');
  await press(page, 'Place the call');
  await press(page, 'Place another call');
  await page.waitForURL(/#\/calls\/call-/);
  const [former, other] = requests.slice(-2).map(sent);
  assert.notEqual(other?.key, former?.key, 'another call has another key');
  assert.equal(await placedTo(stage, '+12025550142'), 1);
  assert.equal(await placedTo(stage, '+12025550143'), 1);
  say('another call is placed only after the page has said what may happen');
}

/** A new form dials the same phone with another member changed: the phone would ring twice. */
async function lostAnswerOfAnotherForm(stage: Stage, page: Page): Promise<void> {
  const target = '+12025550144';
  await open(stage, page, { Target: target, Caller: '+15550004444' });
  await loseNextAnswer(page);
  await press(page, 'Place the call');
  await page.getByRole('alert').getByText('no phone is called twice').waitFor();
  await press(page, 'Cancel');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await open(stage, page, { Target: target });
  await press(page, 'Place the call');
  await page.getByRole('alert').getByText(target).waitFor();
  await press(page, 'Send the earlier request');
  await page.waitForURL(/#\/calls\/call-/);
  assert.equal(await placedTo(stage, target), 1);
  say('a new form asks before it calls a phone that may have been called already');
}

async function refusal(page: Page): Promise<void> {
  const typed = {
    Target: '+12025550145',
    Caller: '+15550005555',
    Bot: 'typed-bot',
    'Machine detection': 'disabled',
  };
  await page.goto(`${page.url().split('#')[0]}#/calls`);
  await page.getByRole('button', { name: 'Dial', exact: true }).click();
  await type(page, typed);
  await page.getByText('Trunk, bot audio, connecting').click();
  await page.getByLabel('Audio to').fill('nowhere');
  await press(page, 'Place the call');
  await page.getByRole('alert').getByText('The call was not placed.').waitFor();
  await page.locator('input[name="stream.url"][aria-invalid]:focus').waitFor();
  await picture(page, 'dial-refused');
  await expectFields(page, typed);
  await press(page, 'Cancel');
  say('a refusal leaves what was typed');
}

// ── The form ──────────────────────────────────────────────────────────────────────────────────

type Typed = Readonly<Record<string, string>>;

async function open({ base }: Stage, page: Page, typed: Typed): Promise<void> {
  await page.goto(`${base}/console#/calls`);
  await page.getByRole('button', { name: 'Dial', exact: true }).click();
  await type(page, typed);
}

async function type(page: Page, typed: Typed): Promise<void> {
  for (const [label, value] of Object.entries(typed)) {
    const field = page.getByRole('dialog').getByLabel(label);
    if (label === 'Machine detection') await field.selectOption(value);
    else await field.fill(value);
  }
}

async function press(page: Page, name: string): Promise<void> {
  await page.getByRole('dialog').getByRole('button', { name }).click();
}

async function expectFields(page: Page, typed: Typed): Promise<void> {
  for (const [label, value] of Object.entries(typed)) {
    assert.equal(await page.getByRole('dialog').getByLabel(label).inputValue(), value, label);
  }
}

// ── Requests ──────────────────────────────────────────────────────────────────────────────────

/** The gateway gets the next request, but the page gets no answer. */
async function loseNextAnswer(page: Page): Promise<void> {
  await page.route(
    dialout,
    async (route) => {
      await route.fetch();
      await route.abort('internetdisconnected');
    },
    { times: 1 },
  );
}

function collectDialouts(page: Page): readonly Request[] {
  const requests: Request[] = [];
  page.on('request', (request) => {
    if (request.url().endsWith('/contactcenter/dialout')) requests.push(request);
  });
  return requests;
}

function sent(request: Request | undefined) {
  return {
    url: request?.url(),
    body: request?.postData(),
    key: request?.headers()['idempotency-key'],
  };
}

async function placedTo({ gateway: { dialer } }: Stage, target: string): Promise<number> {
  const { body } = await dialer.request('GET', '/api/public/calls?limit=200');
  const { calls } = body as { readonly calls: readonly { readonly target: string }[] };
  return calls.filter((call) => call.target === `tel:${target}`).length;
}
