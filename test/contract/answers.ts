// Checks that the document describes an answer. Returns what is wrong with the answer, if anything.

import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { type OpenApiDocument, type Operation, pointer } from './document.ts';

export type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The decoded body. */
  readonly text: string;
};

export type AnswerCheck = (
  operation: Operation,
  answer: Answer,
  /** Further allowed statuses, for a path that does not belong to the operation. */
  besides?: readonly number[],
) => readonly string[];

const checks = new Map<string, AnswerCheck>();

/**
 * Returns one checker for all gateways with the same document, because compiling the schemas takes
 * seconds.
 */
export function answerCheckFor(document: OpenApiDocument): AnswerCheck {
  const key = JSON.stringify(document);
  const check = checks.get(key) ?? createAnswerCheck(document);
  checks.set(key, check);
  return check;
}

function createAnswerCheck(document: OpenApiDocument): AnswerCheck {
  const ajv = new Ajv2020({ strict: false, allErrors: false, logger: false });
  addFormats.default(ajv);
  ajv.addSchema(document as object, 'openapi');
  const validators = new Map<string, ValidateFunction>();
  const validatorAt = (path: string): ValidateFunction => {
    const known = validators.get(path) ?? ajv.compile({ $ref: `openapi#${path}` });
    validators.set(path, known);
    return known;
  };

  const ofDescribed = (operation: Operation, { status, text }: Answer, type: string) => {
    const described = operation.responses[status];
    if (described === undefined) return [`status ${status} is not documented: ${text}`];
    if (described.content?.[type] === undefined) return [`'${type}' of ${status} is undocumented`];
    const place = ['paths', operation.path, operation.method, 'responses', String(status)];
    const validate = validatorAt(pointer(...place, 'content', type, 'schema'));
    if (validate(/[/+]json$/.test(type) ? JSON.parse(text) : text)) return [];
    return [`${status} is not as documented: ${ajv.errorsText(validate.errors)}`];
  };
  return (operation, answer, besides = []) => {
    const type = String(answer.headers['content-type'] ?? '').split(';')[0] ?? '';
    if (answer.status >= 500) return [`${answer.status}: ${answer.text}`];
    const wrong = problemsOfEvery(answer, type);
    if (wrong.length > 0 || besides.includes(answer.status)) return wrong;
    return ofDescribed(operation, answer, type);
  };
}

function problemsOfEvery({ status, headers, text }: Answer, type: string): readonly string[] {
  if (headers['x-request-id'] === undefined) return ['no x-request-id'];
  if (!String(headers['cache-control']).includes('no-store')) return ['may be cached'];
  if (status < 400) return [];
  if (type !== 'application/problem+json') return [`an error as '${type}'`];
  const problem = JSON.parse(text) as { readonly status: unknown; readonly requestId: unknown };
  if (problem.status !== status) return ['the problem names another status'];
  return problem.requestId === headers['x-request-id'] ? [] : ['the problem names another request'];
}
