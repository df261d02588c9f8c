// SIP as it passes on the control connection, for those who want to see it: every message that the engine got from the network,
// and each of ours as it went out. What the engine does by itself it does not tell: the ACK of a refusal, the answer to a CANCEL,
// repetitions.

import type { SipMessage } from '../../calls/capture/capture.ts';

/** Undefined: no SIP message. `frame`: of the engine, without its length. */
export function sipMessageOf(frame: string, at: Date): SipMessage | undefined {
  const lineEnd = frame.indexOf('\r\n');
  if (lineEnd < 0) return undefined;
  const fields = frame.slice(0, lineEnd).split('|', 16);
  // id|sip|source|bytes|protocol|address|port|… or id|response|message|OK|source|bytes|protocol|address|port|…
  const begin = fields[1] === 'sip' ? 2 : fields[1] === 'response' && fields[3] === 'OK' ? 4 : 0;
  if (begin === 0) return undefined;
  const [source, , transport = '', address = '', port = ''] = fields.slice(begin);
  const text = frame.slice(lineEnd + 2);
  if (text === '' || (source !== 'network' && source !== 'application')) return undefined;
  return {
    at,
    // Of `sip` frames, `application` is what the engine did by itself: a BYE, a 408.
    isOurs: begin === 4,
    transport,
    address,
    port: Number.parseInt(port, 10) || 0,
    text,
  };
}

/** Of its header, in the long or the short form. */
export function sipCallIdOf(text: string): string | undefined {
  return /^(?:call-id|i)[ \t]*:[ \t]*(\S{1,256})/im.exec(text)?.[1];
}
