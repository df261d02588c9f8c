// Digest authentication on the wire (RFC 3261, 22; RFC 7616; RFC 8760): what a carrier challenges,
// and how the gateway answers.

import { describe, expect, onTestFinished, test } from 'vitest';
import type { Trunk } from '../../src/sip/trunks/trunks.ts';
import { answer, offer, openTrunkWorld, type TrunkWorld } from '../sip/trunk-world.ts';
import { credentialsIn, responseFor } from '../support/digest-check.ts';
import { eventually } from '../support/eventually.ts';
import { one, type RawCallee, type RawMessage } from '../support/raw-callee.ts';

const alice = { username: 'alice', password: 'wonder"land' };

type Kind = 'www' | 'proxy';

const challengeHeader = { www: 'WWW-Authenticate', proxy: 'Proxy-Authenticate' } as const;
const answerHeader = { www: 'Authorization', proxy: 'Proxy-Authorization' } as const;

/** Time in which an unwanted message would arrive. */
const quietMs = 100;

async function open(trunk: Partial<Trunk> = {}) {
  const world = await openTrunkWorld({ gateways: 1, trunk: { auth: alice, ...trunk } });
  onTestFinished(async () => await world[Symbol.asyncDispose]());
  return { ...world, callee: world.gateways[0] as RawCallee };
}

function challenge(
  callee: RawCallee,
  request: RawMessage,
  kind: Kind,
  ...challenges: readonly string[]
): void {
  const [status, reason] =
    kind === 'www'
      ? ([401, 'Unauthorized'] as const)
      : ([407, 'Proxy Authentication Required'] as const);
  const headers = challenges.map((value) => `${challengeHeader[kind]}: ${value}`);
  callee.reply(request, status, reason, { headers, contact: false });
}

/** Expects one header line with credentials that the password proves, and returns them. */
function expectProof(request: RawMessage, kind: Kind, realm = 'carrier') {
  const all = credentialsIn(request, answerHeader[kind]);
  const given = all.filter((credentials) => credentials['realm'] === realm);
  expect(given, `credentials for ${realm}`).toHaveLength(1);
  const [credentials = {}] = given;
  expect(credentials['username']).toBe(alice.username);
  expect(credentials['uri']).toBe(request.startLine.split(' ')[1]);
  const response = responseFor(credentials, alice, { method: request.method, body: request.body });
  expect(credentials['response']).toBe(response);
  return credentials;
}

/** Takes the repetition of a challenged request, which is the next request of the same series. */
async function takeRepetition(callee: RawCallee, challenged: RawMessage): Promise<RawMessage> {
  const repeated = await callee.take(challenged.method);
  expect(repeated.startLine).toBe(challenged.startLine);
  expect(repeated.body).toBe(challenged.body);
  for (const name of ['call-id', 'from', 'contact']) {
    expect(one(repeated, name), name).toBe(one(challenged, name));
  }
  expect(cseqOf(repeated)).toBe(cseqOf(challenged) + 1);
  expect(one(repeated, 'via')).not.toBe(one(challenged, 'via'));
  return repeated;
}

const cseqOf = (message: RawMessage) => Number.parseInt(one(message, 'cseq'), 10);

/** An answered call whose INVITE wasn't challenged. */
async function talking(world: TrunkWorld & { readonly callee: RawCallee }, headers: string[] = []) {
  const { callee } = world;
  const { leg, observer } = world.place();
  const invite = await callee.take('INVITE');
  callee.reply(invite, 200, 'OK', { body: answer, headers });
  await observer.until('answered');
  leg.acknowledge();
  await callee.take('ACK');
  return { leg, observer, invite };
}

