import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JetStreamApiError, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { describe, expect, test } from 'vitest';
import { findNatsServer } from '../../src/embedded/nats/nats-program.ts';
import { AcknowledgedPublishing } from '../../src/events/acknowledged-publishing.ts';
import { eventually } from '../support/eventually.ts';
import { freeUdpPort } from '../support/free-port.ts';
import { startTestNats } from '../support/nats.ts';
import { forSuite } from '../support/opened.ts';

const nats = forSuite(startTestNats);

async function newStream() {
  const { nats: connection, manager, prefix } = await nats.connect();
  await manager.streams.add({ name: prefix, subjects: [`${prefix}.>`] });
  const text = async (seq: number) => (await manager.streams.getMessage(prefix, { seq }))?.string();
  return { connection, manager, prefix, text, messages: new AcknowledgedPublishing(connection) };
}

describe('messages for streams', () => {
  test('are stored in the order of the calls, and each call returns its sequence', async () => {
    const { messages, prefix, text } = await newStream();

    const sequences = await Promise.all(
      ['one', 'two', 'three'].map((payload) => messages.put(`${prefix}.a`, payload)),
    );

    expect(sequences).toEqual([1, 2, 3]);
    expect([await text(1), await text(2), await text(3)]).toEqual(['one', 'two', 'three']);
  });

  test('are stored once for each id, and acknowledged each time', async () => {
    const { messages, manager, prefix } = await newStream();

    const first = await messages.put(`${prefix}.a`, 'one', { id: 'id-1' });
    const again = await messages.put(`${prefix}.a`, 'one', { id: 'id-1' });

    expect([first, again]).toEqual([1, 1]);
    expect((await manager.streams.info(prefix)).state.messages).toBe(1);
  });

  test('tell the last sequence of their stream, and whether the stream has used one twice', async () => {
    const { messages, manager, prefix } = await newStream();
    await messages.put(`${prefix}.a`, 'one', { id: 'id-1' });
    await messages.put(`${prefix}.a`, 'two');
    await messages.put(`${prefix}.a`, 'one', { id: 'id-1' });
    expect(messages.acknowledged(prefix)).toMatchObject({ sequence: 2 });
    expect(messages.acknowledged(prefix).reused).toBeUndefined();

    // The stream loses both messages, and stores more than it has lost.
    await manager.streams.delete(prefix);
    await manager.streams.add({ name: prefix, subjects: [`${prefix}.>`] });
    for (const payload of ['three', 'four', 'five']) await messages.put(`${prefix}.a`, payload);
    expect(messages.acknowledged(prefix)).toMatchObject({ sequence: 3, reused: 1 });

    messages.forgetAcknowledged(prefix);
    await messages.put(`${prefix}.a`, 'six');
    expect(messages.acknowledged(prefix)).toMatchObject({ sequence: 4 });
    expect(messages.acknowledged(prefix).reused).toBeUndefined();
  });

  test('carry only the headers that are defined', async () => {
    const { messages, manager, prefix } = await newStream();

    await messages.put(`${prefix}.a`, 'one', {
      headers: { traceparent: 'tp', tracestate: undefined },
    });

    const stored = await manager.streams.getMessage(prefix, { seq: 1 });
    expect(stored?.header.get('traceparent')).toBe('tp');
    expect(stored?.header.has('tracestate')).toBe(false);
  });

  test('are refused if another message is the last of their subject', async () => {
    const { messages, prefix, text } = await newStream();

    await messages.put(`${prefix}.a`, 'one', { expectedLastSequence: 0 });
    const refused = await messages
      .put(`${prefix}.a`, 'two', { expectedLastSequence: 0 })
      .catch((error: unknown) => error);
    await messages.put(`${prefix}.a`, 'three', { expectedLastSequence: 1 });

    expect(refused).toBeInstanceOf(JetStreamApiError);
    expect((refused as JetStreamApiError).code).toBe(10_071);
    expect([await text(1), await text(2)]).toEqual(['one', 'three']);
  });

  test('are rejected if no stream has their subject', async () => {
    const { messages, prefix } = await newStream();

    await expect(messages.put(`other.${prefix}`, 'one')).rejects.toThrow('no stream');
  });

  test('are rejected after their own time-out if the subscriber of their subject does not reply', async () => {
    const { connection, prefix } = await newStream();
    connection.subscribe(`silent.${prefix}`);
    const messages = new AcknowledgedPublishing(connection, 50);

    const silent = messages.put(`silent.${prefix}`, 'one');
    await expect(silent).rejects.toThrow('NATS did not acknowledge the message within 50 ms');
    await expect(messages.put(`silent.${prefix}`, 'two')).rejects.toThrow(
      'NATS did not acknowledge',
    );
  });

  test('are rejected if the reply is not an acknowledgement', async () => {
    const { connection, messages, prefix } = await newStream();
    connection.subscribe(`chatty.${prefix}`, {
      callback: (_, request) => void request.respond(request.string()),
    });

    await expect(messages.put(`chatty.${prefix}`, '{}')).rejects.toThrow('not an acknowledgement');
    await expect(messages.put(`chatty.${prefix}`, 'what?')).rejects.toThrow(SyntaxError);
  });

  test('are rejected if the connection is closed, or if they exceed its maximum size', async () => {
    const { connection, messages, prefix } = await newStream();
    connection.subscribe(`silent.${prefix}`);
    const tooLarge = 'x'.repeat((connection.info?.max_payload ?? 0) + 1);

    await expect(messages.put(`${prefix}.a`, tooLarge)).rejects.toThrow(/max_payload/);
    const waiting = messages.put(`silent.${prefix}`, 'one');
    await Promise.all([expect(waiting).rejects.toThrow('is closed'), connection.close()]);
    await expect(messages.put(`${prefix}.a`, 'two')).rejects.toThrow();
  });

  test('are acknowledged again after the server has revoked and restored the permission', async () => {
    await using server = await startServerWithUser();
    const connection = await connect({
      servers: server.url,
      ...{ user: 'gateway', pass: 'secret', maxReconnectAttempts: -1 },
    });
    const manager = await jetstreamManager(connection);
    await manager.streams.add({ name: 'calls', subjects: ['calls.>'] });
    const messages = new AcknowledgedPublishing(connection, 500);
    const isAcknowledged = async () => {
      const sequence = await messages.put('calls.a', 'one').catch(() => undefined);
      return sequence !== undefined;
    };
    await eventually(isAcknowledged, 'it is acknowledged');

    await server.deny('_INBOX.>');
    await eventually(async () => !(await isAcknowledged()), 'the inbox is closed');
    await server.deny('other');
    await eventually(isAcknowledged, 'it is open again');
    await connection.close();
  });
});

/** Denies its one user to subscribe to the given subject from then on. */
async function startServerWithUser() {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-nats-'));
  const port = await freeUdpPort();
  const file = join(folder, 'nats.conf');
  const configure = (denied: string) =>
    writeFile(
      file,
      `listen: "127.0.0.1:${port}"
       jetstream: { store_dir: "${folder}" }
       authorization: { users: [
         { user: gateway, password: secret, permissions: { subscribe: { deny: ["${denied}"] } } }
       ] }`,
    );
  await configure('other');
  const program = await findNatsServer(undefined, process.env['PATH'] ?? '');
  const server = spawn(program, ['-c', file], { stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  server.stderr.on('data', (chunk: Buffer) => {
    log += chunk.toString();
  });
  await eventually(() => log.includes('Server is ready'), 'nats-server is up');
  return {
    url: `nats://127.0.0.1:${port}`,
    async deny(subject: string): Promise<void> {
      await configure(subject);
      server.kill('SIGHUP');
    },
    async [Symbol.asyncDispose](): Promise<void> {
      const exited = once(server, 'exit');
      server.kill('SIGTERM');
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
