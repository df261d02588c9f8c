// RTCP packets (RFC 3550, sections 6.4 to 6.6), as bytes.

const version = 0x80;

function packet(type: number, count: number, ssrc: number, rest: readonly number[]): number[] {
  const body = [ssrc >>> 24, (ssrc >>> 16) & 0xff, (ssrc >>> 8) & 0xff, ssrc & 0xff, ...rest];
  return [version | count, type, 0, body.length / 4, ...body];
}

const zeros = (count: number): number[] => new Array<number>(count).fill(0);

export const senderReport = (ssrc: number, blocks = 0): number[] =>
  packet(200, blocks, ssrc, zeros(20 + blocks * 24));

export const receiverReport = (ssrc: number, blocks = 0): number[] =>
  packet(201, blocks, ssrc, zeros(blocks * 24));

/** A CNAME of one letter, and its end. */
export const description = (ssrc: number): number[] => packet(202, 1, ssrc, [1, 1, 0x61, 0]);

export const bye = (ssrc: number): number[] => packet(203, 1, ssrc, []);
