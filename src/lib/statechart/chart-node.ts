// The states of a chart with the transitions that lead from one to the other: made once, for all that run it.

import type { Chart, ChartTypes, Effect, State, Transition, Transitions } from './chart.ts';

/** What a guard may look at, beside the context. */
export type Occurrence<T extends ChartTypes> = {
  readonly event?: T['event'];
  readonly result?: T['result'];
};

export type Edge<T extends ChartTypes> = {
  readonly guard?: (given: Occurrence<T> & { readonly context: T['context'] }) => boolean;
  readonly source: ChartNode<T>;
  readonly target: ChartNode<T> | undefined;
  readonly effects: readonly Effect<T>[];
};

type Edges<T extends ChartTypes> = readonly Edge<T>[];

export class ChartNode<T extends ChartTypes> {
  /** `calling.ringing`; empty: the whole chart. */
  readonly path: string;
  readonly parent: ChartNode<T> | undefined;
  readonly entry: readonly Effect<T>[];
  readonly isFinal: boolean;
  readonly run: ((context: T['context']) => Promise<T['result']>) | undefined;
  #initial: ChartNode<T> | undefined;
  #always: Edges<T> = [];
  #onDone: Edges<T> = [];
  #onError: Edges<T> = [];
  readonly #on = new Map<string, Edges<T>>();
  #after: readonly {
    readonly delayMs: (context: T['context']) => number;
    readonly edges: Edges<T>;
  }[] = [];
  readonly #state: State<T>;
  readonly #children = new Map<string, ChartNode<T>>();

  private constructor(state: State<T>, path: string, parent: ChartNode<T> | undefined) {
    this.#state = state;
    this.path = path;
    this.parent = parent;
    this.entry = listOf(state.entry);
    this.isFinal = state.final === true;
    this.run = state.invoke?.run;
    for (const [name, child] of Object.entries(state.states ?? {})) {
      const childPath = path === '' ? name : `${path}.${name}`;
      this.#children.set(name, new ChartNode(child, childPath, this));
    }
  }

  /** @throws Error where a target is not there. */
  static of<T extends ChartTypes>(chart: Chart<T>): ChartNode<T> {
    const root = new ChartNode<T>(chart, '', undefined);
    root.#connect(chart);
    return root;
  }

  get initial(): ChartNode<T> | undefined {
    return this.#initial;
  }

  get always(): Edges<T> {
    return this.#always;
  }

  get onDone(): Edges<T> {
    return this.#onDone;
  }

  get onError(): Edges<T> {
    return this.#onError;
  }

  get after() {
    return this.#after;
  }

  on(type: string): Edges<T> {
    return this.#on.get(type) ?? [];
  }

  #connect(chart: Chart<T>): void {
    const { initial, always, invoke, on = {}, after = {} } = this.#state;
    if (initial !== undefined) this.#initial = this.#child(initial);
    this.#always = this.#edges(always);
    this.#onDone = this.#edges(invoke?.onDone);
    this.#onError = this.#edges(invoke?.onError);
    for (const [type, transitions] of Object.entries(on)) {
      this.#on.set(type, this.#edges(transitions as Transitions<T, never>));
    }
    this.#after = Object.entries(after).map(([name, transitions]) => ({
      delayMs: chart.delays[name as T['delay']],
      edges: this.#edges(transitions as Transitions<T, never>),
    }));
    for (const child of this.#children.values()) child.#connect(chart);
  }

  #edges(transitions: Transitions<T, never> | undefined): Edges<T> {
    return listOf(transitions).map(({ guard, target, actions }: Transition<T, never>) => ({
      // It is given what its place in the chart promises.
      ...(guard === undefined ? {} : { guard: guard as NonNullable<Edge<T>['guard']> }),
      source: this,
      target: target === undefined ? undefined : (this.parent ?? this).#child(target),
      effects: listOf(actions),
    }));
  }

  #child(name: string): ChartNode<T> {
    const child = this.#children.get(name);
    if (child === undefined) throw new Error(`the chart has no state ${name} in ${this.path}`);
    return child;
  }
}

function listOf<Item>(items: Item | readonly Item[] | undefined): readonly Item[] {
  if (items === undefined) return [];
  return Array.isArray(items) ? items : [items as Item];
}
