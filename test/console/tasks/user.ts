// A user who sees only roles, labels and words, and whose clicks and key strokes are counted. There
// are no addresses except that of the front page.

import type { Locator, Page } from 'playwright-core';

type Role = Parameters<Page['getByRole']>[0];

/** Whatever is missing after this long is a dead end for a user. */
export const patienceMs = 8_000;

export type Effort = { clicks: number; fields: number; keys: number };

export type User = ReturnType<typeof createUser>;

export function createUser(page: Page) {
  const effort: Effort = { clicks: 0, fields: 0, keys: 0 };
  const find = (role: Role, name: string | RegExp): Locator =>
    page.getByRole(role, { name, ...(typeof name === 'string' && { exact: true }) }).first();

  const click = async (target: Locator): Promise<void> => {
    effort.clicks += 1;
    await target.click();
  };
  const type = async (label: string, text: string): Promise<void> => {
    effort.fields += 1;
    effort.keys += text.length;
    await page.getByLabel(label, { exact: true }).first().fill(text);
  };
  const enter = async (label: string): Promise<void> => {
    effort.keys += 1;
    await page.getByLabel(label, { exact: true }).first().press('Enter');
  };

  return {
    page,
    effort,
    find,
    click,
    follow: (name: string | RegExp) => click(find('link', name)),
    press: (name: string | RegExp) => click(find('button', name)),
    /** Opens a list and chooses from it: two clicks. */
    async choose(label: string, option: string): Promise<void> {
      effort.clicks += 2;
      await find('combobox', label).selectOption({ label: option });
    },
    type,
    enter,
    /** A filter is typed and entered. */
    async filter(label: string, text: string): Promise<void> {
      await type(label, text);
      await enter(label);
    },
    /** From the clipboard, with two keys, and entered. */
    async paste(label: string, text: string): Promise<void> {
      await type(label, text);
      effort.keys += 2 - text.length;
      await enter(label);
    },
    words: (name: string | RegExp) => textOf(page.getByText(name).first()),
    /** The words of the section with this heading. */
    section: (heading: string | RegExp) => textOf(page.getByRole('region', { name: heading })),
    /** The rows of a table, by the heads of its columns. */
    table: (name: string | RegExp) => rowsOf(find('table', name)),
    async download(name: string | RegExp): Promise<Buffer> {
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        click(page.getByRole('link', { name }).first()),
      ]);
      const chunks: Buffer[] = [];
      for await (const chunk of await file.createReadStream()) chunks.push(chunk as Buffer);
      return Buffer.concat(chunks);
    },
  };
}

/** The words that are seen, once they are there. */
export async function textOf(target: Locator): Promise<string> {
  await target.first().waitFor();
  const [text = ''] = await target.first().allInnerTexts();
  return seenIn(text);
}

type Row = Readonly<Record<string, string>>;

async function rowsOf(table: Locator): Promise<readonly Row[]> {
  await table.waitFor();
  const heads = await table.locator('thead th').allInnerTexts();
  const rows = await table.locator('tbody tr').all();
  return await Promise.all(
    rows.map(async (row) => {
      const cells = await row.locator(':scope > *').allInnerTexts();
      return Object.fromEntries<string>(
        cells.map((text, index) => [heads[index]?.trim() ?? '', seenIn(text)] as const),
      );
    }),
  );
}

/** Codes in brackets and the explanations of badges are for screen readers. */
const seenIn = (text: string) => text.replaceAll(/\n(\(.*\)|\. .*)/g, '').trim();
