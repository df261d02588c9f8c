// RFC 4475: messages that are valid and look wrong, and messages that are invalid and look right.
// None of them may stop the engine or leave anything behind.

import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exchangeOverTcp } from './fuzz-calls.ts';
import { tortureMessages } from './fuzz-messages.ts';
import { type FuzzStatistics, type FuzzTarget, startFuzzTarget } from './fuzz-target.ts';

describe('RFC 4475 torture messages', () => {
  let target: FuzzTarget;
  let before: FuzzStatistics;

  beforeAll(async () => {
    target = await startFuzzTarget();
    before = target.statistics();
  });

  afterAll(() => target[Symbol.asyncDispose]());

  test('number 49', () => {
    expect(tortureMessages()).toHaveLength(49);
  });

  test.each(tortureMessages())('$name over UDP leaves the engine answering', async ({ bytes }) => {
    target.far.send(bytes);

    await target.stillAnswers();
  });

  test.each(tortureMessages())('$name over TCP leaves the engine answering', async ({ bytes }) => {
    const socket = connect(target.sipPort, '127.0.0.1');
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    socket.end(bytes);
    socket.resume();

    await target.stillAnswers();
    socket.destroy();
  });

  test('leave calls possible, and nothing behind', async () => {
    await target.stillCalls();

    await target.settlesTo(before);
  });
});

describe('RFC 4475 torture messages over TCP, answered on the same connection', () => {
  let target: FuzzTarget;

  beforeAll(async () => {
    target = await startFuzzTarget();
  });

  afterAll(() => target[Symbol.asyncDispose]());

  test.each([
    ['wsinv', '481'], // It is well-formed, and its To tag names a dialog that does not exist.
    ['intmeth', '501'], // No application wants this method.
    ['esc01', '200|486'],
    ['escnull', '200'],
    ['esc02', '501'],
    ['lwsdisp', '200'],
    ['longreq', '200|486'],
    ['semiuri', '200'],
    ['transports', '200'],
    ['mpart01', '200'],
    ['mismatch01', '400'],
    ['mismatch02', '400'],
    ['quotbal', '400'],
    ['scalar02', '400'],
  ])('%s gets the answer %s', async (name, status) => {
    const message = tortureMessages().find((candidate) => candidate.name === name);

    const answers = await exchangeOverTcp(target.sipPort, message?.bytes ?? Buffer.alloc(0), 1);

    expect(answers).toEqual([expect.stringMatching(`^(${status})$`)]);
  });

  test('dblreq counts as two requests', async () => {
    const message = tortureMessages().find((candidate) => candidate.name === 'dblreq');

    const answers = await exchangeOverTcp(target.sipPort, message?.bytes ?? Buffer.alloc(0), 2);

    expect(answers).toEqual(['200', expect.stringMatching('^(200|486)$')]);
  });
});
