// How a statechart is written down: states, in one another where that helps, and what leads from one to the next. The words are those of
// SCXML and XState. `chart-node.ts` finds its targets, `running-chart.ts` brings it to life.

export type ChartTypes = {
  /** What is known, beside the state. */
  readonly context: object;
  readonly event: { readonly type: string };
  /** What it asks of its partner. */
  readonly command: unknown;
  /** What comes of what states wait for. */
  readonly result: unknown;
  /** Names of time-outs. */
  readonly delay: string;
};

/** A state was entered first of all, its time is over, or what it waits for has come: an event that nobody sent. */
export type OwnEvent = { readonly type: 'chart' };

export type AnyEvent<T extends ChartTypes> = T['event'] | OwnEvent;

/** What a transition does. */
export type Effect<T extends ChartTypes> = (step: {
  /** As it was when the effect began. */
  readonly context: T['context'];
  readonly event: AnyEvent<T>;
  readonly machine: Hands<T>;
}) => void;

/** What an effect can do, in its order. */
export type Hands<T extends ChartTypes> = {
  assign(changes: Partial<T['context']> | ((context: T['context']) => Partial<T['context']>)): void;
  /** Given away when the chart has come to rest. */
  command(command: T['command']): void;
  perform(effect: Effect<T>): void;
};

export type Transition<T extends ChartTypes, Given> = {
  /** Left out: always. */
  readonly guard?: (given: Given & { readonly context: T['context'] }) => boolean;
  /** A state beside the one that has this; it is entered anew. Left out: the state stays. */
  readonly target?: string;
  readonly actions?: Effect<T> | readonly Effect<T>[];
};

/** The first one whose guard holds. */
export type Transitions<T extends ChartTypes, Given = unknown> =
  | Transition<T, Given>
  | readonly Transition<T, Given>[];

export type State<T extends ChartTypes> = {
  readonly entry?: Effect<T> | readonly Effect<T>[];
  /** Waited for while the state lasts. */
  readonly invoke?: {
    readonly run: (context: T['context']) => Promise<T['result']>;
    readonly onDone: Transitions<T, { readonly result: T['result'] }>;
    readonly onError: Transitions<T>;
  };
  /** Each from when the state was entered. */
  readonly after?: { readonly [Name in T['delay']]?: Transitions<T> };
  /** Where it has none for an event, the state around it may. */
  readonly on?: {
    readonly [Type in T['event']['type']]?: Transitions<
      T,
      { readonly event: Extract<T['event'], { readonly type: Type }> }
    >;
  };
  /** Looked at whenever something happened. */
  readonly always?: Transitions<T>;
  readonly initial?: string;
  readonly states?: Readonly<Record<string, State<T>>>;
  /** The chart has come to its end. */
  readonly final?: true;
};

export type Chart<T extends ChartTypes> = State<T> & {
  readonly initial: string;
  readonly states: Readonly<Record<string, State<T>>>;
  readonly delays: { readonly [Name in T['delay']]: (context: T['context']) => number };
};
