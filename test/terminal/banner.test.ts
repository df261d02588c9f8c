import { describe, expect, test } from 'vitest';
import { bannerLines } from '../../src/terminal/banner.ts';
import { stoppingLine } from '../../src/terminal/stop-lines.ts';

const laptop = {
  version: '1.2.3',
  httpUrl: 'http://127.0.0.1:3000',
  dataDir: '/home/jane/offhook/.offhook',
  workingFolder: '/home/jane/offhook',
  hasDevApp: true,
  hasSandbox: true,
  console: {
    address: 'http://127.0.0.1:3000/console',
    link: 'http://127.0.0.1:3000/console#token=t0ken',
  },
};
const { address } = laptop.console;

describe('the banner', () => {
  test('shows the address, docs, credentials and a command on a laptop', () => {
    expect(bannerLines(laptop)).toEqual([
      '',
      '  Offhook 1.2.3 is up, with a sandbox in place of a carrier: no real phone rings',
      '',
      '  API          http://127.0.0.1:3000',
      '  Docs         http://127.0.0.1:3000/docs, where you can try every operation',
      '  Console      http://127.0.0.1:3000/console#token=t0ken',
      '               signs in one browser within an hour; later, run: npx offhook console',
      '  Credentials  .offhook/dev-app.json, for an app that may do everything',
      '  Try          npx offhook call person --amd detect --follow   (in a second terminal)',
      '  End          Ctrl-C',
      '',
    ]);
  });

  test('names another data folder in the command', () => {
    const text = bannerLines({ ...laptop, dataDir: '/tmp/try' }).join('\n');

    expect(text).toContain('  /tmp/try/dev-app.json');
    expect(text).toContain('DATA_DIR=/tmp/try npx offhook call person');
  });

  test('suggests no real number without a sandbox', () => {
    const text = bannerLines({ ...laptop, hasSandbox: false }).join('\n');

    expect(text).toContain('offhook call tel:NUMBER');
    expect(text).not.toContain('sandbox');
  });

  test('shows the address and the sign-in command instead of a link in a log', () => {
    const lines = (facts: object) =>
      bannerLines({ ...laptop, console: { address }, ...facts }).join('\n');

    expect(lines({})).toContain(`  Console      ${address}   (sign in: npx offhook console)\n`);
    expect(lines({ dataDir: '/tmp/try' })).toContain('DATA_DIR=/tmp/try npx offhook console)');
    expect(lines({ hasDevApp: false })).toContain('(sign in: npx offhook console --app ID)');
    expect(lines({ console: { address: undefined } })).toContain(
      'Console      none: set PUBLIC_URL',
    );
  });

  test('explains how to create an app if there is no dev app', () => {
    const text = bannerLines({ ...laptop, hasDevApp: false, hasSandbox: false }).join('\n');

    expect(text).toContain('npx offhook apps create --name NAME --account ID');
    expect(text).not.toContain('dev-app.json');
  });
});

describe('Ctrl-C', () => {
  const running = { starting: false, calls: 0, drainMs: 5_000, startPatienceMs: 5_000 };

  test.each([
    [{}, 'Ending: no calls are up.'],
    [
      { calls: 1 },
      'Ending: 1 call is up. It has 5 s to finish; press Ctrl-C again to hang up and end at once.',
    ],
    [
      { calls: 3, drainMs: 300_000 },
      'Ending: 3 calls are up. They have 5 min to finish; press Ctrl-C again to hang up and end at once.',
    ],
    [{ calls: 2, drainMs: 0 }, 'Ending: hanging up 2 calls.'],
    [{ starting: true }, 'Ending after the start, within 5 s; press Ctrl-C again to end at once.'],
  ])('%j: %s', (state, line) => {
    expect(stoppingLine({ ...running, ...state })).toBe(line);
  });
});
