// Two small models whose every number can be inspected: logistic regression and boosted stumps.
// Both return the probability of a machine.

export type Model = (features: readonly number[]) => number;
export type Example = { readonly features: readonly number[]; readonly isMachine: boolean };

const steps = 1_500;
const rate = 0.4;
/**
 * Pull of the weights towards 0, divided by the number of examples. Features that carry little
 * information get little weight.
 */
const ridge = 2;

export function logistic(examples: readonly Example[]): Model {
  const scale = scaleOf(examples);
  const rows = examples.map(({ features }) => scale(features));
  const weights = new Float64Array((rows[0]?.length ?? 0) + 1);
  for (let step = 0; step < steps; step += 1) {
    const gradient = weights.map((weight, at) =>
      at < weights.length - 1 ? (ridge * weight) / rows.length : 0,
    );
    rows.forEach((row, index) => {
      const error = chance(sum(weights, row)) - (examples[index]?.isMachine ? 1 : 0);
      row.forEach((value, at) => {
        gradient[at] = (gradient[at] ?? 0) + (error * value) / rows.length;
      });
      const last = weights.length - 1;
      gradient[last] = (gradient[last] ?? 0) + error / rows.length;
    });
    gradient.forEach((value, at) => {
      weights[at] = (weights[at] ?? 0) - rate * value;
    });
  }
  return (features) => chance(sum(weights, scale(features)));
}

type Stump = {
  readonly at: number;
  readonly above: number;
  readonly yes: number;
  readonly no: number;
};

const stumps = 40;
const shrinkage = 0.2;
const cuts = 12;
const fewestOnASide = 8;

export function boostedStumps(examples: readonly Example[]): Model {
  const chosen: Stump[] = [];
  const score = (features: readonly number[]): number =>
    chosen.reduce(
      (total, { at, above, yes, no }) => total + ((features[at] ?? 0) > above ? yes : no),
      0,
    );
  for (let round = 0; round < stumps; round += 1) {
    const residuals = examples.map(
      ({ features, isMachine }) => (isMachine ? 1 : 0) - chance(score(features)),
    );
    const best = bestStump(examples, residuals);
    if (best === undefined) break;
    chosen.push({ ...best, yes: best.yes * 4 * shrinkage, no: best.no * 4 * shrinkage });
  }
  return (features) => chance(score(features));
}

/** Returns the stump that explains most of the residuals. */
function bestStump(examples: readonly Example[], residuals: readonly number[]): Stump | undefined {
  let best: Stump | undefined;
  let most = 0;
  for (let at = 0; at < (examples[0]?.features.length ?? 0); at += 1) {
    for (const above of quantiles(examples.map(({ features }) => features[at] ?? 0))) {
      const [yes, no] = sides(examples, residuals, at, above);
      if (Math.min(yes.count, no.count) < fewestOnASide) continue;
      const explained = yes.sum ** 2 / yes.count + no.sum ** 2 / no.count;
      if (explained <= most) continue;
      most = explained;
      best = { at, above, yes: yes.sum / yes.count, no: no.sum / no.count };
    }
  }
  return best;
}

function sides(
  examples: readonly Example[],
  residuals: readonly number[],
  at: number,
  above: number,
): readonly [{ sum: number; count: number }, { sum: number; count: number }] {
  const yes = { sum: 0, count: 0 };
  const no = { sum: 0, count: 0 };
  examples.forEach(({ features }, index) => {
    const side = (features[at] ?? 0) > above ? yes : no;
    side.sum += residuals[index] ?? 0;
    side.count += 1;
  });
  return [yes, no];
}

function quantiles(values: readonly number[]): number[] {
  const sorted = values.toSorted((a, b) => a - b);
  return Array.from(
    { length: cuts },
    (_, index) => sorted[Math.floor(((index + 1) * sorted.length) / (cuts + 1))] ?? 0,
  );
}

function chance(score: number): number {
  return 1 / (1 + Math.exp(-score));
}

function sum(weights: Float64Array, row: readonly number[]): number {
  return row.reduce((total, value, at) => total + value * (weights[at] ?? 0), weights.at(-1) ?? 0);
}

/** Scales features to mean 0 and standard deviation 1 over the examples. */
function scaleOf(examples: readonly Example[]): (features: readonly number[]) => number[] {
  const width = examples[0]?.features.length ?? 0;
  const means = Array.from(
    { length: width },
    (_, at) =>
      examples.reduce((total, { features }) => total + (features[at] ?? 0), 0) / examples.length,
  );
  const spreads = means.map((mean, at) =>
    Math.sqrt(
      examples.reduce((total, { features }) => total + ((features[at] ?? 0) - mean) ** 2, 0) /
        examples.length,
    ),
  );
  return (features) =>
    features.map((value, at) => (value - (means[at] ?? 0)) / Math.max(1e-6, spreads[at] ?? 1));
}
