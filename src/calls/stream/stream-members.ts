// Where a bot takes a call's audio, as a dial-out request, a bot's registration or a command says it.

import { z } from 'zod';
import { hostMissing, namesHost } from '../../lib/url-text.ts';
import { streamConnects } from './stream.ts';

const maxUrlLength = 2_048;
/** They are told in one message at the start of the stream, with the metadata. */
const maxParameters = 50;
const maxParameterLength = 1_024;

const plainText = /^[^\p{Cc}\p{Cs}]*$/u;
/** What a database takes as JSON. */
const isStorable = (text: string): boolean => !text.includes('\0') && !/\p{Cs}/u.test(text);

function streamUrlProblem(text: string): string | undefined {
  if (!URL.canParse(text)) return 'must be an absolute URL';
  const url = new URL(text);
  if (url.protocol !== 'ws:' && url.protocol !== 'wss:') return 'must be a ws or wss URL';
  if (!namesHost(text)) return hostMissing;
  if (url.username !== '' || url.password !== '') return 'must not hold a user or password';
  if (text.includes('#')) return 'must not have a fragment';
  return undefined;
}

/** Kept to the letter: bots check a signature over it. */
export const streamUrl = z
  .string()
  .max(maxUrlLength)
  .regex(/^[\x21-\x7e]*$/, 'must be printable ASCII without spaces')
  .superRefine((text, context) => {
    const problem = streamUrlProblem(text);
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
  });

export const streamParameters = z
  .record(
    z.string().min(1).max(128).regex(plainText),
    z
      .string()
      .max(maxParameterLength)
      .refine(isStorable, 'must be well-formed Unicode without U+0000'),
  )
  .refine((parameters) => Object.keys(parameters).length <= maxParameters, {
    message: `must have at most ${maxParameters} members`,
  })
  .describe('told to the bot as `customParameters`, with the metadata');

export const streamConnect = z.enum(streamConnects);

/** The member `stream` of a dial-out request. */
export const streamMember = z.object({
  url: streamUrl
    .optional()
    .describe(
      'ws or wss URL of the bot; its query string is kept encrypted. Left out: that of the bot',
    ),
  connect: streamConnect
    .optional()
    .describe(
      '`answered`: at the 200 OK; `person`: when detection says that a person is there, which needs `machineDetection`. Left out: as the bot has it, or `answered`',
    ),
  parameters: streamParameters.optional(),
});

/** The query may be a secret. */
export function withoutQuery(url: string): string {
  const [address = ''] = url.split('?', 1);
  return address;
}