describe('a challenged INVITE', () => {
  test.each(
    (['www', 'proxy'] as const).flatMap((kind) =>
      ['MD5', 'MD5-sess', 'SHA-256', 'SHA-256-sess', 'SHA-512-256'].map((algorithm) => ({
        ...{ kind, algorithm },
      })),
    ),
  )(
    'is repeated with $algorithm ($kind), and so are its ACK and BYE',
    async ({ kind, algorithm }) => {
      const world = await open();
      const { callee } = world;
      const { leg, observer } = world.place();
      const challenged = await callee.take('INVITE');
      expect(credentialsIn(challenged, answerHeader[kind])).toEqual([]);
      const offered = `Digest realm="carrier", qop="auth", algorithm=${algorithm}, opaque="o\\"1"`;
      challenge(callee, challenged, kind, `${offered}, nonce="n1"`);
      await callee.take('ACK');

      const invite = await takeRepetition(callee, challenged);
      expect(expectProof(invite, kind)).toMatchObject({
        ...{ algorithm, qop: 'auth', nonce: 'n1', nc: '00000001', opaque: 'o\\"1' },
      });
      callee.reply(invite, 180, 'Ringing');
      callee.reply(invite, 200, 'OK', { body: answer });
      await observer.until('answered');
      leg.acknowledge();
      const ack = await callee.take('ACK');
      expect(one(ack, answerHeader[kind].toLowerCase())).toBe(
        one(invite, answerHeader[kind].toLowerCase()),
      );
      leg.hangUp('done');
      const bye = await callee.take('BYE');
      challenge(callee, bye, kind, `${offered}, nonce="n2"`);
      const repeatedBye = await takeRepetition(callee, bye);
      expect(expectProof(repeatedBye, kind)).toMatchObject({ nonce: 'n2', nc: '00000001' });
      expect(one(repeatedBye, 'to')).toBe(one(bye, 'to'));
      callee.reply(repeatedBye, 200, 'OK', { contact: false });
      await leg.released;

      expect(observer.kinds()).toEqual(['sent', 'resent', '180', 'answered', 'ended']);
      expect((await observer.until('answered')).leg.inviteCseq).toBe(cseqOf(invite));
    },
  );

  test.each([
    ['auth', 'qop="auth"', 'auth'],
    ['auth-int with the hash of the SDP', 'qop="auth-int"', 'auth-int'],
    ['auth if both are offered', 'qop="auth-int,auth"', 'auth'],
    ['neither, as before RFC 2617', 'opaque=""', undefined],
  ])('is repeated with qop %s', async (_name, parameter, qop) => {
    const world = await open();
    const { callee } = world;
    const { leg } = world.place();
    const challenged = await callee.take('INVITE');
    const digest = `Digest realm="carrier", nonce="n1", algorithm=SHA-256, ${parameter}`;
    challenge(callee, challenged, 'www', digest);

    const invite = await takeRepetition(callee, challenged);

    expect(invite.body).toBe(offer);
    expect(expectProof(invite, 'www')['qop']).toBe(qop);
    callee.reply(invite, 486, 'Busy Here');
    await leg.released;
  });

  const md5 = 'Digest realm="carrier", nonce="m", algorithm=MD5, qop="auth"';
  const sha = 'Digest realm="carrier", nonce="s", algorithm=SHA-256, qop="auth"';
  const unknown = 'Digest realm="carrier", nonce="u", algorithm=SHA3-512, qop="auth"';
  const unknownQop = 'Digest realm="carrier", nonce="q", algorithm=SHA-256, qop="auth-conf"';
  const basic = 'Basic realm="carrier"';

  test.each([
    ['SHA-256 before MD5, on two lines', [sha, md5], 'SHA-256'],
    ['MD5 before SHA-256, on two lines', [md5, sha], 'MD5'],
    ['SHA-256 before MD5, on one line', [`${sha}, ${md5}`], 'SHA-256'],
    ['an unknown algorithm first', [unknown, sha, md5], 'SHA-256'],
    ['an unknown qop and another scheme first', [basic, unknownQop, md5], 'MD5'],
  ])(
    'is answered with the first challenge that we support: %s',
    async (_name, offered, expected) => {
      const world = await open();
      const { callee } = world;
      const { leg } = world.place();
      const challenged = await callee.take('INVITE');
      challenge(callee, challenged, 'proxy', ...offered);

      const invite = await takeRepetition(callee, challenged);

      expect(expectProof(invite, 'proxy')['algorithm']).toBe(expected);
      callee.reply(invite, 486, 'Busy Here');
      await leg.released;
    },
  );

  test('is not repeated if no challenge is supported, and the reason says so', async () => {
    const world = await open();
    const { callee } = world;
    const { leg, observer } = world.place();
    challenge(callee, await callee.take('INVITE'), 'www', unknown, basic);

    expect((await observer.until('failed')).failure).toMatchObject({
      ...{ sipStatus: 401, kind: 'response' },
      reason: 'Unauthorized (no digest challenge that the gateway supports)',
    });
    await leg.released;
    expect(callee.has('INVITE')).toBe(false);
  });

  test('is answered by the carrier behind two realms, one after the other', async () => {
    const world = await open();
    const { callee } = world;
    const { leg, observer } = world.place();
    const first = await callee.take('INVITE');
    challenge(callee, first, 'proxy', 'Digest realm="edge", nonce="e1", qop="auth"');
    const second = await takeRepetition(callee, first);
    expectProof(second, 'proxy', 'edge');
    challenge(callee, second, 'www', sha);
    const third = await takeRepetition(callee, second);

    expect(expectProof(third, 'proxy', 'edge')).toMatchObject({ nonce: 'e1', nc: '00000002' });
    expectProof(third, 'www');
    challenge(callee, third, 'proxy', 'Digest realm="core", nonce="c1", algorithm=SHA-256');
    const fourth = await takeRepetition(callee, third);
    // Each realm has a header line of its own (RFC 3261, 7.3.1).
    expect(expectProof(fourth, 'proxy', 'edge')['nc']).toBe('00000003');
    expectProof(fourth, 'proxy', 'core');
    expect(expectProof(fourth, 'www')['nc']).toBe('00000002');

    callee.reply(fourth, 200, 'OK', { body: answer });
    await observer.until('answered');
    leg.acknowledge();
    await eventually(() => callee.has('ACK'), 'the ACK arrives');
    const isAnswerAck = ({ method, headers }: RawMessage) =>
      method === 'ACK' && headers.get('proxy-authorization')?.length === 2;
    await eventually(() => callee.inbox.some(isAnswerAck), 'the ACK has both credentials');
    leg.hangUp('done');
    callee.reply(await callee.take('BYE'), 200, 'OK', { contact: false });
    await leg.released;
  });

  test('answers several realms of one response at once', async () => {
    const world = await open();
    const { callee } = world;
    const { leg } = world.place();
    const challenged = await callee.take('INVITE');
    const other = 'Digest realm="edge", nonce="e1", algorithm=SHA-256, qop="auth"';
    challenge(callee, challenged, 'proxy', md5, other, sha);

    const invite = await takeRepetition(callee, challenged);

    expect(expectProof(invite, 'proxy')['algorithm']).toBe('MD5');
    expect(expectProof(invite, 'proxy', 'edge')['algorithm']).toBe('SHA-256');
    callee.reply(invite, 486, 'Busy Here');
    await leg.released;
  });

  test.each(['stale=true', 'stale="TRUE"', 'Stale=True'])(
    'answers a nonce with %s again',
    async (stale) => {
      const world = await open();
      const { callee } = world;
      const { leg } = world.place();
      const first = await callee.take('INVITE');
      challenge(callee, first, 'www', 'Digest realm="carrier", nonce="n1", qop="auth"');
      const second = await takeRepetition(callee, first);
      challenge(callee, second, 'www', `Digest realm="carrier", nonce="n2", qop="auth", ${stale}`);

      const third = await takeRepetition(callee, second);

      expect(expectProof(third, 'www')).toMatchObject({ nonce: 'n2', nc: '00000001' });
      callee.reply(third, 486, 'Busy Here');
      await leg.released;
    },
  );

  test.each([
    ['a new nonce that is not stale', 'nonce="n2"'],
    ['the same nonce, which it calls stale', 'nonce="n1", stale=true'],
  ])('a wrong password ends the call after one repetition: %s', async (_name, again) => {
    const world = await open();
    const { callee } = world;
    const { leg, observer } = world.place();
    const first = await callee.take('INVITE');
    challenge(callee, first, 'www', 'Digest realm="carrier", nonce="n1", qop="auth"');
    const second = await takeRepetition(callee, first);
    challenge(callee, second, 'www', `Digest realm="carrier", qop="auth", ${again}`);

    expect((await observer.until('failed')).failure).toMatchObject({
      ...{ sipStatus: 401, kind: 'response' },
      reason: 'Unauthorized (the credentials were refused)',
    });
    await leg.released;
    expect(callee.has('INVITE')).toBe(false);
  });

  test('a nonce that stays stale ends the call after four repetitions', async () => {
    const world = await open();
    const { callee } = world;
    const { leg, observer } = world.place();
    let invite = await callee.take('INVITE');
    for (let round = 0; round < 5; round += 1) {
      const digest = `Digest realm="carrier", nonce="n${round}", qop="auth", stale=true`;
      challenge(callee, invite, 'proxy', digest);
      if (round < 4) invite = await takeRepetition(callee, invite);
    }

    expect((await observer.until('failed')).failure).toMatchObject({ sipStatus: 407 });
    await leg.released;
    expect(callee.has('INVITE')).toBe(false);
  });

  test('a new nonce after a response from behind the proxy is no refusal', async () => {
    const world = await open({ sessionTimer: { expiresS: 600, minS: 90 } });
    const { callee } = world;
    const { leg } = world.place();
    const first = await callee.take('INVITE');
    challenge(callee, first, 'proxy', 'Digest realm="carrier", nonce="n1"');
    const second = await takeRepetition(callee, first);
    callee.reply(second, 422, 'Session Interval Too Small', { headers: ['Min-SE: 1200'] });
    const third = await takeRepetition(callee, second);
    challenge(callee, third, 'proxy', 'Digest realm="carrier", nonce="n2"');

    const fourth = await takeRepetition(callee, third);

    expect(expectProof(fourth, 'proxy')['nonce']).toBe('n2');
    expect(one(fourth, 'session-expires')).toBe(one(third, 'session-expires'));
    callee.reply(fourth, 486, 'Busy Here');
    await leg.released;
  });

  test('is not repeated for a call that was cancelled in the meantime', async () => {
    const world = await open();
    const { callee } = world;
    const { leg, observer } = world.place();
    const invite = await callee.take('INVITE');
    callee.reply(invite, 100, 'Trying');
    await observer.until('sent');
    leg.cancel('changed my mind');
    callee.reply(await callee.take('CANCEL'), 200, 'OK', { contact: false });

    challenge(callee, invite, 'proxy', sha);

    await leg.released;
    await new Promise((resolve) => setTimeout(resolve, quietMs));
    expect(callee.has('INVITE')).toBe(false);
    expect((await observer.until('failed')).failure.kind).toBe('cancelled');
  });

  test('is cancelled in its last transaction', async () => {
    const world = await open();
    const { callee } = world;
    const { leg, observer } = world.place();
    const first = await callee.take('INVITE');
    challenge(callee, first, 'proxy', sha);
    const invite = await takeRepetition(callee, first);
    callee.reply(invite, 180, 'Ringing');
    await observer.until('provisional');

    leg.cancel('changed my mind');

    const cancel = await callee.take('CANCEL');
    expect(one(cancel, 'cseq')).toBe(`${cseqOf(invite)} CANCEL`);
    expect(branchOf(cancel)).toBe(branchOf(invite));
    callee.reply(cancel, 200, 'OK', { contact: false });
    callee.reply(invite, 487, 'Request Terminated');
    await leg.released;
    expect(callee.has('INVITE')).toBe(false);
  });

  test('without credentials in the trunk, is final', async () => {
    await using world = await openTrunkWorld({ gateways: 1 });
    const [callee] = world.gateways as readonly [RawCallee];
    const { leg, observer } = world.place();
    challenge(callee, await callee.take('INVITE'), 'www', sha);

    expect((await observer.until('failed')).failure).toMatchObject({
      ...{ sipStatus: 401, reason: 'Unauthorized' },
    });
    await leg.released;
  });
});

