// Finds out what the SIP engine under test can do, for the table of capabilities in
// src/embedded/drachtio/DIFFERENCES.md. A trial plays the application and the far end, without a
// gateway. It returns whether the engine has the capability.

import { readdirSync, readFileSync } from 'node:fs';
import { header, type RawApplication, type RawPeer } from '../embedded/drachtio/raw-ends.ts';
import { openTcpPeer } from '../embedded/drachtio/transcripts/sockets.ts';

export type Ends = { readonly application: RawApplication; readonly peer: RawPeer };
export type Trial = (ends: Ends) => Promise<boolean>;

/** An engine that does something does it within milliseconds. Timers take up to 1 s. */
const withinMs = 2_500;
const pollMs = 20;

/** Whether something arrives in time. Unlike `take`, this doesn't fail if nothing does. */
async function arrives(inbox: RawPeer['inbox'], pattern: RegExp, count = 1): Promise<boolean> {
  const until = performance.now() + withinMs;
  while (inbox.matching(pattern) < count) {
    if (performance.now() > until) return false;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  return true;
}

async function ringing({ application, peer }: Ends) {
  const { transactionId } = await application.request(`||\r\nINVITE ${peer.uri} SIP/2.0\r\n\r\n`);
  return { transactionId, invite: await peer.inbox.take(/^INVITE /) };
}

async function answered(ends: Ends, extra?: string) {
  const { application, peer } = ends;
  const { invite } = await ringing(ends);
  peer.answer(invite, '200 OK', 'far', extra);
  const notice = await application.inbox.take(/\|sip\|network\|.*\r\nSIP\/2.0 200/);
  const dialogId = notice.split('|')[9] ?? '';
  await application.request(`|${dialogId}\r\nACK sip:placeholder SIP/2.0\r\n\r\n`);
  const dialog = {
    ...{ callId: header(invite, 'Call-ID'), from: `${header(invite, 'To')};tag=far` },
    to: header(invite, 'From'),
  };
  return { invite, dialogId, dialog };
}

async function called({ application, peer }: Ends): Promise<string> {
  await application.route('invite');
  const call = { callId: 'trial', cseq: 1, from: '<sip:far@127.0.0.1>;tag=f' };
  peer.request('INVITE', { ...call, to: '<sip:alice@127.0.0.1>' });
  return (await application.inbox.take(/\r\nINVITE /)).split('|')[8] ?? '';
}

/** Whether the engine has a transport to send a request with. */
async function hasTransport({ application, peer }: Ends, transport: string): Promise<boolean> {
  const uri = `${peer.uri};transport=${transport}`;
  const { answer } = await application.request(`||\r\nOPTIONS ${uri} SIP/2.0\r\n\r\n`);
  return answer.includes('|OK|');
}

/** Whether the engine still answers the application. */
async function isAlive({ application }: Ends): Promise<boolean> {
  const id = application.send('ping');
  return arrives(application.inbox, new RegExp(`response\\|${id}\\|OK\\|pong`));
}

async function gets({ peer }: Ends, request: Parameters<RawPeer['request']>, status: number) {
  peer.request(...request);
  return arrives(peer.inbox, new RegExp(`^SIP/2\\.0 ${status} `));
}

const outside = {
  ...{ callId: 'outside', cseq: 1, from: '<sip:far@127.0.0.1>;tag=f' },
  to: '<sip:alice@127.0.0.1>',
};

export const trials: Readonly<Record<string, Trial>> = {
  'SIP over UDP': async (ends) => {
    await ringing(ends);
    return true;
  },
  'SIP over TCP': async ({ application }) => {
    let heard = '';
    const peer = await openTcpPeer((text) => {
      heard += text;
    });
    const uri = `sip:bob@127.0.0.1:${peer.port};transport=tcp`;
    await application.request(`||\r\nOPTIONS ${uri} SIP/2.0\r\n\r\n`);
    const until = performance.now() + withinMs;
    while (!heard.startsWith('OPTIONS ') && performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
    await peer.close();
    return heard.startsWith('OPTIONS ');
  },
  'listening for TLS': async ({ application }) => {
    const id = application.send('authenticate|cymru|');
    const reply = await application.inbox.take(new RegExp(`response\\|${id}\\|`));
    return reply.includes('tls/');
  },
  WebSocket: (ends) => hasTransport(ends, 'ws'),
  'proxying calls': async (ends) => {
    const { application, peer } = ends;
    const transaction = await called(ends);
    const options = 'remainInDialog|fullResponse||serial|2s|10s';
    application.send(
      `proxy|${transaction}|${options}|${peer.uri}\r\nINVITE ${peer.uri} SIP/2.0\r\n\r\n`,
    );
    return arrives(peer.inbox, /^INVITE /);
  },
  'a closed port (ICMP) fails a call at once': async ({ application, peer }) => {
    await peer.close();
    await application.request(`||\r\nINVITE ${peer.uri} SIP/2.0\r\n\r\n`);
    return arrives(application.inbox, /SIP\/2\.0 503 /);
  },
  'retransmissions over UDP': async (ends) => {
    await ringing(ends);
    return arrives(ends.peer.inbox, /^INVITE /);
  },
  'a repeated 200 gets its ACK again': async (ends) => {
    const { invite } = await answered(ends);
    ends.peer.answer(invite, '200 OK', 'far');
    return arrives(ends.peer.inbox, /^ACK /, 2);
  },
  'reliable provisional responses (100rel)': async (ends) => {
    const { application, peer } = ends;
    const { invite } = await ringing(ends);
    peer.answer(
      invite,
      '183 Progress',
      'far',
      `Contact: <${peer.uri}>\r\nRequire: 100rel\r\nRSeq: 7`,
    );
    const notice = await application.inbox.take(/SIP\/2\.0 183/);
    const rack = `RAck: 7 ${Number.parseInt(header(invite, 'CSeq'), 10)} INVITE`;
    application.send(
      `sip||${notice.split('|')[9]}\r\nPRACK sip:placeholder SIP/2.0\r\n${rack}\r\n\r\n`,
    );
    return arrives(peer.inbox, /^PRACK [\s\S]*^RAck: 7 /m);
  },
  'the second 200 of a fork is acknowledged and hung up': async (ends) => {
    const { invite } = await answered(ends);
    ends.peer.answer(invite, '200 OK', 'other');
    return arrives(ends.peer.inbox, /^BYE [\s\S]*;tag=other\r/);
  },
  'a 200 without a usable Contact is hung up': async (ends) => {
    await answered(ends, 'X-Contact: no');
    return arrives(ends.peer.inbox, /^BYE /);
  },
  'a 200 with a `tel:` Contact does no harm': async (ends) => {
    const { invite } = await ringing(ends);
    ends.peer.answer(invite, '200 OK', 'far', 'Contact: <tel:+15551230001>');
    return (await arrives(ends.application.inbox, /SIP\/2\.0 200/)) && (await isAlive(ends));
  },
  'ringing calls of a vanished application are cancelled': async (ends) => {
    const { invite } = await ringing(ends);
    ends.peer.answer(invite, '180 Ringing', 'far');
    await ends.application.inbox.take(/SIP\/2\.0 180/);
    ends.application.close();
    return arrives(ends.peer.inbox, /^CANCEL /);
  },
  'a session interval below 90 s gets 422': async (ends) => {
    const { dialog } = await answered(ends);
    const extra = 'Supported: timer\r\nSession-Expires: 60\r\n';
    return gets(ends, ['UPDATE', { ...dialog, cseq: 2 }, extra], 422);
  },
  'the 200 to a refresh states the interval': async (ends) => {
    const { application, peer } = ends;
    const { dialog } = await answered(ends);
    const extra = 'Supported: timer\r\nSession-Expires: 1800;refresher=uac\r\n';
    peer.request('UPDATE', { ...dialog, cseq: 2 }, extra);
    const notice = await application.inbox.take(/\r\nUPDATE /);
    await application.request(`${notice.split('|')[8]}|\r\nSIP/2.0 200 OK\r\n\r\n`);
    return arrives(peer.inbox, /^SIP\/2\.0 200 [\s\S]*^Session-Expires: 1800;refresher=uac/m);
  },
  'an offer that crosses ours gets 491': async (ends) => {
    const { dialogId, dialog } = await answered(ends);
    await ends.application.request(`|${dialogId}\r\nINVITE sip:placeholder SIP/2.0\r\n\r\n`);
    return gets(ends, ['INVITE', { ...dialog, cseq: 2 }], 491);
  },
  'an unknown method gets 501': (ends) => gets(ends, ['DANCE', outside], 501),
  'commands over 12 KB': async (ends) => {
    const { application, peer } = ends;
    application.send(
      `sip||\r\nOPTIONS ${peer.uri} SIP/2.0\r\nX-Long: ${'x'.repeat(13_000)}\r\n\r\n`,
    );
    return arrives(peer.inbox, /^OPTIONS /);
  },
};

/** Trials with a connection of their own. */
export const trialsWithoutLogin: Readonly<Record<string, Trial>> = {
  'refusing commands of a client that has not authenticated': async (ends) =>
    !(await isAlive(ends)),
};

const source = new URL('../../src/embedded/drachtio/', import.meta.url);

function sourceContains(folder: string, pattern: RegExp): boolean {
  const names = readdirSync(new URL(folder, source));
  return names.some((name) => pattern.test(readFileSync(new URL(folder + name, source), 'utf8')));
}

/** What only a look at the embedded engine's source can tell. drachtio's side isn't tried. */
export const embeddedTrials: Readonly<Record<string, () => boolean>> = {
  // drachtio's side would need a DNS server with such records.
  'DNS SRV and NAPTR': () => sourceContains('transport/', /resolve(?:Srv|Naptr)|lookupSrv/),
  // drachtio's side would need an HTTP server that tells it where to connect.
  'connecting to the application (outbound connections)': () =>
    sourceContains('control/', /\bconnect\(/),
};
