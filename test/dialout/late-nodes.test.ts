// Which late processes are asked, what for, and which of them lose their calls.

import { expect, test } from 'vitest';
import {
  createAnswerer,
  createQuestion,
  newQuestionKey,
  type Question,
} from '../../src/recovery/alive-question.ts';
import { type Deliver, LateNodes, type LateProcess } from '../../src/recovery/late-nodes.ts';
import { recordedLogger } from '../support/recorded-logger.ts';

const minuteMs = 60_000;
const [key, otherKey] = [newQuestionKey(), newQuestionKey()];
const late = (ownerId: string, lateMs = 0): LateProcess => ({
  ...{ ownerId, lateMs, urls: [], questionKey: key },
});
const keeps = (): boolean => false;

/** Delivers to processes in memory. `holds` states whether a process has renewed its lease. */
function rig(found: readonly LateProcess[], living: readonly string[], holds = false) {
  const { logger, lines } = recordedLogger();
  const yielded: string[] = [];
  const deliver: Deliver = async ({ ownerId }, { body, read }) => {
    if (!living.includes(ownerId)) return undefined;
    const answer = createAnswerer({ ownerId, questionKey: key }, () => {
      if (!holds) yielded.push(ownerId);
      return !holds;
    });
    return read(answer(body));
  };
  const lost: (readonly string[])[] = [];
  const nodes = new LateNodes({
    store: {
      findLate: async () => found,
      expireOthers: async (ownerIds) => {
        lost.push(ownerIds);
        return ownerIds;
      },
    },
    ...{ deliver, logger },
  });
  return { nodes, lost, yielded, messages: () => lines.map(({ msg }) => msg) };
}

test('only processes that do not answer lose their calls', async () => {
  const { nodes, lost, yielded } = rig([late('a/1'), late('b/1'), late('c/1')], ['b/1']);

  expect(await nodes.expire()).toEqual(['a/1', 'c/1']);
  expect(lost).toEqual([['a/1', 'c/1']]);
  expect(yielded).toEqual([]);
});

test('a living process is logged once, not in every sweep', async () => {
  const { nodes, lost, messages } = rig([late('b/1')], ['b/1']);
  for (let sweep = 0; sweep < 3; sweep += 1) expect(await nodes.expire()).toEqual([]);

  expect(lost).toEqual([]);
  expect(messages()).toEqual([
    'a node does not renew its lease, but it answers and keeps its calls',
  ]);
});

test('a process that has answered loses its calls only after three misses in a row', async () => {
  const living = ['b/1'];
  const { nodes, messages } = rig([late('b/1')], living);
  const sweep = async (answers: boolean): Promise<readonly string[]> => {
    living.splice(0, living.length, ...(answers ? ['b/1'] : []));
    return await nodes.expire();
  };

  const lost: (readonly string[])[] = [];
  for (const answers of [true, false, false, true, false, false]) lost.push(await sweep(answers));

  expect(lost.flat()).toEqual([]);
  expect(messages()).toHaveLength(1);
  expect(await sweep(false)).toEqual(['b/1']);
});

test('a process that answers for five minutes without renewing has to hang up its own calls', async () => {
  const found = [late('a/1', 5 * minuteMs - 1), late('b/1', 5 * minuteMs + 1)];
  const { nodes, lost, yielded } = rig(found, ['a/1', 'b/1']);

  expect(await nodes.expire()).toEqual([]);
  expect(lost).toEqual([]);
  expect(yielded).toEqual(['b/1']);
});

test('a process that still answers long after it had to hang up loses its calls', async () => {
  const { nodes } = rig([late('b/1', 5 * minuteMs + 10_001)], ['b/1']);

  expect(await nodes.expire()).toEqual(['b/1']);
});

test('a process that has just renewed keeps its calls, even if it is asked to yield', async () => {
  const { nodes, yielded } = rig([late('b/1', 5 * minuteMs + 1)], ['b/1'], true);

  expect(await nodes.expire()).toEqual([]);
  expect(yielded).toEqual([]);
});

const asked = { ownerId: 'b/1', questionKey: key };
const answers = ({ body, read }: Question, ownerId: string, questionKey: string) =>
  read(createAnswerer({ ownerId, questionKey }, keeps)(body));

test('a process answers only questions to itself that another node has signed', () => {
  const question = () => createQuestion(asked, 'life');

  expect(answers(question(), 'b/1', key)).toBe('alive');
  // The process was restarted at the same address.
  expect(answers(question(), 'b/2', otherKey)).toBeUndefined();
  // A stranger that knows the owner id.
  expect(answers(createQuestion({ ...asked, questionKey: otherKey }, 'yield'), 'b/1', key)).toBe(
    undefined,
  );
  const changed = { ...question(), body: { ...question().body, wants: 'yield' } };
  expect(answers(changed, 'b/1', key)).toBeUndefined();
  for (const body of [undefined, null, 'x', [], {}, { ownerId: 'b/1' }]) {
    expect(createAnswerer(asked, keeps)(body)).toBeUndefined();
  }
});

test('only the answer to this very question counts', () => {
  const [one, other] = [createQuestion(asked, 'life'), createQuestion(asked, 'life')];
  const answer = createAnswerer(asked, keeps)(one.body);

  expect(one.read(answer)).toBe('alive');
  expect(other.read(answer)).toBeUndefined();
  expect(one.read({ ...answer, state: 'yielding' })).toBeUndefined();
  for (const given of [undefined, null, 'alive', one.body, { state: 'alive' }]) {
    expect(one.read(given)).toBeUndefined();
  }
});
