// Judges a receiver's responses and gives advice on what to fix.

import type { Answer } from './receiver-connection.ts';

export type Judgement = {
  /** `unseen` if the responses don't reveal the result. */
  readonly state: 'passed' | 'failed' | 'unseen';
  readonly detail: string;
  /** What to fix. Undefined if the check passed. */
  readonly mend?: string;
  /** True if the receiver didn't respond at all. */
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

export const adviceToReport =
  'respond with a one-word body that reports what you did: applied, duplicate, late or held';

export function describeAnswer(answer: Answer): string {
  if (answer.kind === 'unreachable') return answer.error;
  const { status, ms, result } = answer;
  return `${status} in ${ms} ms${result === undefined ? '' : `, ${result}`}`;
}

export const isAccepted = (answer: Answer): boolean =>
  answer.kind === 'answered' && answer.status >= 200 && answer.status < 300;

export const resultOf = (answer: Answer) =>
  answer.kind === 'answered' ? answer.result : undefined;

/** Gives advice for a valid notification that the receiver didn't accept. */
export function adviceForRefusal(answer: Answer): string {
  if (answer.kind === 'unreachable')
    return 'respond within 10 s: store the notification, respond, and do the work afterwards';
  if (answer.status >= 300 && answer.status < 400)
    return 'respond at this URL: the gateway does not follow redirects';
  if (answer.status === 401 || answer.status === 403)
    return 'accept this signature: check that you use the secret of the app, including `whsec_`, and the body bytes as received';
  if (answer.status === 410) return 'respond with 2xx: a 410 ends all notifications for the call';
  return 'respond with 2xx to every notification with a valid signature: after any other response, the gateway retries for 24 hours';
}

export function judgeAccepted(answer: Answer, mend = adviceForRefusal(answer)): Judgement {
  if (isAccepted(answer)) return passed(describeAnswer(answer));
  const isUnreachable = answer.kind === 'unreachable';
  return {
    ...failed(describeAnswer(answer), isUnreachable ? adviceForRefusal(answer) : mend),
    isUnreachable,
  };
}

/**
 * Judges the response to a request that the receiver must reject. With a 4xx, the receiver blames
 * the sender, as it should. After a 5xx, the gateway would hold back all notifications for the
 * receiver, and after a 410 it would stop sending the call's notifications.
 */
export function judgeRefused(answer: Answer, mend: string): Judgement {
  if (answer.kind === 'unreachable')
    return failed(answer.error, 'respond with 401 instead of closing the connection');
  const { status } = answer;
  if (isAccepted(answer)) return failed(`${status}: the receiver accepted it`, mend);
  const isRight = status >= 400 && status < 500 && status !== 410;
  return isRight
    ? passed(describeAnswer(answer))
    : failed(describeAnswer(answer), 'respond with 401');
}

/**
 * Judges the response to a duplicate. The receiver must accept duplicates, because otherwise the
 * gateway will retry them for 24 hours, but they must not change anything.
 */
export function judgeRepetition(before: Answer, again: Answer): Judgement {
  const detail = `${describeAnswer(before)}; then ${describeAnswer(again)}`;
  if (!isAccepted(before)) return failed(detail, adviceForRefusal(before));
  if (!isAccepted(again))
    return failed(
      detail,
      'respond with 2xx to duplicates: the gateway retries after any other response',
    );
  if (resultOf(again) === undefined) return unseen(detail, adviceToReport);
  return resultOf(again) === 'duplicate'
    ? passed(detail)
    : failed(detail, 'store each accepted `eventId` under a unique key, and ignore duplicates');
}
