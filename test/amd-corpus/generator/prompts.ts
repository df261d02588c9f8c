// Sentences that can be joined from an exchange's recorded prompts, by the names that Asterisk
// gives them.

import type { Line } from './cast.ts';
import type { Role } from './sentences.ts';

const number = ['digits/4', 'digits/1', 'digits/7', 'digits/2'] as const;

/**
 * Each entry is a sequence of prompts. There are several forms, because the sets of prompts differ.
 */
const sequences: Partial<Readonly<Record<Role, readonly (readonly string[])[]>>> = {
  hello: [['hello'], ['hello-world'], ['vm-first'], ['vm-goodbye'], ['digits/7']],
  opening: [['hello'], ['hello-world'], ['auth-thankyou'], ['privacy-thankyou']],
  shortGreeting: [
    ['vm-intro'],
    ['vm-nobodyavail'],
    ['vm-leavemsg'],
    ['priv-recordintro'],
    [...number, 'vm-isunavail'],
    ['vm-theperson', 'vm-isunavail'],
    ['vm-theperson', 'vm-isonphone'],
    ['vm-msginstruct'],
  ],
  longGreeting: [
    ['vm-theperson', ...number, 'vm-isunavail', 'vm-intro'],
    ['vm-theperson', ...number, 'vm-isonphone', 'vm-intro'],
    ['vm-nobodyavail', 'vm-intro'],
    ['vm-extension', ...number, 'vm-isunavail', 'vm-intro'],
    ['im-sorry', 'vm-nobodyavail', 'vm-intro'],
    ['vm-nobodyavail', 'vm-rec-name'],
  ],
  screening: [['priv-recordintro'], ['privacy-prompt'], ['vm-rec-name']],
  full: [['vm-mailboxfull'], ['vm-theperson', ...number, 'vm-isunavail', 'vm-mailboxfull']],
  announcement: [
    ['ss-noservice'],
    ['cannot-complete-as-dialed'],
    ['privacy-unident'],
    ['tt-allbusy'],
    ['vm-nobox'],
    ['pls-try-call-later'],
  ],
  queue: [
    ['queue-periodic-announce'],
    ['queue-youarenext', 'queue-thankyou'],
    ['queue-thereare', 'digits/2', 'queue-callswaiting'],
    ['demo-instruct'],
    ['vm-options'],
  ],
};

export function promptLines(
  clipOf: (prompt: string) => Int16Array | undefined,
): Partial<Record<Role, readonly Line[]>> {
  return Object.fromEntries(
    Object.entries(sequences).map(([role, forms]) => [
      role,
      forms.flatMap((form): Line[] => {
        const clips = form.flatMap((prompt) => clipOf(prompt) ?? []);
        return clips.length === form.length ? [{ clips, text: form.join(' ') }] : [];
      }),
    ]),
  );
}
