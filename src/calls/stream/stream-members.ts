// Fields that define the address of a bot's stream. They occur in dial-out requests, bot
// registrations and commands.

import { z } from 'zod';
import { hostMissing, namesHost } from '../../lib/url-text.ts';
import { streamConnects } from './stream.ts';

const maxUrlLength = 2_048;
/**
 * Bounds the parameters, because they're sent together with the metadata in a single message at the
 * start of the stream.
 */
const maxParameters = 50;
const maxParameterLength = 1_024;

const plainText = /^[^\p{Cc}\p{Cs}]*$/u;
/** Whether PostgreSQL can store the text as JSON. */
const isStorable = (text: string): boolean => !text.includes('\0') && !/\p{Cs}/u.test(text);

function streamUrlProblem(text: string): string | undefined {
  if (!URL.canParse(text)) return 'must be an absolute URL';
  const url = new URL(text);
  if (url.protocol !== 'ws:' && url.protocol !== 'wss:') return 'must be a ws or wss URL';
  if (!namesHost(text)) return hostMissing;
  if (url.username !== '' || url.password !== '') return 'must not contain a user or password';
  if (text.includes('#')) return 'must not have a fragment';
  return undefined;
}

/** A stream's URL. It must stay exactly as it is, because bots verify a signature over it. */
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
  .describe('sent to the bot as `customParameters`, with the metadata');

export const streamConnect = z.enum(streamConnects);

/** The `stream` field of a dial-out request. */
export const streamMember = z.object({
  url: streamUrl
    .optional()
    .describe(
      'ws or wss URL of the bot; its query string is stored encrypted. Default: the URL of the registered bot',
    ),
  connect: streamConnect
    .optional()
    .describe(
      '`answered`: at the 200 OK; `person`: when detection finds a person, which needs `machineDetection`. Default: the setting of the registered bot, or `answered`',
    ),
  parameters: streamParameters.optional(),
});

/** Returns the URL without its query, which may be secret. */
export function withoutQuery(url: string): string {
  const [address = ''] = url.split('?', 1);
  return address;
}
