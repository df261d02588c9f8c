// The question whether a late process is alive, and the answer. Both are signed with a key that is
// random for each start of a process and that other processes read from the database. An answer
// therefore proves that this start of the process is alive: neither a process that was restarted at
// the same address nor a stranger can give it. A stranger can't ask either, so nobody but another
// node learns which owner id a process has, or makes it give up its calls.

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';

/**
 * `life` asks for nothing but an answer. `yield` also makes the process give up its calls, unless
 * it holds its lease.
 */
export type Wanted = 'life' | 'yield';

const questionSchema = z.object({
  ownerId: z.string(),
  wants: z.enum(['life', 'yield']),
  nonce: z.string(),
  proof: z.string(),
});
const answerSchema = z.object({ state: z.enum(['alive', 'yielding']), proof: z.string() });

export type AliveState = z.infer<typeof answerSchema>['state'];

const keyBytes = 32;
const nonceBytes = 16;

export function newQuestionKey(): string {
  return randomBytes(keyBytes).toString('base64url');
}

export type Question = {
  /** To be sent as JSON. */
  readonly body: object;
  /** @returns undefined if this isn't an answer of the process that was asked */
  readonly read: (answer: unknown) => AliveState | undefined;
};

export function createQuestion(
  { ownerId, questionKey }: { readonly ownerId: string; readonly questionKey: string },
  wants: Wanted,
): Question {
  const nonce = randomBytes(nonceBytes).toString('base64url');
  const proof = sign(questionKey, 'question', wants, nonce);
  return {
    body: { ownerId, wants, nonce, proof },
    read: (given) => {
      const answer = answerSchema.safeParse(given).data;
      if (answer === undefined) return undefined;
      const { state } = answer;
      return isSame(answer.proof, sign(questionKey, 'answer', state, nonce)) ? state : undefined;
    },
  };
}

/** @returns undefined if this isn't a question to this process */
export type Answerer = (question: unknown) => object | undefined;

/**
 * @param giveUp gives up this process's calls, and returns false if it holds its lease and
 *   therefore keeps them
 */
export function createAnswerer(
  { ownerId, questionKey }: { readonly ownerId: string; readonly questionKey: string },
  giveUp: () => boolean,
): Answerer {
  return (given) => {
    const question = questionSchema.safeParse(given).data;
    if (question === undefined || question.ownerId !== ownerId) return undefined;
    const { wants, nonce } = question;
    if (!isSame(question.proof, sign(questionKey, 'question', wants, nonce))) return undefined;
    const state: AliveState = wants === 'yield' && giveUp() ? 'yielding' : 'alive';
    return { state, proof: sign(questionKey, 'answer', state, nonce) };
  };
}

function sign(key: string, ...parts: readonly [string, string, string]): string {
  return createHmac('sha256', key).update(JSON.stringify(parts)).digest('base64url');
}

function isSame(given: string, expected: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}
