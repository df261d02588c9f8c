// Each event is defined once, in the folder of its feature. The compiler names what an addition
// lacks.

import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { callEventTypes, parseCallEvent } from '../../../src/calls/contract/call-event.ts';
import { lineOf } from '../../../src/calls/contract/event-table.ts';
import { eventBuilder } from '../../support/call-events.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));

type Change = { readonly file: string; readonly after: string; readonly insert: string };
type CompilerError = { readonly file: string; readonly message: string };

/** Compiles a copy of `src` with these changes. Returns its errors. */
async function compileWith(changes: readonly Change[]): Promise<readonly CompilerError[]> {
  const copy = await mkdtemp(join(tmpdir(), 'offhook-contract-'));
  onTestFinished(() => rm(copy, { recursive: true, force: true }));
  await cp(join(root, 'src'), join(copy, 'src'), { recursive: true });
  await cp(join(root, 'tsconfig.json'), join(copy, 'tsconfig.json'));
  await cp(join(root, 'package.json'), join(copy, 'package.json'));
  await symlink(join(root, 'node_modules'), join(copy, 'node_modules'));
  for (const { file, after, insert } of changes) {
    const text = await readFile(join(copy, file), 'utf8');
    expect(text).toContain(after);
    await writeFile(join(copy, file), text.replace(after, `${after}${insert}`));
  }
  const tsc = join(root, 'node_modules', '.bin', 'tsc');
  const output = await promisify(execFile)(tsc, ['--noEmit', '-p', copy], { cwd: copy }).then(
    ({ stdout }) => stdout,
    (error: { readonly stdout: string }) => error.stdout,
  );
  return output
    .split(/^(?=src\/)/m)
    .filter((error) => error.startsWith('src/'))
    .map((error) => ({ file: error.slice(0, error.indexOf('(')), message: error }));
}

describe('the contract', () => {
  test('the compiler names each place that an incomplete addition has to reach', async () => {
    const ofKeys = {
      file: 'src/calls/keys/key-contract.ts',
      after: 'export const keyEvents = {\n',
    };
    const data = "when: 'it was paused', data: { by: z.string() }";
    const lines = "line: ({ by }) => by, watched: () => '', example: { by: 'them' }";
    const seam = 'src/calls/media.ts';
    // One compilation for all of them, as it takes seconds. Their errors are in different files.
    const errors = await compileWith([
      // An event with its lines and its example compiles. Without them it is an error where it
      // stands.
      { ...ofKeys, insert: `  whole: callEvent({ ${data}, ${lines} }),\n` },
      { ...ofKeys, insert: `  incomplete: callEvent({ ${data} }),\n` },
      {
        file: 'src/calls/contract/command.ts',
        after: '  stopCommand,\n',
        insert: "  stopCommand.extend({ command: z.literal('added-command') }),\n",
      },
      {
        file: seam,
        after: 'export type MediaEvent =\n',
        insert: "  | { readonly kind: 'addedMediaEvent' }\n",
      },
      {
        file: seam,
        after: 'export type MediaCommand =\n',
        insert: "  | { readonly kind: 'addedMediaCommand' }\n",
      },
    ]);

    const messages = (file: string) =>
      errors.filter((error) => error.file === file).map(({ message }) => message);
    expect(new Set(errors.map(({ file }) => file))).toEqual(
      new Set([
        ofKeys.file,
        'src/calls/life/call-commands.ts',
        'src/calls/life/call-machine.ts',
        'src/media/rtp/rtp-session.ts',
      ]),
    );
    expect(messages(ofKeys.file)).toEqual([
      expect.stringContaining('is missing the following properties'),
    ]);
    expect(messages('src/calls/life/call-commands.ts')).toEqual([
      expect.stringContaining('added-command'),
    ]);
    // Both states that receive media events need a row: `answered` and `closing`.
    expect(messages('src/calls/life/call-machine.ts')).toEqual([
      expect.stringContaining('addedMediaEvent'),
      expect.stringContaining('addedMediaEvent'),
    ]);
    expect(messages('src/media/rtp/rtp-session.ts')).toEqual([
      expect.stringContaining('addedMediaCommand'),
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
  ])('refuses %s, with the reason', (_, text, reason) => {
    const parsed = parseCallEvent(text);

    expect(parsed).toEqual({
      ok: false,
      reason: typeof reason === 'string' ? reason : expect.stringMatching(reason),
    });
  });

  test('keeps what a later version adds to an event', () => {
    const event = eventBuilder().amd('amd_human_detected');
    const later = { ...event, data: { ...event.data, added: [1] }, alsoAdded: true };

    expect(parseCallEvent(JSON.stringify(later))).toEqual({ ok: true, event: later });
  });

  test('gives a line for people for each event, and an empty line for an unknown type', () => {
    const call = eventBuilder();

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
