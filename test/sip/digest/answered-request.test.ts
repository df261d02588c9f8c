// Repeating a challenged request, against an engine link that only records what it's given.

import { describe, expect, test } from 'vitest';
import { type Authentication, sendAnswered } from '../../../src/sip/digest/answered-request.ts';
import { DigestClient } from '../../../src/sip/digest/digest-client.ts';
import type { EngineLink, RequestResult } from '../../../src/sip/engine/engine-link.ts';
import type {
  ReceivedResponse,
  RequestOptions,
  SentRequest,
} from '../../../src/sip/engine/srf-types.ts';

type Listener = (response: ReceivedResponse, ack: () => void) => void;
type Sent = {
  readonly options: RequestOptions;
  readonly reply: (result: RequestResult) => void;
  respond: Listener;
};

const credentials = { username: 'alice', password: 'wonderland' };
const challenge = 'Digest realm="carrier", nonce="n1"';

function send(options: Partial<RequestOptions> = {}, authentication: Partial<Authentication> = {}) {
  const sent: Sent[] = [];
  const log: string[] = [];
  const link = {
    request: (given: RequestOptions, reply: Sent['reply']) =>
      sent.push({ options: given, reply, respond: () => undefined }),
  } as unknown as EngineLink;
  sendAnswered(
    link,
    {
      method: 'INVITE',
      uri: 'sip:bob@sbc.example',
      headers: { From: 'a', 'X-Lab': 'b' },
      ...options,
    },
    { client: new DigestClient(credentials), ...authentication },
    {
      onReply: (result) => log.push(result.ok ? 'sent' : result.reason),
      onRepeat: () => log.push('repeat'),
      onResponse: ({ status }, _ack, why) =>
        log.push(why === undefined ? `${status}` : `${status}, ${why}`),
    },
  );
  const last = () => sent.at(-1) as Sent;
  /** The engine confirms the last request, as it was sent. */
  const confirm = () => {
    const { options: given, reply } = last();
    const headers: Record<string, string> = {
      ...{ From: '<sip:a@127.0.0.1>;tag=1', 'Call-ID': 'c1', CSeq: '7 INVITE' },
      ...given.headers,
    };
    if (headers['From'] === 'a') headers['From'] = '<sip:a@127.0.0.1>;tag=1';
    const request = {
      uri: given.uri ?? '',
      get: (name: string) => headers[name],
      on: (_event: string, listener: Listener) => {
        last().respond = listener;
      },
    } as unknown as SentRequest;
    reply({ ok: true, request });
  };
  const respond = (status: number, header?: string, from: Partial<ReceivedResponse> = {}) =>
    last().respond(
      {
        ...{ status, reason: '', source_address: '192.0.2.7', source_port: 5070 },
        get: (name: string) => (name === 'Proxy-Authenticate' ? header : undefined),
        ...from,
      } as ReceivedResponse,
      () => undefined,
    );
  return { sent, log, last, confirm, respond };
}

describe('the repetition of a challenged request', () => {
  test('keeps the Call-ID and the From with its tag, and has the next CSeq', () => {
    const { last, confirm, respond, log } = send();
    confirm();
    respond(407, challenge);
    expect(last().options.headers).toMatchObject({
      ...{ From: '<sip:a@127.0.0.1>;tag=1', 'Call-ID': 'c1', CSeq: '8 INVITE', 'X-Lab': 'b' },
      'Proxy-Authorization': expect.stringContaining('nonce="n1"') as string,
    });
    confirm();
    respond(180);
    respond(486);

    expect(log).toEqual(['sent', 'repeat', 'sent', '180', '486']);
  });

  test.each([
    ['sip:bob@sbc.example', undefined, '192.0.2.7', 'sip:192.0.2.7:5070'],
    [
      'sip:bob@sbc.example;transport=tcp',
      undefined,
      '192.0.2.7',
      'sip:192.0.2.7:5070;transport=tcp',
    ],
    ['sip:bob@sbc.example', undefined, '2001:db8::7', 'sip:[2001:db8::7]:5070'],
    ['sip:bob@192.0.2.1', 'sip:edge.example', '192.0.2.7', 'sip:192.0.2.7:5070'],
    ['sip:bob@192.0.2.1', undefined, '192.0.2.7', undefined],
    ['sip:bob@[2001:db8::1]:5060', undefined, '192.0.2.7', undefined],
    ['sip:bob@sbc.example', 'sip:192.0.2.1:5062', '192.0.2.7', 'sip:192.0.2.1:5062'],
    // The certificate names the host.
    ['sip:bob@sbc.example;transport=tls', undefined, '192.0.2.7', undefined],
    ['sips:bob@sbc.example', undefined, '192.0.2.7', undefined],
  ])(
    'of %s through %s goes to the server that sent the challenge',
    (uri, proxy, from, expected) => {
      const { last, confirm, respond } = send({ uri, ...(proxy !== undefined && { proxy }) });
      confirm();
      respond(407, challenge, { source_address: from });

      expect(last().options.uri).toBe(uri);
      expect(last().options.proxy).toBe(expected);
    },
  );

  test('within a dialog leaves everything else to the engine', () => {
    const { last, confirm, respond } = send({ method: 'BYE', stackDialogId: 'd1', headers: {} });
    confirm();
    respond(407, challenge);

    expect(Object.keys(last().options.headers ?? {})).toEqual(['Proxy-Authorization']);
    expect(last().options.proxy).toBeUndefined();
  });

  test('that the engine rejects leaves the challenge as the final response', () => {
    const { last, confirm, respond, log } = send();
    confirm();
    respond(407, challenge);
    last().reply({ ok: false, reason: 'no' });

    expect(log).toEqual(['sent', 'repeat', '407']);
  });

  test.each([
    ['not wanted', { isWanted: () => false }, challenge],
    ['no credentials', { client: undefined }, challenge],
    ['unsupported', {}, 'Basic realm="carrier"'],
    ['unsupported', {}, undefined],
    ['too large', {}, `${challenge}, opaque="${'x'.repeat(4_000)}"`],
  ])('is not sent: %s', (why, authentication, header) => {
    const { sent, confirm, respond, log } = send({}, authentication);
    confirm();
    respond(407, header);

    expect(sent).toHaveLength(1);
    expect(log).toEqual(['sent', `407, ${why}`]);
  });

  test('carries the credentials of at most four realms, the last ones', () => {
    const { last, confirm, respond } = send();
    confirm();
    const realms = [1, 2, 3, 4, 5, 6].map((id) => `Digest realm="r${id}", nonce="n"`);
    respond(407, realms.join(', '));

    const header = last().options.headers?.['Proxy-Authorization'] ?? '';
    expect([...header.matchAll(/realm="(r\d)"/g)].map(([, realm]) => realm)).toEqual([
      ...['r3', 'r4', 'r5', 'r6'],
    ]);
    expect(header.split('\r\n')).toHaveLength(4);
  });
});
