// What the answers of a receiver say about it, and what to mend.

import type { Answer } from './receiver-connection.ts';

export type Judgement = {
  /** `unseen`: its answers do not tell. */
  readonly state: 'passed' | 'failed' | 'unseen';
  readonly detail: string;
  /** What to mend; only where it failed or could not be seen. */
  readonly mend?: string;
  /** No answer came at all. */
  readonly isUnreachable?: boolean;
};

export const passed = (detail: string): Judgement => ({ state: 'passed', detail });
export const failed = (detail: string, mend: string): Judgement => ({
  state: 'failed',
  detail,
  mend,
});
export const unseen = (detail: string, mend: string): Judgement => ({
  state: 'unseen',
  detail,
  mend,
});

export const tellIt =
  'answer with a body that is one word, so that it can be seen: applied, duplicate, late or held';

export function wordsOf(answer: Answer): string {
  if (answer.kind === 'unreachable') return answer.error;
  const { status, ms, result } = answer;
  return `${status} in ${ms} ms${result === undefined ? '' : `, ${result}`}`;
}

export const isTaken = (answer: Answer): boolean =>
  answer.kind === 'answered' && answer.status >= 200 && answer.status < 300;

export const resultOf = (answer: Answer) =>
  answer.kind === 'answered' ? answer.result : undefined;

/** Why a notification that is right was not taken. */
export function mendRefusal(answer: Answer): string {
  if (answer.kind === 'unreachable')
    return 'answer within 10 s: store it, answer, and do the work afterwards';
  if (answer.status >= 300 && answer.status < 400)
    return 'answer at this address: redirects are not followed';
  if (answer.status === 401 || answer.status === 403)
    return 'take this signature: is the secret the one of the app, `whsec_` included, and is the body the bytes as they came?';
  if (answer.status === 410) return 'a 410 ends all notifications of the call: answer 2xx';
  return 'answer 2xx to what is signed, whatever it says: all else is sent again for 24 hours';
}

export function judgeTaken(answer: Answer, mend = mendRefusal(answer)): Judgement {
  if (isTaken(answer)) return passed(wordsOf(answer));
  const isUnreachable = answer.kind === 'unreachable';
  return { ...failed(wordsOf(answer), isUnreachable ? mendRefusal(answer) : mend), isUnreachable };
}

/** A 4xx says that it is the sender's fault; a 5xx holds back all that is owed to the receiver, a 410 ends the call's. */
export function judgeRefused(answer: Answer, mend: string): Judgement {
  if (answer.kind === 'unreachable')
    return failed(answer.error, 'answer 401 instead of closing the connection');
  const { status } = answer;
  if (isTaken(answer)) return failed(`${status}: it was taken`, mend);
  const isRight = status >= 400 && status < 500 && status !== 410;
  return isRight ? passed(wordsOf(answer)) : failed(wordsOf(answer), 'answer 401 to it');
}

/** A repetition must be taken, or it comes again for 24 hours, and must change nothing. */
export function judgeRepetition(before: Answer, again: Answer): Judgement {
  const detail = `${wordsOf(before)}; then ${wordsOf(again)}`;
  if (!isTaken(before)) return failed(detail, mendRefusal(before));
  if (!isTaken(again))
    return failed(detail, 'answer 2xx to what you have already: all else is sent again');
  if (resultOf(again) === undefined) return unseen(detail, tellIt);
  return resultOf(again) === 'duplicate'
    ? passed(detail)
    : failed(detail, 'keep the `eventId` of what you took, under a unique key, and drop it again');
}
