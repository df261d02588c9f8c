// Memory that the sessions of a thread share.

import { silenceByte } from '../g711.ts';
import { frameSamples } from './jitter-buffer.ts';
import { createRtpHeader, type RtpHeader } from './rtp-packet.ts';

/** Serves every session of a thread in turn, so that no packet and no frame costs an allocation. */
export type RtpScratch = {
  readonly header: RtpHeader;
  readonly frame: Int16Array;
  readonly mulaw: Uint8Array;
  readonly silence: Uint8Array;
};

export function createRtpScratch(): RtpScratch {
  return {
    header: createRtpHeader(),
    frame: new Int16Array(frameSamples),
    mulaw: new Uint8Array(frameSamples),
    silence: new Uint8Array(frameSamples).fill(silenceByte.PCMU),
  };
}
