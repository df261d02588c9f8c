// RFC 4475: messages that are legal and look wrong, and messages that are wrong and look legal. None may stop the engine,
// none may leave anything behind.

import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tortureMessages } from './fuzz-messages.ts';
import { type FuzzStatistics, type FuzzTarget, startFuzzTarget } from './fuzz-target.ts';

describe('RFC 4475 torture messages', () => {
  let target: FuzzTarget;
  let before: FuzzStatistics;

  beforeAll(async () => {
    target = await startFuzzTarget();
    before = target.statistics();
  });

  afterAll(async () => {
    await target[Symbol.asyncDispose]();
  });

  test('all 49 are here', () => {
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

  test('calls still come and go, and nothing is left', async () => {
    await target.stillCalls();

    await target.settlesTo(before);
  });
});
