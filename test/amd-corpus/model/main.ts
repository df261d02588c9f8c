// npm run amd:model: could a small model decide better than the rules where they say "person" after more than a hello?
// Trained on one of the two parts that may be learnt from and measured on the other, voices and sounds apart, both ways.

import { homedir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { boostedStumps, type Example, logistic, type Model } from './models.ts';
import { featureNames, type Moment, momentsOf } from './moments.ts';

const { values } = parseArgs({
  options: {
    cache: { type: 'string', default: join(homedir(), '.cache', 'offhook', 'amd-corpus') },
  },
});

const say = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

/** Of 100 machines and people drawn at random, how often the machine gets the higher chance: 50 is a coin. */
function rankedRight(model: Model, moments: readonly Moment[]): number {
  const chances = (label: Moment['label']) =>
    moments.filter((moment) => moment.label === label).map(({ features }) => model(features));
  const [machines, people] = [chances('machine'), chances('human')];
  const right = machines.reduce(
    (sum, machine) => sum + people.filter((person) => machine > person).length,
    0,
  );
  return (100 * right) / Math.max(1, machines.length * people.length);
}

function examples(moments: readonly Moment[]): Example[] {
  return moments.map(({ features, label }) => ({ features, isMachine: label === 'machine' }));
}

/** Machines won for people lost, where the model must be this sure. */
function traded(model: Model, moments: readonly Moment[], sure: number): string {
  const called = moments.filter(({ features }) => model(features) >= sure);
  const machines = called.filter(({ label }) => label === 'machine');
  const silent = machines.filter(({ beeps }) => !beeps).length;
  const people = called.length - machines.length;
  return `${sure * 100} % sure: ${machines.length} machines won (${silent} that never beep), ${people} people lost`;
}

const parts = ['first', 'second'] as const;
const moments = await Promise.all(
  parts.map((part) => momentsOf(join(values.cache, part, 'manifest.csv'))),
);
const models = { 'logistic regression': logistic, 'boosted stumps': boostedStumps } as const;
say(`Features: ${featureNames.join('; ')}.`);
for (const [name, train] of Object.entries(models)) {
  parts.forEach((part, index) => {
    const [learnt = [], measured = []] = [moments[index], moments[1 - index]];
    const model = train(examples(learnt));
    const people = measured.filter(({ label }) => label === 'human').length;
    say('');
    say(`${name}, trained on ${part}: ${measured.length} decisions of the other, ${people} people`);
    say(
      `  ranked right: ${rankedRight(model, learnt).toFixed(0)} % there, ${rankedRight(model, measured).toFixed(0)} % here`,
    );
    for (const sure of [0.6, 0.7, 0.8, 0.9]) say(`  ${traded(model, measured, sure)}`);
  });
}
