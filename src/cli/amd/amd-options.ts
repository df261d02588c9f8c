// What `offhook amd` may be told.

export type AmdOptions = {
  readonly manifest?: string;
  readonly json?: boolean;
  readonly plot?: string;
  readonly summary?: string;
  readonly compare?: string;
  readonly quiet?: boolean;
  readonly channel: string;
  readonly thresholdWordCount?: string;
  readonly timer: readonly string[];
};
