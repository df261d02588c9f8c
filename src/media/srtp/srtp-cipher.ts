// What encrypts and authenticates one direction's packets of one kind (RFC 3711, section 4).

import { KeyStream } from './key-stream.ts';
import { PacketTag } from './packet-tag.ts';
import { type SrtpKey, sessionKeys, tagBytes } from './srtp-keys.ts';

/** Both suites have the long tag for RTCP (RFC 4568, section 6.2). */
const rtcpTagBytes = 10;
/** The flag E and the index, between an RTCP packet and its tag. */
export const rtcpIndexBytes = 4;
/** RTCP's fixed header and the sender's SSRC are never encrypted. */
export const rtcpClearBytes = 8;
/** The flag E of RTCP, above the 31 bits of the index. */
export const encryptedFlag = 0x8000_0000;
/** An index of RTP is a rollover counter times this, plus the sequence number. */
export const sequences = 0x1_0000;

export type SrtpCipher = { readonly stream: KeyStream; readonly tag: PacketTag };

export function cipherOf(key: SrtpKey, kind: 'rtp' | 'rtcp'): SrtpCipher {
  const keys = sessionKeys(key, kind);
  const bytes = kind === 'rtp' ? tagBytes[key.suite] : rtcpTagBytes;
  return {
    stream: new KeyStream(keys, kind === 'rtp'),
    tag: new PacketTag(keys.authentication, bytes),
  };
}
