// A phone without encryption at the other end of a bridge. It hears the call's audio byte by byte.

import { onTestFinished } from 'vitest';
import type { MediaSession } from '../../../src/calls/media.ts';
import { SrtpPhone } from './srtp-phone.ts';

/** Closes the resource after the test. The last one is closed first. */
export function keep<One extends AsyncDisposable>(one: One): One {
  onTestFinished(() => one[Symbol.asyncDispose]());
  return one;
}

/** Connects the call to a plain phone until the end of the test, as a bridged transfer does. */
export async function connectPlainPhone(session: MediaSession): Promise<SrtpPhone> {
  const phone = keep(await SrtpPhone.open());
  const partner = await session.openPartner(
    { observe: () => undefined },
    { codecs: ['PCMU'], encryption: 'rtp' },
  );
  if (partner === undefined) throw new Error('no second session');
  onTestFinished(() => partner.close());
  phone.follow(partner.offerSdp);
  partner.applyAnswer(phone.sdp(), 'answer');
  partner.bridge('answered');
  return phone;
}
