// What a receiver of notifications must do, one check after the other: each sends something, looks at the answers, and says
// what to mend. A receiver is seen by its answers alone: what it did with a repetition only by the word that it answers.

import type { CallEventType } from '../../calls/contract/call-event.ts';
import { statusRows } from '../../calls/contract/event-table.ts';
import type { NotificationBody } from '../../calls/contract/notification.ts';
import { typesWithStatus } from '../../calls/contract/notify-events.ts';
import {
  failed,
  isTaken,
  type Judgement,
  judgeRefused,
  judgeRepetition,
  judgeTaken,
  mendRefusal,
  passed,
  resultOf,
  tellIt,
  unseen,
  wordsOf,
} from './judgements.ts';
import { MadeUpCall } from './made-up-call.ts';
import type { Answer, Prepared, ReceiverConnection, SendOptions } from './receiver-connection.ts';

export type ReceiverCheck = {
  readonly name: string;
  /** What it weighs in the score. */
  readonly points: number;
  run(receiver: ReceiverConnection): Promise<Judgement>;
};

function prepared(
  receiver: ReceiverConnection,
  body: NotificationBody,
  options?: SendOptions,
): Prepared {
  return receiver.prepare(body.eventId, JSON.stringify(body), options);
}

type Try = (receiver: ReceiverConnection) => Promise<Answer>;

function takes(name: string, points: number, send: Try, mend?: string): ReceiverCheck {
  return { name, points, run: async (receiver) => judgeTaken(await send(receiver), mend) };
}

function refuses(name: string, points: number, send: Try, mend: string): ReceiverCheck {
  return { name, points, run: async (receiver) => judgeRefused(await send(receiver), mend) };
}

const first = (type: CallEventType) => new MadeUpCall().next(type);

/** Each status that there is, as its own call's only notification. */
const statusChecks = [
  ...typesWithStatus.map((type) => statusCheck(statusRows[type].status, type)),
  statusCheck('Event', 'dtmf'),
];

function statusCheck(status: string, type: CallEventType): ReceiverCheck {
  return takes(`status ${status}`, 5, (receiver) => receiver.send(prepared(receiver, first(type))));
}

const rawBody = takes(
  'raw body',
  10,
  (receiver) => {
    const body = { ...first('completed'), reason: 'Décroché 📞 </end>', reading: 1.0 };
    // As no library would write it: who parses and writes it again gets other bytes.
    const text = JSON.stringify(body, undefined, '\t').replace('é', '\\u00e9');
    return receiver.send(receiver.prepare(body.eventId, `${text}\n`));
  },
  'check the signature over the bytes as they came, before any parsing or decoding',
);

const laterVersion = takes(
  'later version',
  5,
  (receiver) => {
    const body = { ...first('failed'), outcome: 'a-later-word', laterMember: { new: [true] } };
    return receiver.send(receiver.prepare(body.eventId, JSON.stringify(body)));
  },
  'pass over members and words that you do not know: later versions may add some',
);

const rotation = takes(
  'rotated secret',
  5,
  (receiver) =>
    receiver.send(
      prepared(receiver, first('answered'), { secrets: ['whsec_bmV3', receiver.secret] }),
    ),
  'try each `v1` of the header: while a secret is rotated there are two',
);

const wrongSignature = refuses(
  'wrong signature',
  15,
  (receiver) =>
    receiver.send(prepared(receiver, first('answered'), { secrets: ['whsec_d3Jvbmc='] })),
  'compare `v1` with HMAC-SHA256 over `<t>.<raw body>` keyed with the secret, and answer 401 where it differs',
);

const changedBody = refuses(
  'changed body',
  10,
  (receiver) => {
    const body = first('answered');
    const signedBody = JSON.stringify({ ...body, sequence: 7 });
    return receiver.send(prepared(receiver, body, { signedBody }));
  },
  'sign the raw body itself, not only the time',
);

const unsigned = refuses(
  'no signature',
  10,
  (receiver) => receiver.send(prepared(receiver, first('answered'), { secrets: [] })),
  'answer 401 where the header Gateway-Signature is missing',
);

const oldTimestamp = refuses(
  'old timestamp',
  10,
  (receiver) => receiver.send(prepared(receiver, first('answered'), { ageS: 3_600 })),
  'refuse where `t` is more than 5 minutes from now: who recorded a notification could send it for ever',
);

const retry: ReceiverCheck = {
  name: 'retry',
  points: 10,
  run: async (receiver) => {
    const body = first('answered');
    const before = await receiver.send(prepared(receiver, body));
    // As after an answer that was lost: the same event and body, signed at another time.
    const again = await receiver.send(prepared(receiver, body, { ageS: 1 }));
    return judgeRepetition(before, again);
  },
};

const repeat: ReceiverCheck = {
  name: 'repeat',
  points: 5,
  run: async (receiver) => {
    const message = prepared(receiver, first('completed'));
    return judgeRepetition(await receiver.send(message), await receiver.send(message));
  },
};

const copiesAtOnce = 6;

const atOnce: ReceiverCheck = {
  name: 'repeat at once',
  points: 5,
  run: async (receiver) => {
    const message = prepared(receiver, first('answered'));
    const copies = Array.from({ length: copiesAtOnce }, () => receiver.send(message));
    const answers = await Promise.all(copies);
    const refused = answers.find((answer) => !isTaken(answer));
    if (refused !== undefined) return failed(wordsOf(refused), mendRefusal(refused));
    if (answers.some((answer) => resultOf(answer) === undefined)) return unseen('2xx', tellIt);
    const applied = answers.filter((answer) => resultOf(answer) !== 'duplicate').length;
    return applied === 1
      ? passed(`one of ${copiesAtOnce} was applied`)
      : failed(
          `${applied} of ${copiesAtOnce} were applied`,
          'look up and store the `eventId` in one step: a unique key, or a lock',
        );
  },
};

const order: ReceiverCheck = {
  name: 'order swapped',
  points: 10,
  run: async (receiver) => {
    const call = new MadeUpCall();
    const [answered, completed] = [call.next('answered'), call.next('completed')];
    const end = await receiver.send(prepared(receiver, completed));
    const late = await receiver.send(prepared(receiver, answered));
    const detail = `the end: ${wordsOf(end)}; then the answer: ${wordsOf(late)}`;
    const refused = [end, late].find((answer) => !isTaken(answer));
    if (refused !== undefined)
      return failed(detail, 'take what comes out of order: it is not sent in order again');
    if (resultOf(end) === undefined || resultOf(late) === undefined) return unseen(detail, tellIt);
    const isRight =
      resultOf(late) === 'late' || (resultOf(end) === 'held' && resultOf(late) === 'applied');
    return isRight
      ? passed(detail)
      : failed(
          detail,
          'keep the highest `sequence` of each call: what is below it must not change what the call is now',
        );
  },
};

/** In this order: what a receiver must take comes first, so that the rest can be told from one that refuses everything. */
export const receiverChecks: readonly ReceiverCheck[] = [
  ...statusChecks,
  rawBody,
  laterVersion,
  rotation,
  wrongSignature,
  changedBody,
  unsigned,
  oldTimestamp,
  retry,
  repeat,
  atOnce,
  order,
];
