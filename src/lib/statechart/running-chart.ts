// One run of a statechart. Each event is taken to its end (what it leads to, and what that leads to of itself), before commands are given away
// and the next one is looked at: whatever an effect or a partner sends meanwhile waits for its turn.

import type { ChartTypes, Effect, Hands, OwnEvent } from './chart.ts';
import type { ChartNode, Edge, Occurrence } from './chart-node.ts';

/** Far more than a chart has states: transitions that need no event go round in a circle. */
const mostStepsAtOnce = 100;

/** What a chart commands. It is there for as long as the chart runs. */
export type Partner<Command> = {
  open(): void;
  obey(command: Command): void;
  close(): void;
};

export type ChartTimers = {
  setTimeout(run: () => void, delayMs: number): unknown;
  clearTimeout(timer: unknown): void;
};

const systemTimers: ChartTimers = {
  setTimeout: (run, delayMs) => setTimeout(run, delayMs),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
};

export type RunOptions<T extends ChartTypes> = {
  readonly context: T['context'];
  readonly partner: Partner<T['command']>;
  /** It has come to its end; the partner is closed. */
  readonly onDone?: () => void;
  /** A defect: it does nothing any more; the partner is closed. */
  readonly onFailed?: (error: unknown) => void;
  readonly timers?: ChartTimers;
};

type Happening<T extends ChartTypes> = {
  readonly event: T['event'] | OwnEvent;
  readonly occurrence: Occurrence<T>;
  /** Of a state that the chart is in. */
  readonly edgesOf: (node: ChartNode<T>) => readonly Edge<T>[];
};

const ownEvent: OwnEvent = { type: 'chart' };

export class RunningChart<T extends ChartTypes> {
  readonly #root: ChartNode<T>;
  readonly #options: RunOptions<T>;
  readonly #timeouts: ChartTimers;
  readonly #hands: Hands<T>;
  #status: 'new' | 'running' | 'done' | 'failed' | 'stopped' = 'new';
  #isBusy = false;
  /** The innermost state that it is in. */
  #node: ChartNode<T>;
  #context: T['context'];
  #event: T['event'] | OwnEvent = ownEvent;
  readonly #waiting: Happening<T>[] = [];
  #commands: T['command'][] = [];
  /** Of states that it is in. */
  #timers: { readonly node: ChartNode<T>; readonly timer: unknown }[] = [];
  /** Entered, and neither left again nor at rest yet. */
  #entered: ChartNode<T>[] = [];
  /** How often a state has begun to wait for something. */
  #runs = 0;

  constructor(root: ChartNode<T>, options: RunOptions<T>) {
    this.#root = root;
    this.#node = root;
    this.#options = options;
    this.#context = options.context;
    this.#timeouts = options.timers ?? systemTimers;
    this.#hands = {
      assign: (changes) => {
        const changed = typeof changes === 'function' ? changes(this.#context) : changes;
        this.#context = { ...this.#context, ...changed };
      },
      command: (command) => void this.#commands.push(command),
      perform: (effect) => this.#perform(effect),
    };
  }

  get status() {
    return this.#status;
  }

  get context(): T['context'] {
    return this.#context;
  }

  /** `calling.ringing`. */
  get state(): string {
    return this.#node.path;
  }

