// The page of `offhook amd --plot` in Chromium. It uses the console's code, from a file, without a
// server.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { picture } from './pictures.ts';
import { accessible, type Stage, say } from './stage.ts';

const voices = fileURLToPath(new URL('../../src/embedded/sandbox/audio/', import.meta.url));

export async function drawRecordings(stage: Stage): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'offhook-plot-'));
  try {
    const plot = join(folder, 'page.html');
    const files = ['announcement.wav', 'person-name.wav'].map((name) => join(voices, name));
    await stage.cli('amd', ...files, '--plot', plot);
    const page = await (await stage.open()).newPage();
    await page.goto(pathToFileURL(plot).href);
    await page.locator('.mark', { hasText: 'Machine' }).waitFor();
    await page.locator('.note-lane.speech .tick').first().waitFor();
    await page.locator('.verdicts li', { hasText: 'dense-speech' }).waitFor();
    const drawn = await page.locator('canvas').first().getAttribute('aria-label');
    assert.match(drawn ?? '', /of sound: [\d.]+ s from the far end\. Machine/);
    await accessible(page, 'recordings');
    await picture(page, 'recordings');
    await page.getByRole('button', { name: 'human 1' }).click();
    await page.locator('.mark', { hasText: 'Person' }).waitFor();
    assert.equal(await page.locator('.recording').count(), 1);
    await page.context().close();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  say('recordings are drawn as calls are, in a file');
}
