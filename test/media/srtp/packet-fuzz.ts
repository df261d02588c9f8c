// Random packets and reports, for an encrypted session and for a bridge of an encrypted session and
// a plain one. A session throws if one of them does harm.

import { defaultAmdTimers } from '../../../src/calls/call-types.ts';
import { writeReport } from '../../../src/media/rtcp/rtcp-packets.ts';
import { SrtpSender } from '../../../src/media/srtp/srtp-sender.ts';
import { type Random, randomFrom } from '../../faults/random.ts';
import { remote } from '../support/session-bench.ts';
import { farEndAddress, newKey, openLeg, packet } from './encrypted-leg.ts';

/** Rounds between two keys of the far end. */
const keyRounds = 5_000;
/** Rounds until the bridge, which may follow a hostile packet anywhere, is replaced. */
const bridgeRounds = 1_000;
const longestBytes = 1_500;
const noiseBytes = 65_536;
const mark = 0x5a;

type Kind = 'rtp' | 'rtcp';

export type FuzzReport = {
  /** Audio packets that the far end sent unchanged and for the first time. */
  readonly valid: number;
  /** Audio packets that the encrypted session heard. */
  readonly received: number;
  /** Packets and reports that the encrypted session must reject. */
  readonly invalid: number;
  readonly discarded: number;
};

export class PacketFuzz {
  readonly #random: Random;
  readonly #noises: Uint8Array;
  #keys = { ours: newKey(), theirs: newKey() };
  readonly #leg = openLeg(this.#keys);
  #farEnd = new SrtpSender(this.#keys.theirs);
  #bridge = openBridge();
  #sequence = 0;
  #last: { readonly kind: Kind; readonly bytes: Uint8Array } | undefined;
  #valid = 0;
  #invalid = 0;

  constructor(seed: number) {
    this.#random = randomFrom(seed);
    this.#noises = Uint8Array.from({ length: noiseBytes }, () => this.#random.between(0, 255));
  }

  /** Sends this number of packets and reports. */
  run(rounds: number): FuzzReport {
    for (let round = 1; round <= rounds; round += 1) {
      this.#send();
      if (round % 4 === 0) this.#tick();
      if (round % keyRounds === 0) this.#changeKey();
      if (round % bridgeRounds === 0) this.#bridge = openBridge();
    }
    const { received, discarded } = this.#leg.counts;
    return { valid: this.#valid, received, invalid: this.#invalid, discarded };
  }

  #send(): void {
    const kind = this.#random.pick(['rtp', 'rtp', 'rtcp']);
    switch (this.#random.pick(['valid', 'noise', 'changed', 'repeated', 'hostile', 'hostile'])) {
      case 'valid':
        this.#last = { kind, bytes: this.#sealed(kind) };
        if (kind === 'rtp') this.#valid += 1;
        this.#deliver(kind, this.#last.bytes);
        break;
      case 'noise':
        this.#deliverInvalid(kind, this.#noise(kind));
        break;
      case 'changed':
        this.#deliverInvalid(kind, this.#change(this.#sealed(kind)));
        break;
      case 'repeated':
        if (this.#last !== undefined) this.#deliverInvalid(this.#last.kind, this.#last.bytes);
        break;
      case 'hostile':
        this.#deliverHostile(kind);
    }
  }

  #deliver(kind: Kind, bytes: Uint8Array): void {
    // The session decrypts in place.
    if (kind === 'rtp') this.#leg.session.receive(bytes.slice(), ...farEndAddress);
    else this.#leg.session.receiveRtcp(bytes.slice(), ...farEndAddress);
  }

