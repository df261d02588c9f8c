// The figures that the worker of the machine detection bench sends to the main thread. The main
// thread requests them with `read` on this channel.

export const channelName = 'offhook-bench-amd';

export type WorkerFigures = {
  readonly frames: number;
  readonly lost: number;
  /** Processor time of the worker thread since the last reading. */
  readonly cpuMs: number;
  readonly lateMs: {
    readonly p50: number;
    readonly p99: number;
    readonly p999: number;
    readonly max: number;
  };
};