const branchOf = (message: RawMessage) => /branch=([^;]+)/.exec(one(message, 'via'))?.[1];

describe('behind an SBC that challenges each request of the dialog', () => {
  const once = (nonce: string) =>
    `Digest realm="carrier", nonce="${nonce}", algorithm=SHA-256, qop="auth"`;

  async function throughSbc(trunk: Partial<Trunk> = {}) {
    const world = await open(trunk);
    const route = `Record-Route: <sip:127.0.0.1:${world.callee.port};lr>`;
    const call = await talking(world, [route]);
    return { ...world, ...call };
  }

  test('a PRACK is repeated within the early dialog', async () => {
    const world = await open();
    const { callee } = world;
    const { leg, observer } = world.place();
    const invite = await callee.take('INVITE');
    const headers = ['Require: 100rel', 'RSeq: 17'];
    callee.reply(invite, 183, 'Session Progress', { headers, body: answer });
    const prack = await callee.take('PRACK');
    expect(one(prack, 'rack')).toBe(`17 ${cseqOf(invite)} INVITE`);
    challenge(callee, prack, 'proxy', once('n1'));
    const repeated = await takeRepetition(callee, prack);

    expectProof(repeated, 'proxy');
    expect(one(repeated, 'rack')).toBe(one(prack, 'rack'));
    callee.reply(repeated, 200, 'OK', { contact: false });
    callee.reply(invite, 200, 'OK', { body: answer });
    await observer.until('answered');
    leg.acknowledge();
    await callee.take('ACK');
    leg.hangUp('done');
    callee.reply(await callee.take('BYE'), 200, 'OK', { contact: false });
    await leg.released;
  });

  test('INFOs are repeated within the dialog, and count the uses of a nonce', async () => {
    const { callee, leg } = await throughSbc({ dtmf: 'info' });

    for (const [index, digit] of ['1', '2', '#'].entries()) {
      const pressed = leg.press(digit, 100);
      const info = await callee.take('INFO');
      challenge(callee, info, 'proxy', once('n1'));
      const repeated = await takeRepetition(callee, info);
      expect(expectProof(repeated, 'proxy')['nc']).toBe(`0000000${index + 1}`);
      expect(one(repeated, 'route')).toBe(`<sip:127.0.0.1:${callee.port};lr>`);
      expect(repeated.body).toContain(`Signal=${digit}`);
      callee.reply(repeated, 200, 'OK', { contact: false });
      expect(await pressed).toBe(true);
    }
    leg.hangUp('done');
    callee.reply(await callee.take('BYE'), 200, 'OK', { contact: false });
    await leg.released;
  });

  test('a REFER is repeated, and NOTIFYs of either CSeq belong to it', async () => {
    const { callee, leg, invite } = await throughSbc();
    const reported: string[] = [];
    const target = { kind: 'tel', number: '15550002222' } as const;
    leg.refer({ target, trunk: 'carrier', timeoutMs: 5_000 }, (event) => reported.push(event.kind));
    const refer = await callee.take('REFER');
    challenge(callee, refer, 'proxy', once('n1'));
    const repeated = await takeRepetition(callee, refer);

    expectProof(repeated, 'proxy');
    expect(one(repeated, 'refer-to')).toBe(one(refer, 'refer-to'));
    callee.reply(repeated, 202, 'Accepted');
    callee.request(invite, 'NOTIFY', {
      headers: [
        `Event: refer;id=${cseqOf(repeated)}`,
        'Subscription-State: terminated;reason=noresource',
      ],
      type: 'message/sipfrag',
      body: 'SIP/2.0 200 OK\r\n',
    });
    expect(await callee.takeAnswer('NOTIFY')).toBe(200);
    await eventually(() => reported.includes('taken over'), 'the transfer is reported');
    leg.hangUp('done');
    callee.reply(await callee.take('BYE'), 200, 'OK', { contact: false });
    await leg.released;
  });

  test('a BYE is repeated once, and a second refusal ends the wait', async () => {
    const { callee, leg } = await throughSbc();
    leg.hangUp('done');
    const bye = await callee.take('BYE');
    challenge(callee, bye, 'www', once('n1'));
    const repeated = await takeRepetition(callee, bye);
    expectProof(repeated, 'www');
    challenge(callee, repeated, 'www', once('n2'));

    await leg.released;
    expect(callee.has('BYE')).toBe(false);
  });
});

