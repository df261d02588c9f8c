// The whole gateway sends keys over a trunk that expects SIP INFO.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Dialer } from '../support/dialer-client.ts';
import { eventually } from '../support/eventually.ts';
import { type Laptop, startLaptop } from '../support/laptop.ts';
import { one } from '../support/raw-callee.ts';
import { hearEachOther } from '../support/streams/bridged.ts';
import { StreamCallee, type WaitingCallee } from '../support/streams/stream-callee.ts';

let phones: WaitingCallee;
let guests: WaitingCallee;
let agents: WaitingCallee;
let laptop: Laptop;
let dialer: Dialer;
let folder: string;
beforeAll(async () => {
  phones = await StreamCallee.waiting();
  [guests, agents] = [await StreamCallee.waiting(), await StreamCallee.waiting()];
  folder = await mkdtemp(join(tmpdir(), 'offhook-keys-'));
  const file = join(folder, 'trunks.yaml');
  const gatewaysOf = ({ target }: WaitingCallee) =>
    `gateways: [{ host: 127.0.0.1, port: ${/:(\d+)$/.exec(target)?.[1]} }]`;
  await writeFile(
    file,
    [
      'trunks:',
      `  - { name: phones, default: true, dtmf: info, ${gatewaysOf(phones)} }`,
      `  - { name: guests, dtmf: info, ${gatewaysOf(guests)} }`,
      `  - { name: agents, ${gatewaysOf(agents)} }`,
    ].join('\n'),
  );
  laptop = await startLaptop({ TRUNKS_FILE: file, NOTIFY_ALLOWED_NETWORKS: '127.0.0.0/8' });
  dialer = laptop.gateway.dialer;
}, 120_000);
afterAll(async () => {
  await laptop.close();
  await rm(folder, { recursive: true });
});

describe('keys over a trunk with dtmf: info', () => {
  test('arrive as INFO, one after the other, at a phone whose SDP takes no keys', async () => {
    const { callId } = await laptop.dial('tel:+12025550100', {
      ...{ machineDetection: 'disabled', trunk: 'phones' },
    });
    await using phone = await phones.called();
    await phone.answerVoiceOnly();
    const typesOf = () =>
      laptop.events.filter((event) => event.callId === callId).map(({ type }) => type);
    await eventually(() => typesOf().includes('answered'), 'the call is answered');
    const press = (digits: string, id: string) =>
      dialer.command(callId, { command: 'dtmf', digits, durationMs: 60, id });
    const sent = () =>
      laptop.events.filter((event) => event.type === 'dtmf-sent').map(({ data }) => data);

    expect(await press('4w#', 'menu')).toMatchObject({ status: 202 });
    const first = await phone.isPressed();
    expect(first.body).toBe('Signal=4\r\nDuration=60\r\n');
    expect(one(first, 'content-type')).toBe('application/dtmf-relay');
    expect((await phone.isPressed()).body).toBe('Signal=#\r\nDuration=60\r\n');
    await eventually(() => sent().length === 1, 'dtmf-sent is published');

    // The gateway sends no key after a key that the phone rejects.
    await press('12', 'refused');
    expect((await phone.isPressed(415, 'Unsupported Media Type')).body).toContain('Signal=1');
    await eventually(() => sent().length === 2, 'the second dtmf-sent is published');
    expect(sent()).toEqual([
      { commandId: 'menu', digits: '4w#', complete: true },
      { commandId: 'refused', digits: '', complete: false },
    ]);

    // The phone hangs up while a key is on its way. dtmf-sent comes before the end of the call.
    await press('9', 'late');
    phone.hangUp();
    await eventually(() => typesOf().includes('completed'), 'the call has ended');
    expect(sent().at(-1)).toMatchObject({ commandId: 'late' });
    expect(typesOf().slice(-2)).toEqual(['dtmf-sent', 'completed']);
  });

  test('of the other end of a bridge also arrive as INFO, and that end gets keys in the form that it accepts', async () => {
    const { callId } = await laptop.dial('tel:+12025550101', {
      ...{ machineDetection: 'disabled', trunk: 'guests' },
      bridge: { to: 'tel:+12025550102', trunk: 'agents' },
    });
    await using person = await guests.called();
    await person.answerVoiceOnly();
    await using agent = await agents.called();
    await agent.answer();
    const typesOf = () =>
      laptop.events.filter((event) => event.callId === callId).map(({ type }) => type);
    await eventually(() => typesOf().includes('transfer-answered'), 'the call is bridged');

    await hearEachOther(person, agent);
    agent.press(5);
    expect((await person.isPressed()).body).toMatch(/^Signal=5\r\n/);
    agent.info('*');
    expect((await person.isPressed()).body).toBe('Signal=*\r\nDuration=160\r\n');
    person.info('3');
    const keys = () => agent.packets.filter(({ payloadType }) => payloadType === 101);
    await eventually(() => keys().length > 3, 'the agent receives the key');
    expect(new Set(keys().map(({ payload }) => payload[0]))).toEqual(new Set([3]));

    agent.hangUp();
    await person.isHungUp();
    await eventually(() => typesOf().includes('completed'), 'the call has ended');
    // No command sent a key.
    expect(typesOf()).not.toContain('dtmf-sent');
  });
});
