import { defineConfig } from 'vitest/config';
import { SlowFirst } from './test/slow-first.ts';
import { SpecReport } from './test/specification/spec-report.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    reporters: ['default', new SpecReport()],
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['test/support/logs-of-failures.ts'],
    // CI has two cores, and most tests wait for processes, phones and leases. Four workers leave a
    // quarter of the cores idle. More than five only make each test slower.
    maxWorkers: 5,
    sequence: { sequencer: SlowFirst },
    // Each PGlite lives for seconds. Optimising its WebAssembly costs a fifth of the run's CPU and
    // pays only in processes that live longer.
    execArgv: ['--wasm-tiering-budget=50000000'],
    // No module is mocked, so the test files of one worker can share imports and an open PGlite.
    isolate: false,
    // For a loaded machine. Waits inside a test are shorter and name what is missing
    // (test/support/eventually.ts).
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