describe('a process that ends the call of another one', () => {
  test.each([
    ['within the dialog, which the engine still has', true],
    ['with a rebuilt BYE, because the engine has forgotten the dialog', false],
  ])("answers the challenge with the trunk's credentials: %s", async (_name, isKnown) => {
    const world = await open();
    const { callee, sip } = world;
    const { leg, observer, invite } = await talking(world);
    const { leg: answered } = await observer.until('answered');
    expect(answered.trunk).toBe('carrier');
    const stored = isKnown
      ? answered
      : { ...answered, sipCallId: 'another', dialogId: 'another;from-tag=another' };

    const ended = sip.endOrphan(stored);
    const bye = await callee.take('BYE');
    expect(one(bye, 'call-id') === one(invite, 'call-id')).toBe(isKnown);
    challenge(callee, bye, 'proxy', 'Digest realm="carrier", nonce="n1", algorithm=SHA-256');
    const repeated = await takeRepetition(callee, bye);
    expectProof(repeated, 'proxy');
    callee.reply(repeated, 200, 'OK', { contact: false });

    expect(await ended).toBe('ended');
    leg.hangUp('done');
    if (!isKnown) callee.reply(await callee.take('BYE'), 200, 'OK', { contact: false });
    await leg.released;
  });
});

describe('a challenged REGISTER', () => {
  const register = (nonce: string) =>
    `Digest realm="carrier", nonce="${nonce}", algorithm=SHA-256, qop="auth"`;

  test('is repeated with SHA-256, and its renewal uses the nonce again', async () => {
    const world = await openTrunkWorld({
      gateways: 1,
      trunk: { auth: alice, register: { expiresS: 60 } },
      limits: { registerMinRefreshMs: 20 },
    });
    onTestFinished(async () => await world[Symbol.asyncDispose]());
    const [callee] = world.gateways as readonly [RawCallee];
    const first = await callee.take('REGISTER');
    expect(credentialsIn(first, 'authorization')).toEqual([]);
    challenge(callee, first, 'www', register('n1'));
    const repeated = await takeRepetition(callee, first);
    expect(expectProof(repeated, 'www')).toMatchObject({ nonce: 'n1', nc: '00000001' });
    callee.reply(repeated, 200, 'OK', { contact: false, headers: ['Expires: 0'] });

    const renewal = await callee.take('REGISTER');
    expect(expectProof(renewal, 'www')).toMatchObject({ nonce: 'n1', nc: '00000002' });
    expect(cseqOf(renewal)).toBeGreaterThan(cseqOf(repeated));
    // An expired nonce isn't a refusal, whether or not the registrar says `stale`.
    challenge(callee, renewal, 'www', register('n2'));
    const again = await takeRepetition(callee, renewal);
    expect(expectProof(again, 'www')).toMatchObject({ nonce: 'n2', nc: '00000001' });
    callee.reply(again, 200, 'OK', { contact: false });
  });
});
