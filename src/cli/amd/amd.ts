// Declares `offhook amd`. We don't load the implementation until the command runs, so other
// commands don't load a detector for nothing.

import { type Command, Option } from 'commander';
import { detectionPaces } from '../../calls/detection/detection-members.ts';
import type { CliContext } from '../cli-context.ts';
import type { AmdOptions } from './amd-command.ts';

const help = `
A recording must start at the answer and contain only the callee's side, without ringback. Formats: WAV, 8 kHz or
more, PCM, float, µ-law or A-law. After the end of a file, detection hears silence until it stops.

Examples:
  offhook amd voicemail.wav                    the events that a call would have had, and when
  offhook amd recordings/ --plot amd.html      the same as a picture, in one file
  offhook amd recordings/ --json | jq -r 'select(.verdict == "machine") | .file'
  offhook amd calls/ --channel right --threshold-word-count 6 --timer noSpeechTimeoutMs=3000
`;

export function addAmdCommand(program: Command, createContext: () => CliContext): void {
  program
    .command('amd [paths...]')
    .summary('run machine detection on recordings')
    .description('Runs machine detection on recordings (files and folders), as fast as it can.')
    .option('--json', 'print one JSON object per recording')
    .option('--plot <html>', 'write a page with waveform, speech, words, tones and events')
    .option('--quiet', 'print no events, only the speed and the files that could not be read')
    .option('--channel <which>', 'left, right, or a number from 1', 'left')
    .addOption(
      new Option('--detection <pace>', 'how soon somebody may be called a person')
        .choices([...detectionPaces])
        .default('fast'),
    )
    .option('--threshold-word-count <number>', 'strict rule: this many words are a machine')
    .addOption(
      new Option('--timer <name=ms>', 'a timer as in a dial-out request; may be repeated')
        .argParser(collect)
        .default([], 'the defaults of a request'),
    )
    .addHelpText('after', help)
    .action(async (paths: string[], options: AmdOptions) => {
      // `offhook amd … | head` closes the pipe early, which isn't a failure.
      process.stdout.on('error', () => process.exit(0));
      const { runAmd } = await import('./amd-command.ts');
      await runAmd(createContext(), paths, options);
    });
}

function collect(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}
