// Reads sipp's logs: its messages, and those of its errors that the caller caused.

export type SippMessage = {
  readonly direction: 'sent' | 'received';
  /** When sipp received or sent the message. */
  readonly atMs: number;
  readonly text: string;
};

/**
 * Matches sipp's complaint about an unexpected message, during a call and after its end. sipp
 * prints the complaint without a line end.
 */
const unexpected =
  /(?:^|(?<='))[^'\n]*(?:Dead call \S+ \(successful\)|Continuing call on unexpected message for Call-Id '[^']*': while expecting '[^']*' \(index \d+\)), received '([^']*)'\.?\s*/gm;
/** RFC 3261, 17: T1. No request is retransmitted sooner. */
const repeatedAfterMs = 500;

/**
 * Parses the message log of sipp. Each message begins with a ruler and a heading:
 * `UDP message sent (12 bytes):` or `UDP message received [12] bytes :`.
 */
export function parseMessages(log: string): SippMessage[] {
  const heading = /^-{20,} (\S+)[ \t](\S+)\n(?:UDP|TCP) message (sent|received) .*\n\n/gm;
  const marks = [...log.matchAll(heading)];
  return marks.map((mark, index) => ({
    direction: mark[3] === 'sent' ? 'sent' : 'received',
    atMs: Date.parse(`${mark[1]}T${mark[2]}`),
    text: log
      .slice(mark.index + mark[0].length, marks[index + 1]?.index)
      // sipp logs a message for an ended call twice.
      .replace(/^-{20,}\nDead call [\s\S]*/m, '')
      .replace(/\n$/, ''),
  }));
}

/**
 * Returns sipp's errors without those about messages that arrive again because sipp, or a caller in
 * another process, stood still.
 */
export function withoutRepetitions(
  errors: string,
  messages: readonly SippMessage[],
  patientCaller = false,
): string {
  const rest = errors.replaceAll(unexpected, (entry: string, text: string) => {
    const isRight = text.startsWith('ACK ')
      ? isAckOfRepeatedAnswer(text, messages)
      : isRepetition(text, messages, patientCaller ? 0 : 1);
    return isRight ? '' : entry;
  });
  if (rest === errors) return errors;
  return rest
    .replaceAll(/^There were more errors, see .*$/gm, '')
    .replaceAll(/^The following events occurred:\s*/gm, '');
}

/**
 * Whether an ACK acknowledges a retransmitted final answer. Each transmission of a final answer to
 * an INVITE gets an ACK.
 */
function isAckOfRepeatedAnswer(text: string, messages: readonly SippMessage[]): boolean {
  const inviteTransaction = transactionOf(text).replace(/ ACK$/, ' INVITE');
  const acks = messages.filter(
    (message) =>
      message.direction === 'received' &&
      message.text.startsWith('ACK ') &&
      transactionOf(message.text) === transactionOf(text),
  );
  const answers = answersIn(messages, inviteTransaction).filter(
    (answer) => !/^\S+ 1/.test(answer.text),
  );
  return acks.length > 1 && acks.length <= answers.length;
}

/**
 * Returns true if a request is an identical retransmission. If sipp stood still, it reads all
 * copies together before it has answered the first. If the caller reads the answer late, it
 * retransmits the request just once.
 */
function isRepetition(
  text: string,
  messages: readonly SippMessage[],
  mostAfterAnswer: number,
): boolean {
  const copies = messages.filter(
    (message) => message.direction === 'received' && plain(message.text) === plain(text),
  );
  const answeredAtMs = answersIn(messages, transactionOf(text))[0]?.atMs ?? Infinity;
  const late = copies.filter(({ atMs }) => atMs >= answeredAtMs + repeatedAfterMs);
  return copies.length > 1 && late.length <= mostAfterAnswer;
}

function answersIn(messages: readonly SippMessage[], transaction: string): readonly SippMessage[] {
  return messages.filter(
    ({ direction, text }) =>
      direction === 'sent' && text.startsWith('SIP/2.0 ') && transactionOf(text) === transaction,
  );
}

/** Returns the Call-ID and CSeq of a message, which identify its transaction. */
function transactionOf(text: string): string {
  const header = (name: string) => new RegExp(`^${name}: *(.*?)\\s*$`, 'im').exec(text)?.[1] ?? '';
  return `${header('Call-ID')} ${header('CSeq')}`;
}

const plain = (text: string): string => text.replaceAll('\r', '').trim();
