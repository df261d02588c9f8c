// offhook amd, as it is typed. What it does is loaded when it is asked for: the other commands start without a detector.

import { type Command, Option } from 'commander';
import type { CliContext } from '../cli-context.ts';
import type { AmdOptions } from './amd-options.ts';

const help = `
Recordings start with the answer of a call: the callee's side, without ringback. WAV, 8 kHz or more, PCM, float,
µ-law or A-law. After the end of a file there is silence until detection has stopped.

A manifest is a CSV file with the columns file (relative to it) and label: human, machine, silence or other. Used where
they are there: class or kind (figures of their own), greeting_start_ms, greeting_end_ms, beep_start_ms, beep_end_ms, words, segments_ms, transcript, and expect
(human, machine, stopped, tone, no tone, no_speech, ambiguous; several separated by semicolons).

Examples:
  offhook amd voicemail.wav                              what a call would have been told, and when
  offhook amd recordings/ --plot amd.html                the same as a picture, in one file
  offhook amd --manifest truth.csv                       how often it is right, and how fast
  offhook amd --manifest truth.csv --quiet --summary before.json
  offhook amd --manifest truth.csv --quiet --compare before.json
  offhook amd recordings/ --json | jq -r 'select(.verdict == "machine") | .file'
  offhook amd calls/ --channel right --threshold-word-count 6 --timer noSpeechTimeoutMs=3000
`;

export function addAmdCommand(program: Command, createContext: () => CliContext): void {
  program
    .command('amd [paths...]')
    .summary('run machine detection on recordings; with the truth beside them, measure it')
    .description('Runs machine detection on recordings (files and folders), as fast as it can.')
    .option('--manifest <csv>', 'the truth; without paths, every recording in it is heard')
    .option('--json', 'one JSON object a recording; with a manifest the figures go to stderr')
    .option('--plot <html>', 'write a page with waveform, speech, words, tones and events')
    .option('--summary <json>', 'write the figures of the manifest as JSON')
    .option('--compare <json>', 'figures of another version, as --summary wrote them: side by side')
    .option('--quiet', 'no events, only figures and what could not be read')
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
