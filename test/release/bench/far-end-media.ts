// The media of a far end: RTP, or SRTP with `--media srtp`. The process that answers the gateway's
// offer sends the keys as texts to the process of the far end.

import type { MediaEncryption } from '../../../src/calls/media.ts';
import { newCryptoLines, readCrypto, writeCrypto } from '../../../src/media/srtp/sdes.ts';
import { SrtpReceiver } from '../../../src/media/srtp/srtp-receiver.ts';
import { SrtpSender } from '../../../src/media/srtp/srtp-sender.ts';

export type Media = 'rtp' | 'srtp';

/** The values of `a=crypto` of the gateway and of the far end. */
export type KeyTexts = { readonly gateway: string; readonly farEnd: string };

/** Returns the media to measure in turn: with `--media srtp`, RTP beside SRTP, `rounds` times. */
export function turnsOf(media: string, rounds: number): readonly Media[] {
  if (media === 'rtp') return ['rtp'];
  if (media !== 'srtp') throw new Error('--media is rtp or srtp');
  const pairs = Array.from({ length: rounds }, (_, round): readonly Media[] =>
    // Alternates the order, so that neither always comes second.
    round % 2 === 0 ? ['rtp', 'srtp'] : ['srtp', 'rtp'],
  );
  return pairs.flat();
}

export const encryptionOf: Readonly<Record<Media, MediaEncryption>> = {
  rtp: 'rtp',
  srtp: 'srtp-required',
};

/** Answers the gateway's offer with this port, and with a new key if the offer has keys. */
export function answerTo(
  offerSdp: string,
  port: number,
): { readonly sdp: string; readonly keys?: KeyTexts } {
  const [, gateway] = /^a=crypto:(.*)$/m.exec(offerSdp) ?? [];
  const head = ['v=0', 'o=- 1 1 IN IP4 127.0.0.1', 's=-', 'c=IN IP4 127.0.0.1', 't=0 0'];
  const sdpOf = (protocol: string, lines: readonly string[]) =>
    [...head, `m=audio ${port} ${protocol} 0`, 'a=rtpmap:0 PCMU/8000', ...lines, ''].join('\r\n');
  const [line] = newCryptoLines();
  if (gateway === undefined || line === undefined) return { sdp: sdpOf('RTP/AVP', []) };
  const farEnd = writeCrypto(line);
  return { sdp: sdpOf('RTP/SAVP', [`a=crypto:${farEnd}`]), keys: { gateway, farEnd } };
}

/** What the far end does to its packets and to those of the gateway. */
export class FarEndMedia {
  readonly #sender: SrtpSender | undefined;
  readonly #receiver: SrtpReceiver | undefined;

  /** @param keys undefined for RTP */
  constructor(keys?: KeyTexts) {
    if (keys === undefined) return;
    const [gateway, farEnd] = [keys.gateway, keys.farEnd].map(readCrypto);
    if (gateway === undefined || farEnd === undefined) throw new Error('no key');
    this.#sender = new SrtpSender(farEnd.key);
    this.#receiver = new SrtpReceiver(gateway.key);
  }

  protect(packet: Uint8Array): Uint8Array {
    return this.#sender?.protect(packet) ?? packet;
  }

  /** @returns undefined if the packet isn't authentic */
  unprotect(packet: Uint8Array): Uint8Array | undefined {
    if (this.#receiver === undefined) return packet;
    const plain = this.#receiver.unprotect(packet);
    return typeof plain === 'string' ? undefined : plain;
  }
}

/** The required CPU time with SRTP, as a multiple of the time without. */
const mostRatio = 1.35;

/** Prints the medians of both, and fails the bench if SRTP costs too much. */
export function printRatio(costsUs: Readonly<Record<Media, readonly number[]>>): void {
  if (costsUs.srtp.length === 0) return;
  const [rtp, srtp] = [median(costsUs.rtp), median(costsUs.srtp)];
  const ratio = srtp / rtp;
  console.log(
    `  medians: RTP ${rtp.toFixed(1)} µs, SRTP ${srtp.toFixed(1)} µs, ratio ${ratio.toFixed(2)}`,
  );
  if (ratio <= mostRatio) return;
  process.exitCode = 1;
  console.log(`  FAILED: SRTP may cost ${mostRatio} times as much at most`);
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
