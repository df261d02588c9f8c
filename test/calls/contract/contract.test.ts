// An event is written once, in the folder of its feature, and a command is missed where its handler is looked up.

import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { callEventTypes, parseCallEvent } from '../../../src/calls/contract/call-event.ts';
import { lineOf } from '../../../src/calls/contract/event-table.ts';
import { eventTeller } from '../../support/call-events.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));

/** The files that do not compile after a change of one of them. */
async function brokenBy(change: {
  readonly file: string;
  readonly after: string;
  readonly insert: string;
}): Promise<readonly string[]> {
  const copy = await mkdtemp(join(tmpdir(), 'offhook-contract-'));
  onTestFinished(() => rm(copy, { recursive: true, force: true }));
  await cp(join(root, 'src'), join(copy, 'src'), { recursive: true });
  await cp(join(root, 'tsconfig.json'), join(copy, 'tsconfig.json'));
  await cp(join(root, 'package.json'), join(copy, 'package.json'));
  await symlink(join(root, 'node_modules'), join(copy, 'node_modules'));
  const { file, after, insert } = change;
  const text = await readFile(join(copy, file), 'utf8');
  expect(text).toContain(after);
  await writeFile(join(copy, file), text.replace(after, `${after}${insert}`));
  const tsc = join(root, 'node_modules', '.bin', 'tsc');
  const output = await promisify(execFile)(tsc, ['--noEmit', '-p', copy], { cwd: copy }).then(
    ({ stdout }) => stdout,
    (error: { readonly stdout: string }) => error.stdout,
  );
  const files = [...output.matchAll(/^(src\/[^(]+)\(/gm)].map((match) => match[1] ?? '');
  return [...new Set(files)];
}

describe('the contract', () => {
  const ofKeys = { file: 'src/calls/keys/key-contract.ts', after: 'export const keyEvents = {\n' };
  const data = 'data: { by: z.string() }';
  const rest = "line: ({ by }) => by, watched: () => '', example: { by: 'them' }";

  test('an event without its lines and its example does not compile, there and nowhere else', async () => {
    const insert = `  paused: callEvent({ when: 'it was paused', ${data} }),\n`;

    expect(await brokenBy({ ...ofKeys, insert })).toEqual([ofKeys.file]);
  });

  test('an event that has them is missed nowhere', async () => {
    const insert = `  paused: callEvent({ when: 'it was paused', ${data}, ${rest} }),\n`;

    expect(await brokenBy({ ...ofKeys, insert })).toEqual([]);
  });

  test('a command more is missed among the handlers, and nowhere else', async () => {
    const file = 'src/calls/contract/command.ts';
    const insert = "  stopCommand.extend({ command: z.literal('unheard-of') }),\n";

    expect(await brokenBy({ file, after: '  stopCommand,\n', insert })).toEqual([
      'src/calls/life/call-commands.ts',
    ]);
  });

  test('an event of the media more is missed by the machine', async () => {
    const file = 'src/calls/media.ts';
    const insert = "  | { readonly kind: 'unheardOf' }\n";

    expect(await brokenBy({ file, after: 'export type MediaEvent =\n', insert })).toEqual([
      'src/calls/life/call-machine.ts',
    ]);
  });

  test('a command to the media more is missed by the session', async () => {
    const file = 'src/calls/media.ts';
    const insert = "  | { readonly kind: 'unheardOf' }\n";

    expect(await brokenBy({ file, after: 'export type MediaCommand =\n', insert })).toEqual([
      'src/media/rtp/rtp-session.ts',
    ]);
  });

  test('the page on events names every type', async () => {
    const page = await readFile(join(root, 'src/events/README.md'), 'utf8');
    const [, table = ''] = /<!-- events -->([\s\S]*?)<!-- \/events -->/.exec(page) ?? [];
    const named = [...table.matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, type = '']) => type);

    expect([...named].sort()).toEqual([...callEventTypes].sort());
  });

  test.each([
    ['not JSON', '{', 'not JSON'],
    ['no event', '[]', 'an event without a type'],
    ['a type of a later version', '{"type":"paused"}', 'unknown event type "paused"'],
    ['an event without its data', '{"type":"dtmf"}', /callId[\s\S]*data/],
  ])('%s is refused, with the reason', (_, text, reason) => {
    const parsed = parseCallEvent(text);

    expect(parsed).toEqual({
      ok: false,
      reason: typeof reason === 'string' ? reason : expect.stringMatching(reason),
    });
  });

  test('what a later version adds to an event is kept', () => {
    const event = eventTeller().amd('amd_human_detected');
    const later = { ...event, data: { ...event.data, added: [1] }, alsoAdded: true };

    expect(parseCallEvent(JSON.stringify(later))).toEqual({ ok: true, event: later });
  });

  test('each event is a line for people, and an unknown one an empty line', () => {
    const call = eventTeller();

    expect(
      [
        call.dialing(),
        call.ringing(),
        call.amd('amd_stopped'),
        call.completed(),
        call.failed(),
      ].map(({ type, data }) => lineOf(type, data)),
    ).toEqual([
      'by no trunk to sandbox',
      '180 Ringing',
      'amd_stopped',
      '200 OK, Caller-disconnected, 12.400 s, amd_human_detected',
      '486 Busy Here, Busy here',
    ]);
    expect(lineOf('paused', {})).toBe('');
    expect(lineOf('ringing', { sipStatus: 'soon' })).toBe('');
  });
});
