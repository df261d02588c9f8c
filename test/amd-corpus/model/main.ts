// npm run amd:model: measures whether a small model could decide better than the rules if they say
// "person" after more than a hello. It trains on one of two parts for learning and measures on the
// other, both ways. The parts share no voices and no sounds.

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

/**
 * Returns in how many of 100 random pairs of a machine and a person the machine gets the higher
 * chance. A coin gets 50.
 */
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

/** Describes the machines won and the people lost if the model must be this sure. */
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
    say(
      `${name}, trained on ${part}: ${measured.length} decisions of the other part, ${people} people`,
    );
    say(
      `  ranked right: ${rankedRight(model, learnt).toFixed(0)} % on that part, ${rankedRight(model, measured).toFixed(0)} % on the other`,
    );
    for (const sure of [0.6, 0.7, 0.8, 0.9]) say(`  ${traded(model, measured, sure)}`);
  });
}
