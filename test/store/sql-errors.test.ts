import { describe, expect, test } from 'vitest';
import {
  dataRefusal,
  isCertainlyUndone,
  isConflict,
  isRefusedData,
  isUnreachable,
  retryConflicts,
} from '../../src/store/sql-errors.ts';

const coded = (code: string) => Object.assign(new Error('failed'), { code });
const meaningsOf = (error: unknown) => ({
  refusedData: isRefusedData(error),
  conflict: isConflict(error),
  away: isUnreachable(error),
});
const none = { refusedData: false, conflict: false, away: false };

describe('a statement that failed', () => {
  test.each([
    ...['ECONNREFUSED', 'ENOENT', '08001', '28P01', '57P03', '53300', '25006', '23505', '40P01'],
    ...['CERT_HAS_EXPIRED', 'ERR_TLS_CERT_ALTNAME_INVALID'],
  ])('with %s certainly did nothing', (code) => {
    expect(isCertainlyUndone(new Error('query failed', { cause: coded(code) }))).toBe(true);
  });

  test.each([
    'Connection terminated due to connection timeout',
    'timeout exceeded when trying to connect',
  ])('with "%s" certainly did nothing', (message) => {
    expect(isCertainlyUndone(new Error(message))).toBe(true);
  });

  test.each(['ECONNRESET', 'EPIPE', 'ETIMEDOUT', '08006', '57P01', '57014', '40003'])(
    'with %s may have taken effect',
    (code) => {
      expect(isCertainlyUndone(coded(code))).toBe(false);
    },
  );

  test.each(['Connection terminated unexpectedly', 'Query read timeout'])(
    'with "%s" may have taken effect',
    (message) => {
      expect(isCertainlyUndone(new Error(message))).toBe(false);
    },
  );
});

describe('an error of the database means', () => {
  test.each([
    ['21000', 'a row that would change twice'],
    ['22003', 'a number out of range'],
    ['22P05', 'a character that cannot be stored'],
    ['23505', 'a duplicate'],
    ['54000', 'a limit of the program'],
  ])('%s (%s): the database refuses the data', (code) => {
    expect(meaningsOf(coded(code))).toEqual({ ...none, refusedData: true });
    expect(dataRefusal(coded(code))).toBe(`the database refuses it (${code})`);
  });

  test.each([
    ['40001', 'serialization failure'],
    ['40P01', 'deadlock'],
  ])('%s (%s): a conflict', (code) => {
    expect(meaningsOf(coded(code))).toEqual({ ...none, conflict: true });
  });

  test.each([
    '25006',
    'ECONNREFUSED',
    'ECONNRESET',
    'EPIPE',
    'ETIMEDOUT',
    'EHOSTUNREACH',
    'ENETUNREACH',
    'ENOTFOUND',
    'EAI_AGAIN',
    'ENOENT',
    '08001',
    '08006',
    '28P01',
    '3D000',
    '57P01',
    '57P03',
    '53300',
    '57014',
    '55P03',
    'CERT_HAS_EXPIRED',
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'SELF_SIGNED_CERT_IN_CHAIN',
  ])('%s: the database is unreachable', (code) => {
    expect(meaningsOf(coded(code))).toEqual({ ...none, away: true });
  });

  test.each([
    'Connection terminated unexpectedly',
    'Connection terminated due to connection timeout',
    'timeout exceeded when trying to connect',
    'Query read timeout',
  ])('"%s", which has no code: the database is unreachable', (message) => {
    expect(meaningsOf(new Error(message))).toEqual({ ...none, away: true });
  });

  test.each([
    ['a mistake in the SQL', coded('42601')],
    ['a statement that may have taken effect', coded('40003')],
    ['an error without a code', new Error('failed')],
    ['a value that is not an error', '22003'],
    ['nothing', undefined],
  ])('%s: something else', (_name, error) => {
    expect(meaningsOf(error)).toEqual(none);
  });

  test('the same as its cause', () => {
    const wrapped = (cause: Error) => new Error('query failed', { cause });

    expect(dataRefusal(wrapped(wrapped(coded('22003'))))).toBe('the database refuses it (22003)');
    expect(isConflict(wrapped(coded('40P01')))).toBe(true);
    expect(isUnreachable(wrapped(coded('ECONNREFUSED')))).toBe(true);
  });

  test('the same if its causes form a cycle', () => {
    const error = new Error('failed');
    error.cause = error;

    expect(meaningsOf(error)).toEqual(none);
  });
});

describe('after a conflict', () => {
  /** Fails with one of these errors in each run, and then succeeds. */
  const failing = (errors: readonly Error[]) => {
    let runs = 0;
    return {
      runs: () => runs,
      run: async () => {
        const error = errors[runs];
        runs += 1;
        return error === undefined ? await Promise.resolve('stored') : await Promise.reject(error);
      },
    };
  };

  test('the statement is retried', async () => {
    const work = failing([coded('40P01'), new Error('query failed', { cause: coded('40001') })]);

    expect(await retryConflicts(work.run)).toBe('stored');
    expect(work.runs()).toBe(3);
  });

  test('the statement is given up after three more attempts', async () => {
    const work = failing(Array.from({ length: 10 }, () => coded('40P01')));

    await expect(retryConflicts(work.run)).rejects.toMatchObject({ code: '40P01' });
    expect(work.runs()).toBe(4);
  });

  test('a statement that may have taken effect is not retried', async () => {
    const work = failing([coded('40003')]);

    await expect(retryConflicts(work.run)).rejects.toMatchObject({ code: '40003' });
    expect(work.runs()).toBe(1);
  });
});
