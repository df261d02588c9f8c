// Intended differences between the embedded engine and the recorded drachtio-server. The replay's
// findings are matched against these entries. A difference that is not listed fails the test, and
// so does a listed one that no longer occurs. src/embedded/drachtio/DIFFERENCES.md describes them
// in prose.

export type DeliberateDifference = {
  /** Name of the recording. `all` stands for every recording. */
  readonly scenario: string;
  /** Label of the message. `*` stands for any characters. */
  readonly message: string;
  readonly aspect: string;
  readonly reason: string;
};

function differ(
  scenario: string,
  reason: string,
  differences: readonly (readonly [message: string, aspect: string])[],
): readonly DeliberateDifference[] {
  return differences.map(([message, aspect]) => ({ scenario, message, aspect, reason }));
}

export const DELIBERATE_DIFFERENCES: readonly DeliberateDifference[] = [
  ...differ('all', 'The version names the engine; srf only reads its number.', [
    ['reply OK*', 'field 5'],
  ]),
  ...differ(
    'raw_errors',
    'A client that has not authenticated may do nothing else: it is refused and disconnected.',
    [
      ['reply OK', 'field 3'],
      ['reply OK', 'field 4'],
      ['close on connection 1', 'added'],
      ['reply OK#2', 'fields'],
      ['close on connection 2', 'added'],
      ['reply OK with OPTIONS', 'fields'],
      ['reply OK with OPTIONS', 'message'],
      ['close on connection 3', 'added'],
      ['sip 503 OPTIONS', 'absent'],
    ],
  ),
  ...differ(
    'raw_errors',
    'Frames may have up to 256 KiB, so six digits of length are legal; the real server drops the connection.',
    [['engineCloses#7', 'absent']],
  ),
  ...differ(
    'raw_errors',
    'Frames of 13,000 and 20,000 bytes are served; the real server stalls the connection for good.',
    [
      ['reply OK with MESSAGE on connection 27', 'added'],
      ['sip 503 MESSAGE on connection 27', 'added'],
      ['reply OK with MESSAGE on connection 28', 'added'],
      ['sip 503 MESSAGE on connection 28', 'added'],
    ],
  ),
  ...differ(
    'remove_route_all',
    'remove_route removes the named route; the real server removes all routes of the connection.',
    [
      ['sip MESSAGE on connection 1', 'added'],
      ['wire 503 MESSAGE', 'absent'],
    ],
  ),
  ...differ(
    'bad_transport',
    'The engine opens TLS connections without any configuration. Nobody listens on this one.',
    [
      ['reply NOK', 'fields'],
      ['reply NOK', 'message'],
      ['sip 503 INVITE on connection 1', 'added'],
    ],
  ),
  ...differ(
    'client_gone_ringing',
    'The call of an application that has gone is cancelled, and hung up if it is answered nevertheless.',
    [
      ['wire CANCEL', 'added'],
      ['wire ACK', 'added'],
      ['wire BYE', 'added'],
    ],
  ),
  ...differ(
    'fork_200',
    'The second branch gets an ACK of its own and a BYE, not the ACK of the first.',
    [
      ['wire ACK', 'added'],
      ['wire ACK again', 'absent'],
      ['wire BYE', 'added'],
    ],
  ),
  ...differ(
    'no_contact',
    'A callee whose 200 has no Contact is acknowledged and hung up, not left in the call, and the application learns it.',
    [
      ['wire ACK', 'added'],
      ['wire BYE', 'added'],
      ['sip BYE on connection 1', 'added'],
    ],
  ),
  ...differ(
    'session_timer',
    'RFC 4028 section 7.1 requires Supported: timer in each request of whoever uses session timers.',
    [['wire INVITE#2', 'header names']],
  ),
  ...differ(
    'proxy_in',
    'The gateway proxies nothing: the command is refused, and so is the INVITE.',
    [
      ['reply OK with 200 INVITE', 'fields'],
      ['reply OK with 200 INVITE', 'message'],
      ['wire INVITE', 'absent'],
      ['reply OK done', 'absent'],
      ['wire 180 INVITE', 'absent'],
      ['wire 200 INVITE', 'absent'],
      ['wire 503 INVITE', 'added'],
    ],
  ),
  ...differ(
    'proxy_in',
    'A 200 for an INVITE that this engine did not send ends a call that a dead engine left: ACK and BYE.',
    [
      ['wire ACK', 'added'],
      ['wire BYE', 'added'],
    ],
  ),
];
