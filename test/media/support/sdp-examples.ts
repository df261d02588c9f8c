// Session descriptions as carriers and exchanges write them (addresses and names changed), and some
// malformed ones.

import type { RemoteMedia } from '../../../src/media/sdp.ts';

type Example = {
  readonly from: string;
  readonly sdp: string;
  readonly expected: Partial<RemoteMedia>;
  readonly ipVersion?: 4 | 6;
};

function crlf(text: string): string {
  return `${text.trim().split('\n').join('\r\n')}\r\n`;
}

export const realAnswers: readonly Example[] = [
  {
    from: 'Asterisk: codec and events, maxptime',
    sdp: crlf(`
v=0
o=- 1690000000 1690000002 IN IP4 203.0.113.20
s=Asterisk
c=IN IP4 203.0.113.20
t=0 0
m=audio 11214 RTP/AVP 8 101
a=rtpmap:8 PCMA/8000
a=rtpmap:101 telephone-event/8000
a=fmtp:101 0-16
a=ptime:20
a=maxptime:150
a=sendrecv`),
    expected: {
      address: '203.0.113.20',
      port: 11_214,
      codec: 'PCMA',
      payloadType: 8,
      telephoneEvents: [101],
      keyPayloadType: 101,
      weSend: true,
      theySend: true,
    },
  },
  {
    from: 'FreeSWITCH: 64-bit session id, rtcp attribute, no direction',
    sdp: crlf(`
v=0
o=FreeSWITCH 1700000000123456789 1700000000123456790 IN IP4 198.51.100.30
s=FreeSWITCH
c=IN IP4 198.51.100.30
t=0 0
m=audio 27654 RTP/AVP 0 101
a=rtpmap:0 PCMU/8000
a=rtpmap:101 telephone-event/8000
a=fmtp:101 0-15
a=silenceSupp:off - - - -
a=ptime:20
a=rtcp:27655 IN IP4 198.51.100.30`),
    expected: { port: 27_654, codec: 'PCMU', payloadType: 0, weSend: true, theySend: true },
  },
  {
    from: 'Cisco gateway: static types without rtpmap for events, connection at the media',
    sdp: crlf(`
v=0
o=CiscoSystemsSIP-GW-UserAgent 4567 8912 IN IP4 192.0.2.77
s=SIP Call
c=IN IP4 192.0.2.77
t=0 0
m=audio 18230 RTP/AVP 0 100
c=IN IP4 192.0.2.78
a=rtpmap:0 PCMU/8000
a=rtpmap:100 telephone-event/8000
a=fmtp:100 0-16`),
    expected: {
      address: '192.0.2.78',
      port: 18_230,
      telephoneEvents: [100, 101],
      keyPayloadType: 100,
    },
  },
  {
    from: 'session border controller: bare m= line, LF line ends',
    sdp: 'v=0\no=SBC 0 0 IN IP4 198.51.100.9\ns=sip call\nc=IN IP4 198.51.100.9\nt=0 0\nm=audio 6000 RTP/AVP 8\n',
    expected: { port: 6_000, codec: 'PCMA', telephoneEvents: [101] },
  },
  {
    from: 'soft switch: 30 ms packets, G.729 first, comfort noise',
    sdp: crlf(`
v=0
o=sonus 12345 67890 IN IP4 203.0.113.99
s=SIP Media Capabilities
c=IN IP4 203.0.113.99
t=0 0
m=audio 40002 RTP/AVP 18 0 13 101
a=rtpmap:18 G729/8000
a=fmtp:18 annexb=no
a=rtpmap:0 PCMU/8000
a=rtpmap:13 CN/8000
a=rtpmap:101 telephone-event/8000
a=fmtp:101 0-15
a=sendrecv
a=ptime:30`),
    expected: { codec: 'PCMU', payloadType: 0, telephoneEvents: [101], comfortNoise: [13] },
  },
  {
    from: 'WebRTC gateway: both event rates, video refused, ICE left over',
    sdp: crlf(`
v=0
o=- 4611731400430051336 2 IN IP4 203.0.113.41
s=-
t=0 0
a=ice-lite
m=audio 30444 RTP/AVPF 8 110 126
c=IN IP4 203.0.113.41
a=rtpmap:8 PCMA/8000
a=rtpmap:110 telephone-event/48000
a=rtpmap:126 telephone-event/8000
a=candidate:1 1 UDP 2130706431 203.0.113.41 30444 typ host
a=rtcp-mux
m=video 0 RTP/AVP 96`),
    expected: { codec: 'PCMA', port: 30_444, telephoneEvents: [126, 101] },
  },
  {
    from: 'carrier: a count of ports, lower-case names, spaces at line ends',
    sdp: 'v=0\r\no=- 1 1 IN IP4 198.51.100.4\r\ns=-\r\nc=IN IP4 198.51.100.4 \r\nt=0 0\r\nm=audio 9000/1 RTP/AVP 0 101 \r\na=rtpmap:0 pcmu/8000/1\r\na=rtpmap:101 Telephone-Event/8000\r\na=sendrecv \r\n',
    expected: { address: '198.51.100.4', port: 9_000, codec: 'PCMU', telephoneEvents: [101] },
  },
  {
    from: 'IPv6 carrier, address not in its normal form',
    sdp: crlf(`
v=0
o=- 1 1 IN IP6 2001:DB8:0:0::5
s=-
c=IN IP6 2001:DB8:0:0::5
t=0 0
m=audio 5004 RTP/AVP 0
a=rtpmap:0 PCMU/8000`),
    ipVersion: 6,
    expected: { address: '2001:db8::5', port: 5_004 },
  },
  {
    from: 'answered on hold by an office exchange',
    sdp: crlf(`
v=0
o=user1 53655765 2353687637 IN IP4 203.0.113.7
s=-
c=IN IP4 0.0.0.0
t=0 0
m=audio 3456 RTP/AVP 0
a=sendonly`),
    expected: { weSend: false, theySend: true, addressWithheld: true },
  },
];

const head = 'v=0\r\no=- 1 1 IN IP4 1.2.3.4\r\ns=-\r\nc=IN IP4 1.2.3.4\r\nt=0 0\r\n';

export const hostileSdp: readonly { readonly name: string; readonly sdp: string }[] = [
  { name: 'a megabyte', sdp: head + 'a=x\r\n'.repeat(200_000) },
  { name: 'ten thousand media lines', sdp: head + 'm=audio 1 RTP/AVP 0\r\n'.repeat(10_000) },
  { name: 'a very long line', sdp: `${head}m=audio 4000 RTP/AVP ${'0 '.repeat(7_000)}\r\n` },
  {
    name: 'numbers beyond all measure',
    sdp: `${head}m=audio ${'9'.repeat(400)} RTP/AVP 1e309 -1 NaN\r\n`,
  },
  {
    name: 'names of Object.prototype',
    sdp: `${head}m=audio 4000 RTP/AVP 0 96\r\na=rtpmap:96 __proto__/8000\r\na=rtpmap:0 constructor/8000\r\n`,
  },
  { name: 'nul bytes and lone line ends', sdp: `v=0\r\u0000\r\r\n\n${head}\u0000m=audio\r` },
  { name: 'only a v= line', sdp: 'v=0\r\n' },
  { name: 'lines without values', sdp: 'v=0\r\no=\r\nc=\r\nm=\r\na=\r\na=rtpmap:\r\n' },
  { name: 'an m= line of nothing but blanks', sdp: `${head}m=    \r\n` },
];
