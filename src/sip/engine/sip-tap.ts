// Reads SIP messages off the control connection, for people who inspect calls: every message that
// the engine received from the network, and each message of this process as it went out. The engine
// does not report what it sends on its own: the ACK of a refusal, the answer to a CANCEL, and
// retransmissions.

import type { SipMessage } from '../../calls/capture/capture.ts';

/**
 * Reads a frame of the engine.
 * @param frame the frame without its length
 * @returns undefined if the frame holds no SIP message
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
    // In a `sip` frame, the source `application` marks what the engine generated: a BYE, a 408.
    isOurs: begin === 4,
    transport,
    address,
    port: Number.parseInt(port, 10) || 0,
    text,
  };
}

/** Returns the value of the Call-ID header, in its long or its short form. */
export function sipCallIdOf(text: string): string | undefined {
  return /^(?:call-id|i)[ \t]*:[ \t]*(\S{1,256})/im.exec(text)?.[1];
}
