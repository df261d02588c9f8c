// A caller with an engine of its own, through drachtio-srf. Its socket stores every RTP packet.

import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import Srf from 'drachtio-srf';
import { createRtpHeader, readRtp } from '../../../../src/media/rtp/rtp-packet.ts';
import { startEmbeddedEngine } from '../../../support/sip-engine.ts';

export type Packet = {
  readonly payloadType: number;
  readonly marker: boolean;
  readonly sequence: number;
  readonly timestamp: number;
  readonly ssrc: number;
  readonly payload: Uint8Array;
};

export type PlacedCall = {
  /** The final response: 200 with the dialog, or the refusal. */
  readonly final: Promise<{ readonly status: number; readonly dialog?: Srf.Dialog }>;
  readonly provisionals: readonly { readonly status: number; readonly body: string }[];
  /** Resolves when the callee hangs up. */
  readonly hungUp: Promise<void>;
  readonly packets: readonly Packet[];
  readonly offer: string;
  cancel(): void;
  /** Sends one packet to the callee's address. Default: silence. */
  sendRtp(
    to: { readonly host: string; readonly port: number },
    audio?: { readonly payloadType: number; readonly payload: Uint8Array },
  ): void;
};

export type Caller = {
  /**
   * Places a call. If `offer` is set, the audio goes to the address in that SDP, and no packets are
   * stored here.
   */
  place(
    user: string,
    options?: { readonly formats?: string; readonly offer?: string },
  ): Promise<PlacedCall>;
  close(): Promise<void>;
};

const host = '127.0.0.1';
const secret = 'cymru';
const silentPayload = new Uint8Array(160).fill(0xff);

export async function startCaller(target: {
  readonly host: string;
  readonly port: number;
}): Promise<Caller> {
  const engine = await startEmbeddedEngine({ sipHost: host, controlHost: host, secret });
  const srf = new Srf();
  srf.on('error', () => undefined);
  void srf.connect({ host: engine.controlHost, port: engine.controlPort, secret });
  await once(srf, 'connect');
  const sockets: Socket[] = [];

  return {
    async place(user, { formats = '0 8 101', offer } = {}) {
      const socket = createSocket('udp4');
      sockets.push(socket);
      socket.bind(0, host);
      await once(socket, 'listening');
      const packets: Packet[] = [];
      socket.on('message', (message) => keep(message, packets));
      const sdp = offer ?? offerSdp(socket.address().port, formats);
      return dial(srf, `sip:${user}@${target.host}:${target.port}`, sdp, socket, packets);
    },
    async close() {
      for (const socket of sockets) socket.close();
      srf.disconnect();
      await engine.close();
    },
  };
}

function dial(
  srf: Srf,
  uri: string,
  offer: string,
  socket: Socket,
  packets: readonly Packet[],
): PlacedCall {
  const provisionals: { status: number; body: string }[] = [];
  let sent: Srf.SrfRequest | undefined;
  let onHungUp: () => void;
  const hungUp = new Promise<void>((resolve) => {
    onHungUp = resolve;
  });
  const final = srf
    .createUAC(
      uri,
      { localSdp: offer, headers: { From: '<sip:caller@offhook.test>' } },
      {
        // srf passes an error first, although its types omit it.
        cbRequest: ((_error: unknown, request?: Srf.SrfRequest) => {
          sent = request;
        }) as (request: Srf.SrfRequest) => void,
        cbProvisional: ({ status, body }) => provisionals.push({ status, body }),
      },
    )
    .then(
      (dialog) => {
        dialog.on('destroy', () => onHungUp());
        return { status: 200, dialog };
      },
      (error: { status?: number }) => ({ status: error.status ?? 0 }),
    );
  return {
    final,
    provisionals,
    hungUp,
    packets,
    offer,
    cancel: () => sent?.cancel(() => undefined),
    sendRtp(to, { payloadType, payload } = { payloadType: 0, payload: silentPayload }) {
      const packet = new Uint8Array(12 + payload.length);
      packet.set([0x80, payloadType, 0, 1, 0, 0, 0, 160, 1, 2, 3, 4]);
      packet.set(payload, 12);
      socket.send(packet, to.port, to.host);
    },
  };
}

function keep(message: Uint8Array, packets: Packet[]): void {
  const header = createRtpHeader();
  if (!readRtp(message, header)) return;
  const { payloadStart, payloadEnd, ...fields } = header;
  packets.push({ ...fields, payload: message.slice(payloadStart, payloadEnd) });
}

function offerSdp(port: number, formats: string): string {
  const names: Readonly<Record<string, string>> = {
    0: 'PCMU/8000',
    8: 'PCMA/8000',
    18: 'G729/8000',
    101: 'telephone-event/8000',
  };
  const maps = formats.split(' ').map((format) => `a=rtpmap:${format} ${names[format]}`);
  const lines = [
    'v=0',
    `o=caller 1 1 IN IP4 ${host}`,
    's=-',
    `c=IN IP4 ${host}`,
    't=0 0',
    `m=audio ${port} RTP/AVP ${formats}`,
    ...maps,
    'a=sendrecv',
  ];
  return `${lines.join('\r\n')}\r\n`;
}

/** Returns the audio port of an SDP. */
export function audioPort(sdp: string): number {
  return Number(/^m=audio (\d+)/m.exec(sdp)?.[1] ?? 0);
}