  #deliverInvalid(kind: Kind, bytes: Uint8Array): void {
    this.#invalid += 1;
    this.#deliver(kind, bytes);
  }

  /** Sends bytes of any content to both sides of the bridge. One of them gets them authentic. */
  #deliverHostile(kind: Kind): void {
    const bytes = this.#random.pick([
      () => this.#noise(kind),
      () => this.#change(this.#plain(kind)),
    ])();
    const { encrypted, plain, farEnd } = this.#bridge;
    if (kind === 'rtp') {
      plain.session.receive(bytes.slice(), ...farEndAddress);
      if (bytes.length >= 12) encrypted.session.receive(farEnd.protect(bytes), ...farEndAddress);
    } else {
      plain.session.receiveRtcp(bytes.slice(), ...farEndAddress);
      if (bytes.length >= 8)
        encrypted.session.receiveRtcp(farEnd.protectRtcp(bytes), ...farEndAddress);
    }
  }

  #sealed(kind: Kind): Uint8Array {
    const plain = this.#plain(kind);
    return kind === 'rtp' ? this.#farEnd.protect(plain).slice() : this.#farEnd.protectRtcp(plain);
  }

  #plain(kind: Kind): Uint8Array {
    this.#sequence += 1;
    if (kind === 'rtp') return packet(this.#sequence);
    return writeReport({
      ...{ ssrc: 7, cname: 'far end', isLast: false },
      sent: { at: { seconds: 1, fraction: 1 }, rtpTimestamp: 1, packets: 1, bytes: 160 },
      received: {
        ...{ ssrc: 0xcafe, fractionLost: 1, packetsLost: 1, highestSequence: 1, jitter: 1 },
        ...{ lastReport: 1, sinceLastReport: 1 },
      },
    });
  }

  /** Random bytes, most of which begin like a packet of this kind. */
  #noise(kind: Kind): Uint8Array {
    const length = this.#random.pick([
      this.#random.between(0, 60),
      this.#random.between(0, longestBytes),
    ]);
    const from = this.#random.between(0, noiseBytes - length);
    const bytes = this.#noises.slice(from, from + length);
    if (length < 2 || this.#random.between(0, 9) === 0) return bytes;
    bytes[0] = 0x80 | ((bytes[0] as number) & 0x3f);
    bytes[1] = kind === 'rtp' ? this.#random.pick([0, 8, 13, 101]) : this.#random.between(200, 204);
    return bytes;
  }

  /** Changes a packet in one of the ways in which a line or an attacker might. */
  #change(bytes: Uint8Array): Uint8Array {
    const random = this.#random;
    const between = (from: number, to: number) => random.between(from, to);
    const changed = bytes.slice();
    switch (random.pick(['bit', 'byte', 'cut', 'longer', 'head', 'splice'])) {
      case 'bit':
        flip(changed, between(0, bytes.length - 1), 1 << between(0, 7));
        return changed;
      case 'byte':
        flip(changed, between(0, bytes.length - 1), between(1, 255));
        return changed;
      case 'cut':
        return changed.subarray(0, between(0, bytes.length - 1));
      case 'longer':
        return Uint8Array.of(...changed, ...Array.from({ length: between(1, 40) }, () => mark));
      case 'head':
        for (let at = 0; at < 8; at += 1) flip(changed, at, between(at === 0 ? 1 : 0, 255));
        return changed;
      case 'splice':
        changed.copyWithin(between(8, 20), between(21, 40));
        flip(changed, 12, 1);
        return changed;
    }
  }

  #tick(): void {
    const { encrypted, plain } = this.#bridge;
    for (const { session, sent, reports } of [this.#leg, encrypted, plain]) {
      session.tick(true);
      sent.length = 0;
      reports.length = 0;
    }
  }

  #changeKey(): void {
    this.#keys = { ...this.#keys, theirs: newKey() };
    this.#leg.session.applyRemote({ ...remote, srtp: this.#keys }, 'answer');
    this.#farEnd = this.#farEnd.withKey(this.#keys.theirs);
    this.#last = undefined;
  }
}

function openBridge() {
  const keys = { ours: newKey(), theirs: newKey() };
  const [encrypted, plain] = [openLeg(keys), openLeg()];
  encrypted.session.relayTo(plain.session, () => undefined);
  plain.session.relayTo(encrypted.session, () => undefined);
  for (const { session } of [encrypted, plain])
    session.startDetection({ timers: defaultAmdTimers });
  return { encrypted, plain, farEnd: new SrtpSender(keys.theirs) };
}

function flip(bytes: Uint8Array, at: number, mask: number): void {
  bytes[at] = (bytes[at] as number) ^ mask;
}
