import { startPostgres } from './test/support/postgres-server.ts';
import { spawnSync } from 'node:child_process';
const pg = await startPostgres();
const out = spawnSync('npx', ['tsx', 'measure.ts', pg.url, '1000000'], { encoding: 'utf8' });
console.log(out.stdout, out.stderr);
await pg.stop();
