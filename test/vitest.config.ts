import { defineConfig } from 'vitest/config';
import { SpecReport } from './companion/spec-report.ts';
import { SlowFirst } from './slow-first.ts';

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    include: ['test/**/*.test.ts'],
    reporters: ['default', new SpecReport()],
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['test/support/logs-of-failures.ts'],
    // Two cores in CI, and tests that mostly wait for processes, phones and leases: more workers only make each slower.
    maxWorkers: 4,
    sequence: { sequencer: SlowFirst },
    // PGlite is used for seconds: optimising its WebAssembly costs a fifth of the run's CPU, and pays only in what runs longer.
    execArgv: ['--wasm-tiering-budget=50000000'],
    // Nothing is mocked, so that files of one worker may share what they import, and an open PGlite.
    isolate: false,
    // For a machine that has much else to do; nothing waits for them where it has not.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
