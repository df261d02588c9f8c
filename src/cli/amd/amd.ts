// offhook amd, as it is typed. What it does is loaded when it is asked for: the other commands start without a detector.

import { type Command, Option } from 'commander';
import type { CliContext } from '../cli-context.ts';
import type { AmdOptions } from './amd-command.ts';

const help = `
Recordings start with the answer of a call: the callee's side, without ringback. WAV, 8 kHz or more, PCM, float,
µ-law or A-law. After the end of a file there is silence until detection has stopped.

Examples:
  offhook amd voicemail.wav                    what a call would have been told, and when
  offhook amd recordings/ --plot amd.html      the same as a picture, in one file
  offhook amd recordings/ --json | jq -r 'select(.verdict == "machine") | .file'
  offhook amd calls/ --channel right --threshold-word-count 6 --timer noSpeechTimeoutMs=3000
`;

export function addAmdCommand(program: Command, createContext: () => CliContext): void {
  program
    .command('amd [paths...]')
    .summary('run machine detection on recordings')
    .description('Runs machine detection on recordings (files and folders), as fast as it can.')
    .option('--json', 'one JSON object a recording')
    .option('--plot <html>', 'write a page with waveform, speech, words, tones and events')
    .option('--quiet', 'no events, only how fast it was and what could not be read')
    .option('--channel <which>', 'left, right, or a number from 1', 'left')
    .option('--threshold-word-count <number>', 'strict rule: that many words make a machine')
    .addOption(
      new Option('--timer <name=ms>', 'as in a dial-out request, several times')
        .argParser(collect)
        .default([], 'those of a request'),
    )
    .addHelpText('after', help)
    .action(async (paths: string[], options: AmdOptions) => {
      // `offhook amd … | head` is no failure.
      process.stdout.on('error', () => process.exit(0));
      const { runAmd } = await import('./amd-command.ts');
      await runAmd(createContext(), paths, options);
    });
}

function collect(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}
