// A session as the main thread sees it. Here we handle offer and answer, and send commands to the
// worker that owns the session's sockets.

import { randomInt } from 'node:crypto';
import type { MediaOffer, MediaSession, PartnerSession } from '../calls/media.ts';
import type { MediaWorkerHandle } from './media-worker-handle.ts';
import {
  answerOffer,
  buildOffer,
  firstOfferShape,
  hasUsableAudio,
  type LocalMedia,
  readAnswer,
} from './sdp.ts';
import { newCryptoLines } from './srtp/sdes.ts';

export type MediaSessionOptions = {
  readonly id: number;
  readonly worker: MediaWorkerHandle;
  /** Address written into the SDP. */
  readonly publicHost: string;
  readonly port: number;
  /** IP version of the sockets. They can't reach addresses of the other version. */
  readonly ipVersion: 4 | 6;
  readonly offer: MediaOffer;
};

export function createMediaSession(options: MediaSessionOptions): MediaSession {
  const { id, worker, ipVersion } = options;
  const local: LocalMedia = {
    address: options.publicHost,
    port: options.port,
    ...options.offer,
    crypto: options.offer.encryption === 'rtp' ? [] : newCryptoLines(),
    // RFC 3264, section 5, limits the id to 62 bits. We use just 48, which are unique enough and
    // fit into any parser's integer type.
    sessionId: String(randomInt(2 ** 48 - 1)),
  };
  let version = 1;
  const offerSdp = buildOffer(local, version);
  let currentSdp = offerSdp;
  let acceptsKeys = false;
  let shape = firstOfferShape(local);

  const keepVersion = (build: (version: number) => string): string => {
    // RFC 3264, section 8: the version grows by one if, and only if, anything else has changed.
    if (build(version) === currentSdp) return currentSdp;
    version += 1;
    currentSdp = build(version);
    return currentSdp;
  };

  return {
    offerSdp,
    applyAnswer(sdp, phase) {
      const remote = readAnswer(sdp, ipVersion, shape.numbers, local);
      if (remote === undefined) {
        const isPlain =
          local.encryption === 'rtp' || !hasUsableAudio(sdp, ipVersion, shape.numbers);
        return isPlain ? 'unusable' : 'unencrypted';
      }
      acceptsKeys = remote.keyPayloadType !== undefined;
      worker.setRemote(id, remote, phase);
      return 'applied';
    },
    acceptsKeys: () => acceptsKeys,
    send: (command) => worker.send(id, command),
    answerReoffer(sdp) {
      const answer = answerOffer(sdp, local, ipVersion, shape);
      if (answer === undefined) return undefined;
      shape = answer.shape;
      acceptsKeys = answer.remote.keyPayloadType !== undefined;
      worker.setRemote(id, answer.remote, 'answer');
      return keepVersion(answer.build);
    },
    offerAgain: () => keepVersion((next) => buildOffer(local, next, shape)),
    async openPartner(observer, offer) {
      const opened = await worker.open(observer);
      return opened && createPartner(id, { ...options, ...opened, offer });
    },
    close: () => worker.close(id),
  };
}

/**
 * Creates the second leg's session in the worker that runs session `id`. Sessions in different
 * workers couldn't be bridged.
 */
function createPartner(id: number, options: MediaSessionOptions): PartnerSession {
  return {
    ...createMediaSession(options),
    bridge: (phase) => options.worker.bridge(id, options.id, phase),
  };
}
