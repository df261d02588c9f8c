// `npm run test:console -- --pictures FOLDER`: what the console looks like at each step, for people to look at: on a desk and on a phone,
// light and dark.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';

let folder: string | undefined;

/** From now on; undefined: none. */
export async function takePictures(into: string | undefined): Promise<void> {
  folder = into;
  if (folder !== undefined) await mkdir(folder, { recursive: true });
}

const desk = { width: 1280, height: 900 };
const phone = { width: 390, height: 844 };

/** Four of them, and the page is as it was; nothing where no pictures were asked for. */
export async function picture(page: Page, name: string): Promise<void> {
  if (folder === undefined) return;
  // What was opened by a click may have scrolled there.
  await page.evaluate('scrollTo(0, 0)');
  for (const viewport of [desk, phone]) {
    await page.setViewportSize(viewport);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      // Drawn anew at this width.
      await page.evaluate('new Promise((resolve) => setTimeout(resolve, 250))');
      const path = join(folder, `${name}-${viewport.width}-${colorScheme}.png`);
      await page.screenshot({ path, fullPage: true, animations: 'disabled' });
    }
  }
  await page.emulateMedia({ colorScheme: null });
  await page.setViewportSize(desk);
}

/** The gateway cannot be reached by what is asked next. */
export async function pictureAway(
  page: Page,
  name: string,
  ask: () => Promise<unknown>,
): Promise<void> {
  if (folder === undefined) return;
  await page.context().setOffline(true);
  await ask();
  await page.getByText('The gateway cannot be reached').first().waitFor();
  await picture(page, name);
  await page.context().setOffline(false);
}
