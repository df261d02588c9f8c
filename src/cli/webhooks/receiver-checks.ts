// The checks for a notification receiver. Each check sends notifications, judges the responses, and
// advises what to fix. A check sees nothing but the responses, so it relies on a word in the
// response to learn e.g. what the receiver did with a duplicate.

import type { CallEventType } from '../../calls/contract/call-event.ts';
import { statusRows } from '../../calls/contract/event-table.ts';
import type { NotificationBody } from '../../calls/contract/notification.ts';
import { typesWithStatus } from '../../calls/contract/notify-events.ts';
import {
  adviceForRefusal,
  adviceToReport,
  describeAnswer,
  failed,
  isAccepted,
  type Judgement,
  judgeAccepted,
  judgeRefused,
  judgeRepetition,
  passed,
  resultOf,
  unseen,
} from './judgements.ts';
import { MadeUpCall } from './made-up-call.ts';
import type { Answer, Prepared, ReceiverConnection, SendOptions } from './receiver-connection.ts';

export type ReceiverCheck = {
  readonly name: string;
  /** The check's weight in the score. */
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

function acceptCheck(name: string, points: number, send: Try, mend?: string): ReceiverCheck {
  return { name, points, run: async (receiver) => judgeAccepted(await send(receiver), mend) };
}

function rejectCheck(name: string, points: number, send: Try, mend: string): ReceiverCheck {
  return { name, points, run: async (receiver) => judgeRefused(await send(receiver), mend) };
}

const first = (type: CallEventType) => new MadeUpCall().next(type);

/** Contains a check for each status, which sends a single notification for a new call. */
const statusChecks = [
  ...typesWithStatus.map((type) => statusCheck(statusRows[type].status, type)),
  statusCheck('Event', 'dtmf'),
];

function statusCheck(status: string, type: CallEventType): ReceiverCheck {
  return acceptCheck(`status ${status}`, 5, (receiver) =>
    receiver.send(prepared(receiver, first(type))),
  );
}

const rawBody = acceptCheck(
  'raw body',
  10,
  (receiver) => {
    const body = { ...first('completed'), reason: 'Décroché 📞 </end>', reading: 1.0 };
    // No library writes JSON like this. Therefore a receiver that parses the body and serialises it
    // again gets different bytes.
    const text = JSON.stringify(body, undefined, '\t').replace('é', '\\u00e9');
    return receiver.send(receiver.prepare(body.eventId, `${text}\n`));
  },
  'verify the signature over the raw bytes, before any parsing or decoding',
);

const laterVersion = acceptCheck(
  'later version',
  5,
  (receiver) => {
    const body = { ...first('failed'), outcome: 'a-later-word', laterMember: { new: [true] } };
    return receiver.send(receiver.prepare(body.eventId, JSON.stringify(body)));
  },
  'ignore unknown members and values: later versions may add some',
);

const rotation = acceptCheck(
  'rotated secret',
  5,
  (receiver) =>
    receiver.send(
      prepared(receiver, first('answered'), { secrets: ['whsec_bmV3', receiver.secret] }),
    ),
  'try each `v1` of the header: there are two during the rotation of a secret',
);

const wrongSignature = rejectCheck(
  'wrong signature',
  15,
  (receiver) =>
    receiver.send(prepared(receiver, first('answered'), { secrets: ['whsec_d3Jvbmc='] })),
  'compare `v1` with the HMAC-SHA256 of `<t>.<raw body>`, keyed with the secret, and respond with 401 if they differ',
);

const changedBody = rejectCheck(
  'changed body',
  10,
  (receiver) => {
    const body = first('answered');
    const signedBody = JSON.stringify({ ...body, sequence: 7 });
    return receiver.send(prepared(receiver, body, { signedBody }));
  },
  'compute the signature over the raw body, not only over the time',
);

const unsigned = rejectCheck(
  'no signature',
  10,
  (receiver) => receiver.send(prepared(receiver, first('answered'), { secrets: [] })),
  'respond with 401 if the Gateway-Signature header is missing',
);

const oldTimestamp = rejectCheck(
  'old timestamp',
  10,
  (receiver) => receiver.send(prepared(receiver, first('answered'), { ageS: 3_600 })),
  'refuse a `t` that is more than 5 minutes from now: otherwise a recorded notification could be replayed forever',
);

const retry: ReceiverCheck = {
  name: 'retry',
  points: 10,
  run: async (receiver) => {
    const body = first('answered');
    const before = await receiver.send(prepared(receiver, body));
    // When a response was lost, the gateway retries with the same event and body but a new
    // timestamp.
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
    const refused = answers.find((answer) => !isAccepted(answer));
    if (refused !== undefined) return failed(describeAnswer(refused), adviceForRefusal(refused));
    if (answers.some((answer) => resultOf(answer) === undefined))
      return unseen('2xx', adviceToReport);
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
    const detail = `the end: ${describeAnswer(end)}; then the answer: ${describeAnswer(late)}`;
    const refused = [end, late].find((answer) => !isAccepted(answer));
    if (refused !== undefined)
      return failed(
        detail,
        'accept notifications out of order: the gateway does not send them again in order',
      );
    if (resultOf(end) === undefined || resultOf(late) === undefined)
      return unseen(detail, adviceToReport);
    const isRight =
      resultOf(late) === 'late' || (resultOf(end) === 'held' && resultOf(late) === 'applied');
    return isRight
      ? passed(detail)
      : failed(
          detail,
          'store the highest `sequence` of each call: a lower one must not change the state of the call',
        );
  },
};

/**
 * All checks in order. We start with notifications that must be accepted, which lets us tell a
 * receiver that checks signatures from a receiver that rejects everything.
 */
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
