import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { maxFrameBytes, type SipLimits } from '../../src/sip/engine/sip-limits.ts';
import { builtInTrunk, type Trunk } from '../../src/sip/trunks/trunks.ts';
import { eventually } from '../support/eventually.ts';
import { one, type RawCallee, type RawMessage } from '../support/raw-callee.ts';
import { openTrunkWorld, type TrunkWorld } from './trunk-world.ts';

const registering: Partial<Trunk> = {
  auth: { username: 'alice', password: 'secret' },
  register: { expiresS: 3_600 },
  fromDomain: 'carrier.example',
};
const withoutDomain: Partial<Trunk> = {
  auth: { username: 'alice', password: 'secret' },
  register: { expiresS: 3_600 },
};
const challenge = {
  headers: ['WWW-Authenticate: Digest realm="lab", nonce="abc", algorithm=MD5'],
};

type LogLine = { readonly level: number; readonly msg: string; readonly reason?: string };

let world: TrunkWorld | undefined;

afterEach(async () => {
  await world?.[Symbol.asyncDispose]();
  world = undefined;
});

async function open(options: {
  readonly trunk?: Partial<Trunk>;
  readonly limits?: Partial<SipLimits>;
  readonly gateways?: number;
}) {
  const log: LogLine[] = [];
  const logger = pino({ level: 'info' }, { write: (line) => log.push(JSON.parse(line)) });
  world = await openTrunkWorld({ gateways: 1, trunk: registering, logger, ...options });
  return { ...world, log, first: world.gateways[0] as RawCallee };
}

/** Time in which an unwanted message would arrive. */
const quietMs = 100;

const cseqOf = (message: RawMessage) => Number.parseInt(one(message, 'cseq'), 10);

