// Unmodified drachtio-srf on an embedded engine of its own: the side that calls sipp.

import Srf from 'drachtio-srf';
import { startEmbeddedEngine } from '../../support/sip-engine.ts';

const SECRET = 'sipp-test';
export const OFFER = [
  'v=0',
  'o=caller 1 1 IN IP4 127.0.0.1',
  's=-',
  'c=IN IP4 127.0.0.1',
  't=0 0',
  'm=audio 15000 RTP/AVP 0 101',
  'a=rtpmap:0 PCMU/8000',
  'a=rtpmap:101 telephone-event/8000',
  'a=sendrecv',
  '',
].join('\r\n');

export type CallResult =
  | { readonly kind: 'answered'; readonly dialog: Srf.Dialog }
  | { readonly kind: 'refused'; readonly status: number; readonly reason: string };

export type PlacedCall = {
  /** Statuses and bodies of the provisional responses so far. */
  readonly provisionals: { readonly status: number; readonly body: string }[];
  /** Resolves with the first provisional response. */
  readonly ringing: Promise<void>;
  readonly result: Promise<CallResult>;
  /** Resolves when the engine has accepted the CANCEL. */
  cancel(): Promise<void>;
};

export type Caller = AsyncDisposable & {
  /** The address at which the engine listens for SIP. */
  readonly address: { readonly host: string; readonly port: number };
  /** Answers the next call. Resolves with the method of the request that ends it. */
  answerNext(): Promise<string>;
  place(uri: string, options?: Partial<Srf.CreateUACOptions>): PlacedCall;
};

export async function startCaller(): Promise<Caller> {
  const engine = await startEmbeddedEngine({ secret: SECRET });
  const srf = new Srf();
  await new Promise<void>((resolve, reject) => {
    srf.on('connect', (error: Error | null) => (error ? reject(error) : resolve()));
    srf.on('error', reject);
    void srf.connect({ host: '127.0.0.1', port: engine.controlPort, secret: SECRET });
  });
  return {
    address: { host: '127.0.0.1', port: engine.sipPort },
    answerNext: () => answerNext(srf),
    place: (uri, options = {}) => place(srf, uri, options),
    [Symbol.asyncDispose]: async () => {
      srf.disconnect();
      await engine.close();
    },
  };
}

function answerNext(srf: Srf): Promise<string> {
  return new Promise((resolve, reject) => {
    srf.invite((request, response) => {
      srf
        .createUAS(request, response, { localSdp: OFFER })
        .then((dialog) => dialog.on('destroy', (bye) => resolve(bye.method)), reject);
    });
  });
}

/** Resolves with the first answer to the BYE, as srf does. */
export function hangUp(dialog: Srf.Dialog): Promise<void> {
  return new Promise((resolve, reject) => {
    dialog.destroy({ headers: {} }, (error) => (error ? reject(error) : resolve()));
  });
}

function place(srf: Srf, uri: string, options: Partial<Srf.CreateUACOptions>): PlacedCall {
  const provisionals: PlacedCall['provisionals'] = [];
  let request: Srf.SrfRequest | undefined;
  let onRinging = () => {};
  const ringing = new Promise<void>((resolve) => {
    onRinging = resolve;
  });
  const call = srf.createUAC(
    uri,
    { localSdp: OFFER, ...options },
    {
      // srf passes an error first, which its types omit.
      cbRequest: (...given: unknown[]) => {
        request = given.at(-1) as Srf.SrfRequest;
      },
      cbProvisional: (response: Srf.SrfResponse) => {
        provisionals.push({ status: response.status, body: response.body });
        onRinging();
      },
    },
  );
  const result = call.then(
    (dialog): CallResult => ({ kind: 'answered', dialog }),
    (error: { status?: number; reason?: string }): CallResult => {
      if (error.status === undefined) throw error;
      return { kind: 'refused', status: error.status, reason: error.reason ?? '' };
    },
  );
  const cancel = () =>
    new Promise<void>((resolve, reject) => {
      if (request === undefined) reject(new Error('There is no INVITE to cancel yet.'));
      else request.cancel((error) => (error ? reject(error) : resolve()));
    });
  return { provisionals, ringing, result, cancel };
}
