// Runs a real Kamailio as a carrier's SBC. It challenges the gateway's requests, also those within
// a dialog, adds Record-Route, and relays calls to one phone.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Certificate } from './certificates.ts';
import { eventually } from './eventually.ts';
import { freeUdpPort } from './free-port.ts';
import { keepLog } from './gateway-logs.ts';
import { keepProgram } from './kept-program.ts';

export type KamailioOptions = {
  /** UDP port of the phone on 127.0.0.1. Its requests aren't challenged. */
  readonly phonePort: number;
  readonly realm: string;
  readonly password: string;
  readonly algorithm: 'MD5' | 'SHA-256';
  readonly qop: 'auth' | 'auth-int';
  /** For TLS. Default: no TLS. */
  readonly certificate?: Certificate | undefined;
  /**
   * Control port of the rtpengine that relays the audio, encrypted towards the gateway and plain
   * towards the phone, and further flags towards the gateway. Default: audio doesn't pass the SBC.
   */
  readonly relay?: { readonly controlPort: number; readonly flags: string };
};

export type Kamailio = AsyncDisposable & {
  /** Port for UDP and TCP. */
  readonly port: number;
  readonly tlsPort: number;
  /** Contains `challenged METHOD` and `proved METHOD` for each request. */
  readonly log: () => Promise<string>;
};

/** Kamailio starts within 300 ms on an idle machine. */
const startsWithinMs = 20_000;

/** @throws Error with the end of the log if Kamailio doesn't start */
export async function startKamailio(options: KamailioOptions): Promise<Kamailio> {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-kamailio-'));
  const port = await freeUdpPort();
  const tlsPort = await freeUdpPort();
  const configFile = join(folder, 'kamailio.cfg');
  const logFile = join(folder, 'log');
  await writeFile(configFile, configuration(options, port, tlsPort));
  // -DD: one process in the foreground, with its children. -Y: its sockets go to this folder.
  const args = ['-f', configFile, '-DD', '-E', '-Y', folder, '-m', '16', '-M', '4'];
  const kamailio = await keepProgram({ program: 'kamailio', args, logFile, cwd: folder });
  const log = () => readFile(logFile, 'utf8');
  let last = '';
  keepLog(() => last);
  const stop = async () => {
    await kamailio.end();
    last = await log();
    await rm(folder, { recursive: true, force: true });
  };
  const isReady = async () => kamailio.hasEnded() || (await log()).includes(readyLine);
  await eventually(isReady, 'Kamailio starts', startsWithinMs);
  if (kamailio.hasEnded()) {
    await stop();
    throw new Error(`Kamailio did not start: ${last.slice(-1_000)}`);
  }
  return { port, tlsPort, log, [Symbol.asyncDispose]: stop };
}

const readyLine = 'offhook: ready';

function tlsConfiguration({ cert, key }: Certificate, port: number): string {
  return `enable_tls=yes
listen=tls:127.0.0.1:${port}
loadmodule "tls.so"
modparam("tls", "tls_method", "TLSv1.2+")
modparam("tls", "certificate", "${cert}")
modparam("tls", "private_key", "${key}")`;
}

/** A description from the phone is written anew for the gateway, and the other way round. */
function relayConfiguration(
  phonePort: number,
  { controlPort, flags }: NonNullable<KamailioOptions['relay']>,
): string {
  const every = `replace-origin replace-session-connection ICE=remove ${flags}`;
  const [plain, encrypted] = [`${every} RTP/AVP`, `${every} RTP/SAVP`];
  return `modparam("rtpengine", "rtpengine_sock", "udp:127.0.0.1:${controlPort}")

route[RELAY] {
  if (is_method("BYE")) rtpengine_delete();
  t_on_reply("RELAY");
  if (!has_body("application/sdp")) {
    # The 2xx will contain the offer, and the ACK the answer (RFC 3261, section 14.2).
    if (is_method("INVITE")) setflag(1);
    return;
  }
  if (is_method("ACK")) {
    if ($sp == ${phonePort}) rtpengine_answer("${encrypted}"); else rtpengine_answer("${plain}");
    return;
  }
  if ($sp == ${phonePort}) rtpengine_offer("${encrypted}"); else rtpengine_offer("${plain}");
}

onreply_route[RELAY] {
  if (!has_body("application/sdp")) return;
  if (isflagset(1)) {
    if ($sp == ${phonePort}) rtpengine_offer("${encrypted}"); else rtpengine_offer("${plain}");
    return;
  }
  if ($sp == ${phonePort}) rtpengine_answer("${encrypted}"); else rtpengine_answer("${plain}");
}
`;
}

function configuration(options: KamailioOptions, port: number, tlsPort: number): string {
  const { phonePort, realm, password, algorithm, qop, certificate, relay } = options;
  const modules = [
    ...['tm', 'tmx', 'sl', 'rr', 'pv', 'maxfwd', 'siputils', 'textops', 'xlog', 'auth'],
    ...['usrloc', 'registrar', ...(relay === undefined ? [] : ['rtpengine'])],
  ];
  const relayed = (command: string) => (relay === undefined ? '' : `route(${command});`);
  return `#!KAMAILIO
debug=1
log_stderror=yes
children=1
tcp_children=1
auto_aliases=no
dns=no
rev_dns=no
listen=udp:127.0.0.1:${port}
listen=tcp:127.0.0.1:${port}
${modules.map((name) => `loadmodule "${name}.so"`).join('\n')}
${certificate === undefined ? '' : tlsConfiguration(certificate, tlsPort)}
modparam("auth", "algorithm", "${algorithm}")
modparam("auth", "qop", "${qop}")
modparam("auth", "nonce_count", 1)
modparam("usrloc", "db_mode", 0)
${relay === undefined ? '' : relayConfiguration(phonePort, relay)}

request_route {
  if (!mf_process_maxfwd_header("10")) { sl_send_reply("483", "Too Many Hops"); exit; }
  if (is_method("CANCEL")) { if (t_check_trans()) t_relay(); exit; }
  if (has_totag()) {
    if (!loose_route()) { if (!is_method("ACK")) sl_send_reply("404", "Not Here"); exit; }
    if (!is_method("ACK") && $sp != ${phonePort}) route(PROVE);
    ${relayed('RELAY')}
    t_relay();
    exit;
  }
  if (is_method("REGISTER")) {
    if (!pv_www_authenticate("${realm}", "${password}", "0")) {
      xlog("L_ALERT", "challenged REGISTER\\n");
      www_challenge("${realm}", "1");
      exit;
    }
    save("location");
    exit;
  }
  if (!is_method("INVITE")) { sl_send_reply("405", "Method Not Allowed"); exit; }
  route(PROVE);
  record_route();
  ${relayed('RELAY')}
  $du = "sip:127.0.0.1:${phonePort}";
  t_relay();
}

route[PROVE] {
  if (!pv_proxy_authenticate("${realm}", "${password}", "0")) {
    xlog("L_ALERT", "challenged $rm\\n");
    proxy_challenge("${realm}", "1");
    exit;
  }
  xlog("L_ALERT", "proved $rm with $adu\\n");
  consume_credentials();
}

event_route[core:worker-one-init] {
  xlog("L_ALERT", "${readyLine}\\n");
}
`;
}
