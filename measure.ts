import { createSuppressions } from './src/store/rules/suppressions.ts';
import { importSuppressions, type ImportResult } from './src/api/rules/suppression-import.ts';
import { openDatabase } from './src/store/database.ts';
import { silentLogger } from './src/lib/logger.ts';
import { mkdtemp } from 'node:fs/promises';
const url = process.argv[2];
const count = Number(process.argv[3] ?? 1_000_000);
const dataDir = await mkdtemp('/tmp/w/sup-');
const db = await openDatabase({ dataDir, logger: silentLogger, ...(url === undefined || url==='pglite' ? {} : { databaseUrl: url }) });
const store = createSuppressions(db);
const app = { accountId: 'acme', appId: 'crm' };
async function* body() {
  const per = 1_000;
  for (let i = 0; i < count; i += per) {
    let text = '';
    for (let j = i; j < i + per; j += 1) text += `{"number":"+1${String(2_020_000_000 + ((j * 7919) % 1_000_000_0) )}","reason":"opt-out","source":"list 7"}\n`;
    yield Buffer.from(text);
  }
}
const result: ImportResult = { accepted: 0, replaced: 0, wrongTotal: 0, wrong: [] };
await store.put(app, new Map([['+12025550110', { reason: 'other', source: 'x' }]]));
globalThis.gc?.();
const rss0 = process.memoryUsage().rss; let max = 0;
let lag = 0; let last = performance.now();
const timer = setInterval(() => { const now = performance.now(); lag = Math.max(lag, now - last - 20); last = now; max = Math.max(max, process.memoryUsage().rss); }, 20);
const cpu0 = process.cpuUsage(); const t0 = performance.now();
await importSuppressions(body(), { app, format: 'ndjson', result, store: (s) => store.put(app, s) });
const cpu = process.cpuUsage(cpu0);
clearInterval(timer);
console.log({ s: ((performance.now() - t0) / 1000).toFixed(1), cpuS: ((cpu.user + cpu.system) / 1e6).toFixed(1), rssMoreMiB: ((max - rss0) / 1048576).toFixed(0), lagMs: lag.toFixed(0), ...result, wrong: result.wrong.slice(0,2) });
await db.close();
process.exit(0);