  start(): void {
    this.#status = 'running';
    this.#exclusively(() => {
      this.#enter(this.#root);
      this.#goOn({});
      this.#options.partner.open();
      this.#rest();
    });
  }

  /** Nothing comes of it once the chart has ended. */
  send(event: T['event']): void {
    this.#happen({ event, occurrence: { event }, edgesOf: (node) => node.on(event.type) });
  }

  /** Wherever it is. The partner is closed. */
  stop(): void {
    if (this.#status === 'running') this.#end('stopped');
  }

  #happen(happening: Happening<T>): void {
    if (this.#status !== 'running') return;
    this.#waiting.push(happening);
    if (!this.#isBusy) this.#exclusively(() => undefined);
  }

  /** This, and what happens meanwhile. */
  #exclusively(run: () => void): void {
    this.#isBusy = true;
    try {
      run();
      for (;;) {
        const next = this.#status === 'running' ? this.#waiting.shift() : undefined;
        if (next === undefined) break;
        this.#take(next);
      }
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#isBusy = false;
    }
  }

  #take({ event, occurrence, edgesOf }: Happening<T>): void {
    const edge = this.#choose(edgesOf, occurrence);
    if (edge === undefined) return;
    this.#event = event;
    this.#follow(edge);
    this.#goOn(occurrence);
    this.#rest();
  }

  /** Innermost first. */
  #choose(
    edgesOf: (node: ChartNode<T>) => readonly Edge<T>[],
    occurrence: Occurrence<T>,
  ): Edge<T> | undefined {
    for (let node: ChartNode<T> | undefined = this.#node; node !== undefined; node = node.parent) {
      for (const edge of edgesOf(node)) {
        if (edge.guard?.({ ...occurrence, context: this.#context }) !== false) return edge;
      }
    }
    return undefined;
  }

  #follow({ source, target, effects }: Edge<T>): void {
    if (target !== undefined) this.#leaveUpTo(target.parent ?? source);
    for (const effect of effects) this.#perform(effect);
    if (target !== undefined) this.#enter(target);
  }

  #leaveUpTo(outer: ChartNode<T>): void {
    while (this.#node !== outer && this.#node.parent !== undefined) {
      const left = this.#node;
      this.#node = left.parent as ChartNode<T>;
      this.#entered = this.#entered.filter((node) => node !== left);
      for (const { node, timer } of this.#timers)
        if (node === left) this.#timeouts.clearTimeout(timer);
      this.#timers = this.#timers.filter(({ node }) => node !== left);
    }
  }

  #enter(node: ChartNode<T>): void {
    this.#node = node;
    this.#entered.push(node);
    for (const effect of node.entry) this.#perform(effect);
    if (node.initial !== undefined) this.#enter(node.initial);
  }

  /** By transitions that need no event. */
  #goOn(occurrence: Occurrence<T>): void {
    for (let steps = 0; steps < mostStepsAtOnce; steps += 1) {
      const edge = this.#choose((node) => node.always, occurrence);
      if (edge === undefined) return;
      this.#follow(edge);
    }
    throw new Error(`the chart does not come to rest in ${this.state}`);
  }

  #perform(effect: Effect<T>): void {
    effect({ context: this.#context, event: this.#event, machine: this.#hands });
  }

  /** What was decided is done. */
  #rest(): void {
    const commands = this.#commands;
    this.#commands = [];
    for (const command of commands) this.#options.partner.obey(command);
    if (this.#status !== 'running') return;
    const entered = this.#entered;
    this.#entered = [];
    for (const node of entered) this.#begin(node);
    if (!this.#node.isFinal) return;
    this.#end('done');
    this.#options.onDone?.();
  }

  #begin(node: ChartNode<T>): void {
    for (const { delayMs, edges } of node.after) {
      const happening = { event: ownEvent, occurrence: {}, edgesOf: only(node, edges) };
      const timer = this.#timeouts.setTimeout(
        () => this.#happen(happening),
        delayMs(this.#context),
      );
      this.#timers.push({ node, timer });
    }
    if (node.run === undefined) return;
    this.#runs += 1;
    const run = this.#runs;
    // Nothing comes of it where the state was left, also if it was entered anew.
    const settle = (occurrence: Occurrence<T>, edges: readonly Edge<T>[]) => {
      if (run !== this.#runs) return;
      this.#happen({ event: ownEvent, occurrence, edgesOf: only(node, edges) });
    };
    node.run(this.#context).then(
      (result) => settle({ result }, node.onDone),
      () => settle({}, node.onError),
    );
  }

  #fail(error: unknown): void {
    try {
      this.#end('failed');
    } finally {
      this.#options.onFailed?.(error);
    }
  }

  #end(status: 'done' | 'failed' | 'stopped'): void {
    this.#status = status;
    for (const { timer } of this.#timers) this.#timeouts.clearTimeout(timer);
    this.#timers = [];
    this.#waiting.length = 0;
    this.#options.partner.close();
  }
}

function only<T extends ChartTypes>(owner: ChartNode<T>, edges: readonly Edge<T>[]) {
  return (node: ChartNode<T>) => (node === owner ? edges : []);
}
