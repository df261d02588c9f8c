// What sipp has logged: its messages, and what it complains of that is no fault of who called it.

export type SippMessage = {
  readonly direction: 'sent' | 'received';
  /** When sipp read or sent it. */
  readonly atMs: number;
  readonly text: string;
};

/** How sipp logs, and prints (with no end of line behind it), what its scenario does not expect: while the call goes on, and when it is over. */
const unexpected =
  /(?:^|(?<='))[^'\n]*(?:Dead call \S+ \(successful\)|Continuing call on unexpected message for Call-Id '[^']*': while expecting '[^']*' \(index \d+\)), received '([^']*)'\.?\s*/gm;
/** RFC 3261, 17: T1. No request is repeated sooner. */
const repeatedAfterMs = 500;

/** sipp heads each message with a ruler and `UDP message sent (12 bytes):` or `UDP message received [12] bytes :`. */
export function parseMessages(log: string): SippMessage[] {
  const heading = /^-{20,} (\S+)[ \t](\S+)\n(?:UDP|TCP) message (sent|received) .*\n\n/gm;
  const marks = [...log.matchAll(heading)];
  return marks.map((mark, index) => ({
    direction: mark[3] === 'sent' ? 'sent' : 'received',
    atMs: Date.parse(`${mark[1]}T${mark[2]}`),
    text: log
      .slice(mark.index + mark[0].length, marks[index + 1]?.index)
      // Of one for a call that is over it says so, with the message once more.
      .replace(/^-{20,}\nDead call [\s\S]*/m, '')
      .replace(/\n$/, ''),
  }));
}

/** sipp's errors without those about messages that come again because it, or a caller in another process, stood still. */
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

/** Each final answer to an INVITE has an ACK, however often it was sent. */
function isAckOfRepeatedAnswer(text: string, messages: readonly SippMessage[]): boolean {
  const ofInvite = transactionOf(text).replace(/ ACK$/, ' INVITE');
  const acks = messages.filter(
    (message) =>
      message.direction === 'received' &&
      message.text.startsWith('ACK ') &&
      transactionOf(message.text) === transactionOf(text),
  );
  const answers = answersIn(messages, ofInvite).filter((answer) => !/^\S+ 1/.test(answer.text));
  return acks.length > 1 && acks.length <= answers.length;
}

/**
 * A request to the letter as before. All that was sent to a sipp that stood still it reads at once, as it answers the first. Who reads an
 * answer late repeats the request once, and reads it then.
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

/** Its Call-ID and CSeq. */
function transactionOf(text: string): string {
  const header = (name: string) => new RegExp(`^${name}: *(.*?)\\s*$`, 'im').exec(text)?.[1] ?? '';
  return `${header('Call-ID')} ${header('CSeq')}`;
}

const plain = (text: string): string => text.replaceAll('\r', '').trim();
