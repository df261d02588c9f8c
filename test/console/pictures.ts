// `npm run test:console -- --pictures FOLDER` saves pictures of the console at each step for
// people: in desktop and phone size, light and dark.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';

let folder: string | undefined;

/** Sets the folder for pictures. Undefined saves no pictures. */
export async function takePictures(into: string | undefined): Promise<void> {
  folder = into;
  if (folder !== undefined) await mkdir(folder, { recursive: true });
}

const desk = { width: 1280, height: 900 };
const phone = { width: 390, height: 844 };

/** Saves four pictures and restores the page. Does nothing without a folder. */
export async function picture(page: Page, name: string): Promise<void> {
  if (folder === undefined) return;
  // A click may have scrolled the page.
  await page.evaluate('scrollTo(0, 0)');
  for (const viewport of [desk, phone]) {
    await page.setViewportSize(viewport);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      // Waits until the page is drawn anew at this width.
      await page.evaluate('new Promise((resolve) => setTimeout(resolve, 250))');
      const path = join(folder, `${name}-${viewport.width}-${colorScheme}.png`);
      await page.screenshot({ path, fullPage: true, animations: 'disabled' });
    }
  }
  await page.emulateMedia({ colorScheme: null });
  await page.setViewportSize(desk);
}

/** Saves pictures of the page while its next request cannot reach the gateway. */
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