describe('registration with a carrier that requires it', () => {
  test("registers the trunk's user with the engine's own address", async () => {
    const { first, engines } = await open({});

    first.reply(await first.take('REGISTER'), 401, 'Unauthorized', challenge);
    const request = await first.take('REGISTER');

    expect(request.startLine).toBe('REGISTER sip:carrier.example SIP/2.0');
    expect(one(request, 'to')).toContain('sip:alice@carrier.example');
    expect(one(request, 'from')).toContain('sip:alice@carrier.example');
    expect(one(request, 'contact')).toBe(`<sip:alice@127.0.0.1:${engines[0]?.sipPort}>`);
    expect(one(request, 'expires')).toBe('3600');
    expect(one(request, 'authorization')).toContain('username="alice"');
    first.reply(request, 200, 'OK', { contact: false });
  });

  test('without `fromDomain` uses the gateway as the domain, with its port only in the request URI', async () => {
    const { first } = await open({ trunk: withoutDomain });

    const request = await first.take('REGISTER');

    expect(request.startLine).toBe(`REGISTER sip:127.0.0.1:${first.port} SIP/2.0`);
    expect(one(request, 'to')).toBe('<sip:alice@127.0.0.1>');
    expect(one(request, 'from')).toMatch(/^<sip:alice@127\.0\.0\.1>;tag=/);
    first.reply(request, 200, 'OK', { contact: false });
  });

  test('logs one error for a request that the engine can never send, until the trunks are read again', async () => {
    const { log, engines, replace } = await open({ trunk: {}, limits: { registerRetryMs: 20 } });
    const [engine] = engines;
    const itself = { host: '127.0.0.1', port: engine?.sipPort ?? 0, transport: 'udp' } as const;
    const refused = () => log.filter(({ reason }) => reason === 'can not send request to myself');

    const { gateways } = builtInTrunk('carrier', itself);
    replace({ ...withoutDomain, gateways });
    await eventually(() => refused().length > 0, 'the refusal is logged');
    await new Promise((resolve) => setTimeout(resolve, quietMs));
    expect(refused().map(({ level }) => level)).toEqual([pino.levels.values['error']]);

    replace({ ...withoutDomain, gateways });
    await eventually(() => refused().length > 1, 'it is tried again');
  });

  test('registers at every gateway, from every engine', async () => {
    const { gateways } = await open({ gateways: 2 });

    for (const gateway of gateways) {
      const request = await gateway.take('REGISTER');
      gateway.reply(request, 200, 'OK', { contact: false });
    }
  });

  test('renews a registration before it expires, in the same series of requests', async () => {
    const { first } = await open({ limits: { registerMinRefreshMs: 20 } });

    const request = await first.take('REGISTER');
    const contact = `${one(request, 'contact')};expires=1`;
    first.reply(request, 200, 'OK', { contact: false, headers: [`Contact: ${contact}`] });
    const renewed = await first.take('REGISTER');

    expect(one(renewed, 'call-id')).toBe(one(request, 'call-id'));
    expect(cseqOf(renewed)).toBeGreaterThan(cseqOf(request));
    first.reply(renewed, 200, 'OK', { contact: false });
  });

  test('retries a registration that failed', async () => {
    const { first } = await open({ limits: { registerRetryMs: 20 } });

    first.reply(await first.take('REGISTER'), 503, 'Service Unavailable');

    first.reply(await first.take('REGISTER'), 200, 'OK', { contact: false });
  });

  test('does not repeat wrong credentials in a loop', async () => {
    const { first, log } = await open({});

    // One request without credentials, and one with them. The next attempt comes `registerRetryMs`
    // later.
    for (let times = 0; times < 2; times += 1) {
      first.reply(await first.take('REGISTER'), 401, 'Unauthorized', challenge);
    }

    await new Promise((resolve) => setTimeout(resolve, quietMs));
    expect(first.has('REGISTER')).toBe(false);
    expect(log.map(({ reason }) => reason)).toContain('401 (the credentials were refused)');
  });

  test('registers again after a nonce that is too large for a control frame', async () => {
    const { first, log } = await open({ limits: { registerRetryMs: 20 } });
    const digest = (nonce: string) => ({
      headers: [`WWW-Authenticate: Digest realm="lab", nonce="${nonce}"`],
    });

    const request = await first.take('REGISTER');
    first.reply(request, 401, 'Unauthorized', digest('n'.repeat(maxFrameBytes)));
    const retry = await first.take('REGISTER');
    expect(one(retry, 'authorization')).toBe('');
    first.reply(retry, 401, 'Unauthorized', digest('abc'));
    first.reply(await first.take('REGISTER'), 200, 'OK', { contact: false });

    await eventually(() => log.some(({ msg }) => msg === 'registered'), 'it is registered');
  });

  test('requests a longer expiry after a 423', async () => {
    const { first } = await open({ limits: { registerMinRefreshMs: 20 } });
    const headers = ['Min-Expires: 7200'];

    first.reply(await first.take('REGISTER'), 423, 'Interval Too Brief', { headers });
    const request = await first.take('REGISTER');

    expect(one(request, 'expires')).toBe('7200');
    first.reply(request, 200, 'OK', { contact: false });
  });

  test.each([
    ['a granted time beyond every timer', 200, 'Expires: 999999999'],
    ['a requested time beyond every timer', 423, 'Min-Expires: 999999999'],
  ])('%s does not cause a loop', async (_name, status, header) => {
    const { first } = await open({ limits: { registerMinRefreshMs: 1 } });

    const request = await first.take('REGISTER');
    first.reply(request, status, 'Whatever', { contact: false, headers: [header] });

    await new Promise((resolve) => setTimeout(resolve, quietMs));
    expect(first.has('REGISTER')).toBe(false);
  });

  test('registers nothing for a trunk without `register`, and stops when a trunk loses it', async () => {
    const { first, replace } = await open({ limits: { registerRetryMs: 20 } });
    const request = await first.take('REGISTER');

    replace({});
    first.reply(request, 503, 'Service Unavailable');

    await new Promise((resolve) => setTimeout(resolve, quietMs));
    expect(first.has('REGISTER')).toBe(false);
  });
});
