// Reads SIP messages off the control connection for people who inspect calls. We see every message
// that the engine received from the network, and every message that it sent on behalf of this
// process. The engine doesn't report messages that it sends on its own, i.e. the ACK for a refusal,
// the response to a CANCEL, and retransmissions.

import type { SipMessage } from '../../calls/capture/capture.ts';

/**
 * Parses a frame from the engine.
 * @param frame the frame without its length prefix
 * @returns undefined if the frame doesn't contain a SIP message
 */
export function sipMessageOf(frame: string, at: Date): SipMessage | undefined {
  const lineEnd = frame.indexOf('\r\n');
  if (lineEnd < 0) return undefined;
  const fields = frame.slice(0, lineEnd).split('|', 16);
  // id|sip|source|bytes|protocol|address|port|… or
  // id|response|message|OK|source|bytes|protocol|address|port|…
  const begin = fields[1] === 'sip' ? 2 : fields[1] === 'response' && fields[3] === 'OK' ? 4 : 0;
  if (begin === 0) return undefined;
  const [source, , transport = '', address = '', port = ''] = fields.slice(begin);
  const text = frame.slice(lineEnd + 2);
  if (text === '' || (source !== 'network' && source !== 'application')) return undefined;
  return {
    at,
    // In a `sip` frame, the source `application` means that the engine generated the message, e.g.
    // a BYE or a 408.
    isOurs: begin === 4,
    transport,
    address,
    port: Number.parseInt(port, 10) || 0,
    text,
  };
}

/** Returns the value of the Call-ID header, in either its long or its short form. */
export function sipCallIdOf(text: string): string | undefined {
  return /^(?:call-id|i)[ \t]*:[ \t]*(\S{1,256})/im.exec(text)?.[1];
}
