import { expect, test } from 'vitest';
import { hasSql } from './sql-texts.ts';

const readsMessages = /\b(?:from|join)\s+messages\b/;

test.each([
  ["'select id from messages'", true],
  ['`select \u0024{columns} from messages`', true],
  ['`select * from \u0024{table} join messages using (id)`', true],
  ['// Dialogs from messages.', false],
  ["'Dialogs from messages.'", false],
  ['/** Builds dialogs from messages. */ const from = messages;', false],
  ["import type { Message } from './messages.ts';", false],
])('%s names the table: %s', (source, expected) => {
  expect(hasSql(source, readsMessages)).toBe(expected);
});
